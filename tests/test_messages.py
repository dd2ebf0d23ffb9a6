from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_loop import (
    AgentResponse,
    ChatMessage,
    ChatResponse,
    ChatRole,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    SessionStateError,
    TextContent,
    TextReasoningContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UriContent,
    UsageContent,
    UsageDetails,
)
from agents_loop.ids import new_id
from agents_loop.message_json import content_from_json, content_to_json, message_from_json, message_to_json
from agents_loop.messages import CONTENT_TYPES, as_messages, sum_usage

# Messages


def test_roles():
    """A role is a `ChatRole` or any other string."""
    assert {role.name: role.value for role in ChatRole} == {
        "SYSTEM": "system",
        "USER": "user",
        "ASSISTANT": "assistant",
        "TOOL": "tool",
    }
    assert ChatMessage("developer", "x").role == "developer"
    assert ChatMessage(ChatRole.USER, "x") == ChatMessage("user", "x")


@pytest.mark.parametrize(
    ("contents", "stored"),
    [
        ("a", [TextContent("a")]),
        ("", [TextContent("")]),
        (TextContent("a"), [TextContent("a")]),
        (["a", UriContent("u", "image/png"), "b"], [TextContent("a"), UriContent("u", "image/png"), TextContent("b")]),
        (("a",), [TextContent("a")]),
        ((piece for piece in "ab"), [TextContent("a"), TextContent("b")]),
        ([], []),
    ],
)
def test_contents_are_stored_as_a_list(contents: Any, stored: list[Any]):
    """Contents are a str, one content or a sequence of both, and are stored as a list of contents."""
    assert ChatMessage("user", contents).contents == stored


def test_the_list_is_the_messages_own():
    """A message keeps a list of its own."""
    contents = [TextContent("a")]
    message = ChatMessage("user", contents)
    contents.append(TextContent("b"))
    assert message.text == "a"


@pytest.mark.parametrize("contents", [None, 7, [7], [None], [["a"]], b"bytes", {"type": "text", "text": "hi"}])
def test_what_is_no_content(contents: Any):
    """Anything else as contents is a TypeError, a mapping included."""
    with pytest.raises(TypeError):
        ChatMessage("user", contents)


def test_the_text():
    """A message's text is its `TextContent` parts joined; nothing else."""
    contents = ["a", TextReasoningContent("thinking"), " b", ErrorContent("no"), FunctionResultContent("c", "d"), "c"]
    assert ChatMessage("assistant", contents).text == "a bc"
    assert ChatMessage("assistant", [FunctionCallContent("c", "f")]).text == ""
    assert ChatMessage("assistant", [TextReasoningContent("thinking")]).text == ""


def test_messages_compare_by_value():
    """Messages compare by what they say; the id is where they are filed."""
    assert ChatMessage("user", "a", message_id="1") == ChatMessage("user", ["a"], message_id="2")
    different = [
        ChatMessage("system", "a"),
        ChatMessage("user", "b"),
        ChatMessage("user", "a", author_name="x"),
        ChatMessage("user", "a", additional_properties={"k": 1}),
    ]
    for other in different:
        assert ChatMessage("user", "a") != other


def test_as_messages():
    """Callers pass nothing, a str, a message, or several of both."""
    message = ChatMessage("system", "x")
    assert as_messages(None) == []
    assert as_messages("a") == [ChatMessage("user", "a")]
    assert as_messages(message)[0] is message
    assert as_messages(("a", message)) == [ChatMessage("user", "a"), message]
    listed = [message]
    assert as_messages(listed) is not listed


@pytest.mark.parametrize(
    "messages",
    [7, [7], [None], [TextContent("a")], b"a", {"role": "user", "content": "hi"}, [{"role": "user", "content": "hi"}]],
)
def test_what_is_no_message(messages: Any):
    """Anything else is a TypeError; above all a wire format's dict, which must not become its keys."""
    with pytest.raises(TypeError):
        as_messages(messages)


def test_the_text_of_several_messages():
    """A response's text is the texts that are not empty, with a line break between them."""
    messages = [ChatMessage("assistant", "a"), ChatMessage("tool", []), ChatMessage("assistant", ["b", "c"])]
    assert AgentResponse(messages).text == ChatResponse(messages).text == "a\nbc"
    assert AgentResponse([]).text == ""


def test_a_response_of_a_str():
    """A response made of a str is one message of the assistant's."""
    assert AgentResponse("a").messages == ChatResponse("a").messages == [ChatMessage("assistant", "a")]
    assert AgentResponse(ChatMessage("tool", "a")).messages == [ChatMessage("tool", "a")]
    assert AgentResponse([]).messages == []


# Usage

counts = st.none() | st.integers(0, 10**9)
more_counts = st.none() | st.dictionaries(
    st.sampled_from(["audio", "text", "input_audio"]), st.integers(0, 100), min_size=1
)
usages = st.builds(UsageDetails, counts, counts, counts, counts, counts, more_counts)
COUNTERS = (
    "input_token_count",
    "output_token_count",
    "total_token_count",
    "cached_input_token_count",
    "reasoning_token_count",
)


@given(usages, usages)
def test_usage_adds_counter_by_counter(one: UsageDetails, two: UsageDetails):
    """A sum has each counter that one side reported; None stays None, and zero is a number."""
    total = one + two
    for name in COUNTERS:
        reported = [count for usage in (one, two) if (count := getattr(usage, name)) is not None]
        assert getattr(total, name) == (sum(reported) if reported else None)
    further = [usage.additional_counts for usage in (one, two) if usage.additional_counts is not None]
    names = {name for counted in further for name in counted}
    assert total.additional_counts == ({n: sum(c.get(n, 0) for c in further) for n in names} if further else None)


@given(st.lists(st.none() | usages, max_size=5))
def test_the_sum_of_several(listed: list[UsageDetails | None]):
    """A sum over many is the same in any order; of nothing it is None."""
    total = sum_usage(listed)
    assert total == sum_usage(reversed(listed))
    assert (total is None) == (not any(usage is not None for usage in listed))


def test_adding_changes_nothing():
    """Adding makes a new object, which shares no counters with its parts."""
    one, two = UsageDetails(1, additional_counts={"audio": 1}), UsageDetails(2)
    for total in (one + two, two + one, sum_usage([one])):
        assert total is not one
        total.additional_counts["audio"] = 99
    assert (one, two) == (UsageDetails(1, additional_counts={"audio": 1}), UsageDetails(2))


def test_usage_adds_to_usage_alone():
    """Usage adds to usage and nothing else."""
    with pytest.raises(TypeError):
        UsageDetails(1) + 1
    with pytest.raises(TypeError):
        sum([UsageDetails(1)])


# JSON

words = st.text(max_size=12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
properties = st.none() | st.dictionaries(words, json_values, max_size=3)
calls = st.builds(
    FunctionCallContent, words, words, st.none() | words | st.dictionaries(words, json_values, max_size=3)
)
contents = st.one_of(
    st.builds(TextContent, words),
    st.builds(TextReasoningContent, words),
    st.builds(DataContent, st.binary(max_size=20), words),
    st.builds(UriContent, words, words),
    calls,
    st.builds(FunctionResultContent, words, json_values),
    st.builds(ToolApprovalRequestContent, words, calls),
    st.builds(ToolApprovalResponseContent, words, st.booleans(), calls),
    st.builds(UsageContent, usages),
    st.builds(ErrorContent, words, code=st.none() | words),
)
roles = st.sampled_from(list(ChatRole)) | st.text(string.ascii_lowercase, min_size=1, max_size=8)
messages = st.builds(
    ChatMessage,
    roles,
    st.lists(contents, max_size=4),
    author_name=st.none() | words,
    message_id=st.none() | words,
    additional_properties=properties,
)


@given(contents)
def test_every_content_survives_json(content: Any):
    """Every content is the same after a round trip through JSON, and of the same type."""
    read = content_from_json(json.loads(json.dumps(content_to_json(content), allow_nan=False)))
    assert read == content
    assert type(read) is type(content)


def test_the_strategy_knows_every_content():
    """... and the strategy above leaves none out."""
    names = {content_to_json(example)["type"] for example in EXAMPLES}
    assert len(names) == len(EXAMPLES) == len(CONTENT_TYPES)


CALL = FunctionCallContent("c", "f", {"a": 1})
EXAMPLES = [
    TextContent("a"),
    TextReasoningContent("a"),
    DataContent(b"a", "image/png"),
    UriContent("u", "image/png"),
    CALL,
    FunctionResultContent("c", [1]),
    ToolApprovalRequestContent("r", CALL),
    ToolApprovalResponseContent("r", approved=True, tool_call=CALL),
    UsageContent(UsageDetails(1)),
    ErrorContent("no", code="refusal"),
]


@given(messages)
def test_every_message_survives_json(message: ChatMessage):
    """Every message is the same after a round trip through JSON, its id included."""
    read = message_from_json(json.loads(json.dumps(message_to_json(message), allow_nan=False)))
    assert read == message
    assert read.message_id == message.message_id


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        [],
        {},
        {"type": "nonsense"},
        {"type": ["text"]},
        {"type": "text"},
        {"type": "text", "text": 7},
        {"type": "data", "data": "not base64!", "media_type": "x"},
        {"type": "data", "data": "\u30ab", "media_type": "x"},
        {"type": "data", "media_type": "x"},
        {"type": "data", "data": 7, "media_type": "x"},
        {"type": "usage", "details": {"input_token_count": "many"}},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": 7},
        {"type": "tool_approval_request", "request_id": "r", "tool_call": None},
    ],
)
def test_what_is_no_stored_content(value: Any):
    """What is no stored content is a SessionStateError."""
    with pytest.raises(SessionStateError):
        content_from_json(value)


@pytest.mark.parametrize(
    "value", [None, "text", {}, {"role": "user"}, {"role": 7, "contents": []}, {"role": "user", "contents": "hi"}]
)
def test_what_is_no_stored_message(value: Any):
    """What is no stored message is a SessionStateError."""
    with pytest.raises(SessionStateError):
        message_from_json(value)


def test_ids_are_unique():
    """No two ids are the same."""
    assert len({new_id() for _ in range(1000)}) == 1000


def test_a_count_below_zero_is_none():
    """Usage: a negative number counts nothing, whoever says it, and does not make a sum smaller."""
    usage = UsageDetails(-1, 0, -2, -3, -4, {"audio": 1})
    assert usage == UsageDetails(None, 0, additional_counts={"audio": 1})
    assert UsageDetails(5) + UsageDetails(-3) == UsageDetails(5)


@pytest.mark.parametrize("count", [2**63, 10**400, float("inf"), float("nan")])
def test_a_count_that_no_provider_can_mean_is_none(count: Any):
    """Usage: what 64 bits do not hold counts nothing; a sum of counts that they do hold is what it is."""
    assert UsageDetails(count, 0, count, count, count, {"audio": 1}) == UsageDetails(
        None, 0, additional_counts={"audio": 1}
    )
    most = UsageDetails(2**63 - 1)
    assert (most + most).input_token_count == sum([most.input_token_count or 0] * 2)
