"""Calls that are recorded, answered again, and kept as a cache."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from pydantic import BaseModel

from agents_loop import (
    AIJudgeLoopEvaluator,
    ChatClientAgent,
    ChatMessage,
    ChatOptions,
    ChatResponse,
    ConfigurationError,
    LoopAgent,
    LoopResult,
    UsageDetails,
)
from agents_loop.clients.call_key import call_json, key_of
from agents_loop.clients.recorded import RecordedChatClient
from agents_loop.clients.recordings import Recordings, UnknownCallError
from agents_loop.testing import Reply, ScriptedChatClient

ASKED = [ChatMessage("user", "A slogan, please.")]


def key(messages: list[ChatMessage] = ASKED, options: ChatOptions | None = None, model: str = "m") -> str:
    return key_of(call_json(model, messages, options))


def ask(client: RecordedChatClient, text: str = "A slogan, please.", options: ChatOptions | None = None) -> str:
    return asyncio.run(client.get_response([ChatMessage("user", text)], options)).text


def recording(path: Path, *replies: Reply) -> RecordedChatClient:
    return RecordedChatClient(ScriptedChatClient(replies), Recordings.begin(path), "m")


def search(query: str) -> str:
    """Search."""
    return query


class Slogan(BaseModel):
    text: str


def test_a_call_is_the_same_whatever_its_message_ids_and_nonces():
    """Message ids and the nonces of fences are made anew in each run: they are no part of a call."""
    one = [ChatMessage("user", "<answer_0123456789abcdef>\nx\n</answer_0123456789abcdef>", message_id="a")]
    two = [ChatMessage("user", "<answer_fedcba9876543210>\nx\n</answer_fedcba9876543210>", message_id="b")]
    assert key(one) == key(two)


def test_nonces_that_differ_within_a_call_stay_different():
    """Which tag closes which is a part of the call."""
    one = [ChatMessage("user", "<answer_0123456789abcdef> <answer_0123456789abcdef>")]
    two = [ChatMessage("user", "<answer_0123456789abcdef> <answer_fedcba9876543210>")]
    assert key(one) != key(two)


@pytest.mark.parametrize(
    "other",
    [
        {"messages": [ChatMessage("user", "A slogan, please!")]},
        {"messages": [ChatMessage("system", "A slogan, please.")]},
        {"messages": [*ASKED, ChatMessage("user", "")]},
        {"model": "n"},
        {"options": ChatOptions(temperature=0.0)},
        {"options": ChatOptions(max_output_tokens=9)},
        {"options": ChatOptions(response_format=Slogan)},
        {"options": ChatOptions(tools=[search])},
    ],
    ids=["text", "role", "more", "model", "temperature", "length", "format", "tools"],
)
def test_whatever_the_model_is_sent_or_asked_makes_another_call(other: dict[str, object]):
    """Messages, roles, options, formats, tools and the model all count."""
    assert key(**other) != key()  # pyright: ignore[reportArgumentType]


def test_what_was_recorded_is_answered_again(tmp_path: Path):
    """A replayed reply is the recorded one: text, usage, finish reason and further properties."""
    path = tmp_path / "calls.jsonl"
    reply = ChatResponse(
        "Hot tea.",
        model_id="tea-1",
        usage=UsageDetails(3, 4, 7),
        finish_reason="stop",
        additional_properties={"logprobs": [{"token": "Hot"}]},
    )
    ask(recording(path, reply))
    again = asyncio.run(RecordedChatClient(None, Recordings.load(path), "m").get_response(ASKED))
    assert again == reply


def test_the_same_call_made_again_gets_its_next_reply(tmp_path: Path):
    """Several samples of one prompt stay several, in order; one more than was recorded is an error."""
    path = tmp_path / "calls.jsonl"
    recorded = recording(path, "one", "two")
    assert [ask(recorded), ask(recorded)] == ["one", "two"]
    replayed = RecordedChatClient(None, Recordings.load(path), "m")
    assert [ask(replayed), ask(replayed)] == ["one", "two"]
    with pytest.raises(UnknownCallError, match=r"made for the 3\. time, and was recorded 2 time"):
        ask(replayed)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_streams_are_recorded_and_replayed(tmp_path: Path, is_streamed: bool):
    """A streamed call is recorded when it is complete, and what was recorded can be streamed."""
    path = tmp_path / "calls.jsonl"

    async def read(client: RecordedChatClient) -> ChatResponse:
        if not is_streamed:
            return await client.get_response(ASKED)
        return ChatResponse.from_updates([update async for update in client.get_streaming_response(ASKED)])

    async def both() -> tuple[ChatResponse, ChatResponse]:
        first = recording(path, ChatResponse("tea", usage=UsageDetails(1, 2, 3)))
        streamed = ChatResponse.from_updates([update async for update in first.get_streaming_response(ASKED)])
        return streamed, await read(RecordedChatClient(None, Recordings.load(path), "m"))

    streamed, replayed = asyncio.run(both())
    assert (streamed.text, streamed.usage) == (replayed.text, replayed.usage) == ("tea", UsageDetails(1, 2, 3))


def test_a_stream_closed_early_is_not_recorded(tmp_path: Path):
    """Half a reply is no reply."""
    path = tmp_path / "calls.jsonl"

    async def close_early() -> None:
        stream = recording(path, ChatResponse("tea")).get_streaming_response(ASKED)
        async for _ in stream:
            break
        await stream.aclose()  # pyright: ignore[reportAttributeAccessIssue]

    asyncio.run(close_early())
    assert len(Recordings.load(path)) == 0


def test_recording_asks_for_every_call(tmp_path: Path):
    """While calls are recorded, nothing is answered from those of the same run."""
    recordings = Recordings.begin(tmp_path / "calls.jsonl")
    answers = [ask(RecordedChatClient(ScriptedChatClient([said]), recordings, "m")) for said in ("one", "two")]
    assert answers == ["one", "two"]


def test_as_a_cache_each_client_begins_with_the_first_reply(tmp_path: Path):
    """A cache asks the model for what is new, and answers the rest."""
    path = tmp_path / "cache" / "calls.jsonl"
    model = ScriptedChatClient(["one", "other"])
    for _ in range(2):
        assert ask(RecordedChatClient(model, Recordings(path), "m")) == "one"
    assert ask(RecordedChatClient(model, Recordings(path), "m"), "Another.") == "other"
    assert len(model.calls) == 2


def test_a_call_that_fails_is_not_recorded(tmp_path: Path):
    """What a model raised is raised, and is nothing to answer with."""
    path = tmp_path / "calls.jsonl"
    client = recording(path, ConnectionError("down"), "up")
    with pytest.raises(ConnectionError):
        ask(client)
    assert ask(client) == "up"
    assert len(Recordings.load(path)) == 1


@pytest.mark.parametrize(
    ("model", "text", "options", "said"),
    [
        ("m", "A slogan, maybe.", None, "it differs at 'A slogan, maybe.*recorded as 'A slogan, please"),
        ("m", "A slogan, please.", ChatOptions(seed=1), "differs at"),
        ("n", "A slogan, please.", None, "to the model 'n': recorded are calls to 'm'"),
    ],
)
def test_an_unknown_call_is_told_by_what_comes_nearest(
    tmp_path: Path, model: str, text: str, options: ChatOptions | None, said: str
):
    """The error names the model and where the call differs from the nearest recorded one."""
    path = tmp_path / "calls.jsonl"
    ask(recording(path, "tea"))
    with pytest.raises(UnknownCallError, match=said):
        ask(RecordedChatClient(None, Recordings.load(path), model), text, options)


def test_a_line_cut_short_at_the_end_is_left_out(tmp_path: Path):
    """Who wrote it was ended within the line: what stands before it counts, and what follows begins a new line."""
    path = tmp_path / "calls.jsonl"
    ask(recording(path, "tea"))
    with path.open("ab") as file:
        file.write(path.read_bytes()[:30])
    model = ScriptedChatClient(["more"])
    client = RecordedChatClient(model, Recordings(path), "m")
    assert [ask(client), ask(client, "More.")] == ["tea", "more"]
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["reply"]["messages"][0]["contents"][0]["text"] for line in (lines[0], lines[2])] == [
        "tea",
        "more",
    ]


def test_a_line_cut_short_within_a_file_that_many_add_to_is_left_out(tmp_path: Path):
    """Its call is made again, which is told; without `leaves_out_torn` it is an error, and so is a line of another kind."""
    path = tmp_path / "calls.jsonl"
    ask(recording(path, "tea"))
    whole = path.read_bytes()
    path.write_bytes(whole[:60] + b"\n" + whole)
    warnings: list[str] = []
    client = RecordedChatClient(None, Recordings(path, warnings.append, leaves_out_torn=True), "m")
    assert ask(client) == "tea"
    assert len(warnings) == 1
    assert "broke off (1)" in warnings[0]
    with pytest.raises(ConfigurationError, match=r"calls\.jsonl:1: "):
        Recordings(path)
    path.write_bytes(b'{"key": "k"}\n' + whole)
    with pytest.raises(ConfigurationError, match=r"calls\.jsonl:1: "):
        Recordings(path, leaves_out_torn=True)


def test_a_line_that_another_broke_off_meanwhile_stays_one_of_its_own(tmp_path: Path):
    """Several runs add to one file: what one of them was ended in spoils no line of another."""
    path = tmp_path / "calls.jsonl"
    recordings = Recordings(path, leaves_out_torn=True)
    client = RecordedChatClient(ScriptedChatClient(["one", "two"]), recordings, "m")
    ask(client)
    with path.open("ab") as file:
        file.write(path.read_bytes()[:60])
    ask(client, "More.")
    again = RecordedChatClient(None, Recordings(path, leaves_out_torn=True), "m")
    assert [ask(again), ask(again, "More.")] == ["one", "two"]


@pytest.mark.parametrize("line", ["{}", "[1]", "null", '{"key": "k"}', "no JSON", '{"key":1,"call":2,"reply":3}'])
def test_a_line_that_is_no_call_is_an_error_with_its_place(tmp_path: Path, line: str):
    """Within the file nothing is passed over."""
    path = tmp_path / "calls.jsonl"
    path.write_text(f"{line}\n\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"calls\.jsonl:1: "):
        Recordings.load(path)


@pytest.mark.parametrize(
    ("old", "new"), [("slogan", "poem"), ('"key": "', '"key": "0'), ('"options": {}', '"options": 5')]
)
def test_a_call_that_was_changed_is_an_error_with_its_place(tmp_path: Path, old: str, new: str):
    """A reply is recorded for one call: where key and call differ it is given for neither."""
    path = tmp_path / "calls.jsonl"
    ask(recording(path, "tea"))
    path.write_text(path.read_text("utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"calls\.jsonl:1: .*its key is not that of its call"):
        Recordings.load(path)


def test_a_text_that_utf_8_cannot_hold_is_the_same_call_again(tmp_path: Path):
    """Half a surrogate pair, in a call or a reply, is recorded as it is."""
    path = tmp_path / "calls.jsonl"
    asked = "half \ud83d of it"
    assert ask(recording(path, "\ude00"), asked) == "\ude00"
    assert ask(RecordedChatClient(None, Recordings.load(path), "m"), asked) == "\ude00"


def test_a_file_of_another_kind_is_not_replaced(tmp_path: Path):
    """A slip of the hand costs nobody a file."""
    path = tmp_path / "notes.txt"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="another kind"):
        Recordings.begin(path)
    assert path.read_text(encoding="utf-8") == "mine"


def test_what_is_not_there_is_named(tmp_path: Path):
    """Replaying needs a file; recording a place where it can be written."""
    with pytest.raises(ConfigurationError, match="no such file"):
        Recordings.load(tmp_path / "none.jsonl")
    with pytest.raises(ConfigurationError, match="can't be recorded there"):
        Recordings.begin(tmp_path / "none" / "calls.jsonl")


def test_a_disk_that_fails_costs_the_recording_and_not_the_reply(tmp_path: Path):
    """The reply is given all the same; one warning is given."""
    warnings: list[str] = []
    recordings = Recordings.begin(tmp_path / "calls.jsonl", warnings.append)
    recordings.path = tmp_path
    client = RecordedChatClient(ScriptedChatClient(["one", "two"]), recordings, "m")
    assert [ask(client), ask(client)] == ["one", "two"]
    assert len(warnings) == 1
    assert "not complete" in warnings[0]


def test_a_loop_with_a_judge_replays_to_the_same_result(tmp_path: Path):
    """A whole run is replayed from its recording: the same answers, verdicts and ledger, without a model."""
    path = tmp_path / "calls.jsonl"

    def loop(replies: list[Reply] | None) -> LoopAgent:
        recordings = Recordings.load(path) if replies is None else Recordings.begin(path)
        inner = None if replies is None else ScriptedChatClient(replies)
        client = RecordedChatClient(inner, recordings, "m")
        return LoopAgent(ChatClientAgent(client), AIJudgeLoopEvaluator(client))

    replies: list[Reply] = [
        ChatResponse("draft 1", usage=UsageDetails(5, 6, 11)),
        '{"gapAnalysis": "no price", "answered": false}',
        "draft 2",
        '{"gapAnalysis": "", "answered": true}',
    ]
    recorded = LoopResult.of(loop(replies).run_sync("Write."))
    replayed = LoopResult.of(loop(None).run_sync("Write."))
    assert recorded is not None
    assert replayed is not None
    assert replayed.output == recorded.output == "draft 2"
    assert replayed.usage == recorded.usage
    assert [entry.role for entry in replayed.ledger] == ["agent", "evaluator"] * 2
