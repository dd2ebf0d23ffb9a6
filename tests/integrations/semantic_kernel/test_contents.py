from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("semantic_kernel")

from semantic_kernel.connectors.ai.completion_usage import CompletionUsage
from semantic_kernel.contents import (
    AnnotationContent,
    AudioContent,
    ChatMessageContent,
    FunctionCallContent,
    FunctionResultContent,
    ImageContent,
    StreamingChatMessageContent,
    TextContent,
)
from semantic_kernel.contents.binary_content import BinaryContent
from semantic_kernel.contents.reasoning_content import ReasoningContent
from semantic_kernel.contents.utils.author_role import AuthorRole

from agents_loop import ChatMessage, DataContent, UriContent, UsageDetails
from agents_loop import FunctionCallContent as Call
from agents_loop import FunctionResultContent as Result
from agents_loop import TextContent as Text
from agents_loop import TextReasoningContent as Reasoning
from agents_loop.integrations.semantic_kernel.contents import kernel_messages, our_contents
from agents_loop.integrations.semantic_kernel.usage import UsageCount, read_usage


@pytest.mark.parametrize(
    ("item", "content"),
    [
        (TextContent(text="hi"), Text("hi")),
        (TextContent(text=""), None),
        (ReasoningContent(text="hm"), Reasoning("hm")),
        (ReasoningContent(text=None), None),
        (FunctionCallContent(id="i", name="P-f", arguments='{"a": 1}'), Call("i", "P-f", {"a": 1})),
        (FunctionCallContent(id="i", call_id="c", name="f", arguments={"a": 1}), Call("c", "f", {"a": 1})),
        (FunctionCallContent(id="i", name="f", arguments="[1"), Call("i", "f", "[1")),
        (FunctionCallContent(id="i", name="f", arguments="[1]"), Call("i", "f", "[1]")),
        (FunctionCallContent(id="i", name="f", arguments=" "), Call("i", "f", None)),
        (FunctionCallContent(id="i", name="f", arguments=None), Call("i", "f", None)),
        (FunctionResultContent(id="i", name="f", result={"a": (1, 2)}), Result("i", {"a": [1, 2]})),
        (FunctionResultContent(id="i", call_id="c", name="f", result=AuthorRole), Result("c", str(AuthorRole))),
        (FunctionResultContent(id="i", name="f", result=float("nan")), Result("i", "nan")),
        (
            ImageContent(data=b"\xff", data_format="base64", mime_type="image/png"),
            DataContent(b"\xff", "image/png"),
        ),
        (ImageContent(uri="https://x.example/a"), UriContent("https://x.example/a", "image/*")),
        (BinaryContent(uri="https://x.example/a"), UriContent("https://x.example/a", "*/*")),
        (BinaryContent(), None),
        (AnnotationContent(quote="q"), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_item_is_this_content(item, content):
    """Adapters: each item of Semantic Kernel is one content of ours, or has no place among them."""
    assert our_contents([item]) == ([] if content is None else [content])


def test_calls_come_after_what_was_said():
    """Adapters: connectors list calls first; the model wrote them last."""
    call = FunctionCallContent(id="i", name="f", arguments="{}")
    assert our_contents([call, TextContent(text="hm")]) == [Text("hm"), Call("i", "f", {})]


def test_files_and_sounds_are_what_they_are():
    """Adapters: bytes become an item of their kind."""
    (message,) = kernel_messages(
        [ChatMessage("user", [DataContent(b"\x01", "audio/wav"), DataContent(b"%PDF", "application/pdf")])]
    )
    assert [(type(item), item.data, item.mime_type) for item in message.items] == [
        (AudioContent, b"\x01", "audio/wav"),
        (BinaryContent, b"%PDF", "application/pdf"),
    ]


@pytest.mark.parametrize(
    ("usage", "details"),
    [
        (None, None),
        (CompletionUsage(), None),
        (CompletionUsage(prompt_tokens=2), UsageDetails(2)),
        (
            {
                "input_tokens": 3,
                "output_tokens": 4,
                "total_tokens": 9,
                "input_tokens_details": {"cached_tokens": 1, "audio_tokens": 5},
                "output_tokens_details": {"reasoning_tokens": 2},
            },
            UsageDetails(3, 4, 9, 1, 2, {"InputTokenDetails.AudioTokenCount": 5}),
        ),
        (SimpleNamespace(prompt_tokens=1, completion_tokens=True), UsageDetails(1)),
        (object(), None),
    ],
)
def test_usage_under_any_of_its_names(usage, details):
    """Adapters: a counter nobody reported stays None; a total that was dropped is the sum."""
    assert read_usage(usage) == details


def test_each_model_call_is_counted_once():
    """Adapters: the same usage in several messages is one call's; equal usage of two calls is two."""

    def whole(**metadata):
        return ChatMessageContent(role=AuthorRole.ASSISTANT, content="x", metadata=metadata)

    same = CompletionUsage(prompt_tokens=1)
    count = UsageCount()
    for message in (
        whole(usage=same),
        whole(usage=same),
        whole(usage=CompletionUsage(prompt_tokens=1)),
        whole(usage={"input_tokens": 10}, id="r1"),
        whole(usage={"input_tokens": 10}, id="r1"),
        whole(usage=CompletionUsage(prompt_tokens=100), step_id="s1"),
        whole(usage=CompletionUsage(prompt_tokens=100), step_id="s1"),
        whole(usage=None),
        whole(usage="many"),
    ):
        count.take(message)
    assert count.total == UsageDetails(112)


def test_of_a_streams_chunks_the_last_counts():
    """Adapters: a server that reports the usage so far in each chunk is counted once a call."""
    count = UsageCount()
    for attempt, tokens in ((0, 1), (0, 2), (1, 10)):
        usage = CompletionUsage(prompt_tokens=tokens)
        count.take(
            StreamingChatMessageContent(
                role=AuthorRole.ASSISTANT, choice_index=0, metadata={"usage": usage}, function_invoke_attempt=attempt
            )
        )
    assert count.total == UsageDetails(12)
