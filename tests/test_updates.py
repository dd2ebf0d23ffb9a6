from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_loop import (
    AgentResponse,
    AgentResponseUpdate,
    ChatMessage,
    ChatResponse,
    ChatResponseUpdate,
    FunctionCallContent,
    TextContent,
    TextReasoningContent,
    UsageContent,
    UsageDetails,
)
from agents_loop.agent import updates_of

Update = AgentResponseUpdate


def merged(*updates: AgentResponseUpdate) -> list[tuple[str, str]]:
    return [(str(message.role), message.text) for message in AgentResponse.from_updates(updates).messages]


def test_an_update():
    """An update's contents are a str, a content or a sequence; its text is that of its text contents."""
    assert Update("assistant", ["a", TextReasoningContent("x"), "b"]).text == "ab"
    assert Update().contents == []
    with pytest.raises(TypeError):
        Update("assistant", None)


def test_pieces_of_one_message():
    """A piece without an id continues the last message."""
    assert merged(Update("assistant", "a"), Update(contents="b"), Update("assistant", "c")) == [("assistant", "abc")]


@pytest.mark.parametrize("name", ["message_id", "response_id", "author_name"])
def test_a_new_id_is_a_new_message(name: str):
    """Another message id, response id or author begins another message."""
    pieces = [Update("assistant", text, **{name: value}) for text, value in (("a", "1"), ("b", "1"), ("c", "2"))]
    assert merged(*pieces) == [("assistant", "ab"), ("assistant", "c")]


def test_a_new_role_is_a_new_message():
    """Another role begins another message, and so the way back."""
    pieces = [Update("assistant", "a"), Update("tool", "b"), Update("assistant", "c")]
    assert merged(*pieces) == [("assistant", "a"), ("tool", "b"), ("assistant", "c")]


def test_interleaved_messages():
    """Pieces find their message by message and response id, also when others came between."""
    shared: dict[str, Any] = {"response_id": "r"}
    pieces = [
        Update("assistant", "a1", message_id="a", **shared),
        Update("assistant", "b1", message_id="b", **shared),
        Update(contents="a2", message_id="a", **shared),
        Update("assistant", "b2", message_id="b", **shared),
    ]
    assert merged(*pieces) == [("assistant", "a1a2"), ("assistant", "b1b2")]


def test_the_same_message_id_in_another_response():
    """A message id counts within its response."""
    pieces = [Update("assistant", text, message_id="m", response_id=f"r-{text}") for text in "ab"]
    assert merged(*pieces) == [("assistant", "a"), ("assistant", "b")]


def test_a_message_id_that_comes_late():
    """An id that comes with a later piece is the message's."""
    response = AgentResponse.from_updates([Update("assistant", "a"), Update(contents="b", message_id="m")])
    assert [(message.text, message.message_id) for message in response.messages] == [("ab", "m")]


def test_identical_messages_are_both_kept():
    """Identical messages with ids of their own are both kept (C5)."""
    pieces = [Update("assistant", "same", message_id=name) for name in "ab"]
    assert merged(*pieces) == [("assistant", "same")] * 2


def test_a_piece_without_a_role():
    """A message nobody gave a role is the assistant's."""
    assert merged(Update(contents="a")) == [("assistant", "a")]


def test_texts_are_joined_and_others_stay_apart():
    """Neighbouring texts become one; reasoning and calls stay what and where they are."""
    call = FunctionCallContent("c", "f")
    pieces = [TextReasoningContent("x"), TextReasoningContent("y"), "a", "b", call, "c"]
    (message,) = AgentResponse.from_updates([Update("assistant", piece) for piece in pieces]).messages
    assert message.contents == [TextReasoningContent("xy"), TextContent("ab"), call, TextContent("c")]


def test_merging_changes_no_update():
    """The updates are not changed by merging, and may be merged again."""
    pieces = [Update("assistant", "a"), Update(contents="b")]
    assert merged(*pieces) == merged(*pieces) == [("assistant", "ab")]
    assert [piece.text for piece in pieces] == ["a", "b"]


def test_usage_is_summed_once():
    """Usage contents are summed, once each, and leave the messages."""
    pieces = [
        Update("assistant", ["a", UsageContent(UsageDetails(1, 2))]),
        Update(contents=UsageContent(UsageDetails(10, None, 5))),
        Update(contents="b"),
    ]
    response = AgentResponse.from_updates(pieces)
    assert response.usage == UsageDetails(11, 2, 5)
    assert response.messages == [ChatMessage("assistant", "ab")]
    assert AgentResponse.from_updates([Update("assistant", "a")]).usage is None


def test_usage_alone_is_no_message():
    """A piece of usage alone makes no message."""
    response = AgentResponse.from_updates([Update(contents=UsageContent(UsageDetails(1)), response_id="r")])
    assert (response.messages, response.usage, response.response_id) == ([], UsageDetails(1), "r")


def test_the_fields_of_the_response():
    """The response's id, agent, finish reason and time are the last that were given; properties are gathered."""
    response = AgentResponse.from_updates(
        [
            Update("assistant", "a", response_id="r1", agent_id="x", created_at=1.0, additional_properties={"a": 1}),
            Update(contents="b", finish_reason="stop", additional_properties={"b": 2}),
            Update("tool", "c", response_id="r2", agent_id="y", created_at=0.0, finish_reason="length"),
            Update(),
        ]
    )
    assert (response.response_id, response.agent_id, response.created_at) == ("r2", "y", 0.0)
    assert response.finish_reason == "length"
    assert response.additional_properties == {"a": 1, "b": 2}
    assert AgentResponse.from_updates([]) == AgentResponse([])


def test_a_chat_response():
    """A chat response is merged by the same rules, and has its model."""
    response = ChatResponse.from_updates(
        [ChatResponseUpdate("assistant", "a", model_id="m1"), ChatResponseUpdate(contents="b", finish_reason="stop")]
    )
    assert (response.text, response.model_id, response.finish_reason) == ("ab", "m1", "stop")


def test_from_updates_of_a_subclass():
    """`from_updates` makes what it is called on."""

    class Mine(AgentResponse):
        pass

    assert type(Mine.from_updates(iter([Update("assistant", "a")]))) is Mine


def calls_of(updates: list[Update]) -> int:
    """How many calls the merging of pieces makes: a measure of its work that no busy machine disturbs."""
    count = 0

    def heard(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(heard)
    try:
        AgentResponse.from_updates(updates)
    finally:
        sys.setprofile(None)
    return count


def test_long_streams_are_linear():
    """Merging is linear: a stream of ten times the pieces takes ten times the calls."""

    def pieces(count: int) -> list[Update]:
        return [Update("assistant", "x" * 50, response_id="r", message_id="m") for _ in range(count)]

    assert len(AgentResponse.from_updates(pieces(40_000)).text) == 50 * 40_000
    assert calls_of(pieces(4_000)) < 11 * calls_of(pieces(400))


def test_many_interleaved_messages_are_linear():
    """... and so is a stream of many messages."""

    def pieces(count: int) -> list[Update]:
        ids = [f"m{number}" for number in range(count)]
        return [Update("assistant", "x", response_id="r", message_id=name) for name in [*ids, *ids]]

    assert len(AgentResponse.from_updates(pieces(10_000)).messages) == 10_000
    assert calls_of(pieces(4_000)) < 11 * calls_of(pieces(400))


texts = st.text("abc ", max_size=5)
written = st.builds(
    ChatMessage, st.sampled_from(["assistant", "user", "tool"]), texts, author_name=st.none() | st.sampled_from("xy")
)


@given(st.lists(written, max_size=5), st.none() | st.builds(UsageDetails, st.integers(0, 9)), st.none() | st.just("r"))
def test_a_response_in_pieces(messages: list[ChatMessage], usage: UsageDetails | None, response_id: str | None):
    """A response in pieces amounts to the same response: no message lost, none glued, usage once."""
    response = AgentResponse(messages, response_id=response_id, usage=usage, finish_reason="stop", agent_id="a")
    again = AgentResponse.from_updates(updates_of(response))
    assert again == response


def test_a_response_without_messages_in_pieces():
    """The fields of a response without messages are not lost."""
    response = AgentResponse([], response_id="r", finish_reason="stop", created_at=1.0, additional_properties={"k": 1})
    assert AgentResponse.from_updates(updates_of(response)) == response
