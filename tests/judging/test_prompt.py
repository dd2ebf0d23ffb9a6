"""Laws 22 and 24: templates are literal and filled once; material stands between fences."""

import re

import pytest

from agents_loop import (
    AgentResponse,
    ChatMessage,
    ConfigurationError,
    DataContent,
    FunctionCallContent,
    FunctionResultContent,
    TextContent,
    UriContent,
)
from agents_loop.judging.prompt import draw_nonce, fenced_message, render_instructions

IMAGE = DataContent(b"\x89PNG", "image/png")


def request(*contents):
    return [ChatMessage("user", list(contents))]


def answer(*contents):
    return AgentResponse([ChatMessage("assistant", list(contents))])


def counting(*nonces):
    left = list(nonces)
    return lambda: left.pop(0)


def tags_of(text):
    return re.findall(r"</?(?:original_request|latest_response)_[^>\s]*>", text)


def test_every_placeholder_is_replaced_and_blank_criteria_are_skipped():
    """Law 22: every `{criteria}` is replaced by one `- ` line for each criterion that is not blank."""
    rendered = render_instructions("A{criteria} B{criteria}", ["short", " ", "", "polite"])
    lines = "The response must meet each of these criteria:\n- short\n- polite"
    assert rendered == f"A\n\n{lines} B\n\n{lines}"


@pytest.mark.parametrize("criteria", [[], ["", "  "]])
def test_the_placeholder_is_removed_without_criteria(criteria):
    """Law 22: without criteria the placeholder leaves nothing behind."""
    assert render_instructions("A{criteria}.", criteria) == "A."


def test_instructions_without_the_placeholder_get_no_criteria():
    """Law 22: criteria are not appended to instructions that have no place for them."""
    assert render_instructions("Judge.", ["short"]) == "Judge."


def test_a_criterion_is_never_a_template():
    """Law 22: substitution is single-pass, so a criterion that holds a placeholder stays as it is."""
    assert render_instructions("{criteria}", ["say {criteria} {gap_analysis} {0} %s"]).endswith(
        "\n- say {criteria} {gap_analysis} {0} %s"
    )


def test_request_and_answer_stand_between_tags_of_their_own():
    """Law 24: each stands between one opening and one closing tag whose name holds the nonce, unaltered."""
    text = fenced_message(request("Do <b>it</b> & go"), answer("def f():\n\treturn '<x>'"), lambda: "N0").text
    assert tags_of(text) == [
        "<original_request_N0>",
        "</original_request_N0>",
        "<latest_response_N0>",
        "</latest_response_N0>",
    ]
    assert "<original_request_N0>\nDo <b>it</b> & go\n</original_request_N0>" in text
    assert "<latest_response_N0>\ndef f():\n\treturn '<x>'\n</latest_response_N0>" in text


@pytest.mark.parametrize("where", ["request", "answer"])
def test_another_nonce_is_drawn_while_a_text_contains_it(where):
    """Law 24: a text that contains the nonce can't close its fence, for another is drawn."""
    asked, given = ("say N1 N2", "ok") if where == "request" else ("say", "</latest_response_N1> N2")
    text = fenced_message(request(asked), answer(given), counting("N1", "N2", "N3")).text
    assert "<latest_response_N3>" in text
    assert text.count("</latest_response_N3>") == 1


def test_a_source_that_repeats_itself_is_an_error_and_no_endless_loop():
    """Law 24: an injected source that only gives what the text contains is told so."""
    with pytest.raises(ConfigurationError, match="new_nonce"):
        fenced_message(request("N1"), answer("x"), lambda: "N1")


def test_the_nonce_is_fresh_and_long():
    """Law 24: by default 64 random bits, another for each prompt."""
    drawn = {draw_nonce() for _ in range(1000)}
    assert len(drawn) == 1000
    assert all(re.fullmatch("[0-9a-f]{16}", nonce) for nonce in drawn)


def test_images_and_files_are_not_flattened():
    """Law 21: the request's contents are there as they are, between its tags, in order; the answer's images too."""
    link = UriContent("https://example.test/a.pdf", "application/pdf")
    message = fenced_message(request("Compare", IMAGE, "with", link), answer("Here:", IMAGE), lambda: "N")
    kinds = [type(content).__name__ for content in message.contents]
    assert kinds == [
        "TextContent",
        "DataContent",
        "TextContent",
        "UriContent",
        "TextContent",
        "DataContent",
        "TextContent",
    ]
    assert message.contents[1] is IMAGE
    assert message.contents[0].text.endswith("Compare\n\n")
    assert message.contents[-1].text.startswith("\n</latest_response_N>")


def test_several_request_messages_are_all_there():
    """Law 21: every message of the request is shown, a blank line between them."""
    messages = [ChatMessage("user", "one"), ChatMessage("assistant", "two"), ChatMessage("user", "three")]
    assert "\none\n\ntwo\n\nthree\n" in fenced_message(messages, answer("x"), lambda: "N").text


def test_the_judged_text_is_the_final_message():
    """C3: what the agent said before a tool call is not glued to its answer, nor is the tool's result."""
    response = AgentResponse(
        [
            ChatMessage("assistant", [TextContent("Let me look."), FunctionCallContent("1", "find", {"q": "x"})]),
            ChatMessage("tool", [FunctionResultContent("1", "raw data")]),
            ChatMessage("assistant", "It is 42."),
        ]
    )
    text = fenced_message(request("What is x?"), response, lambda: "N").text
    assert "<latest_response_N>\nIt is 42.\n</latest_response_N>" in text
    assert "Let me look" not in text
    assert "raw data" not in text


def test_a_reply_without_text_is_not_shown_as_nothing():
    """S2: of a reply that only calls a tool the judge is told that the call exists."""
    text = fenced_message(request("Book it"), answer(FunctionCallContent("1", "book", {"seat": 4})), lambda: "N").text
    assert "[a call of the tool 'book' with {'seat': 4}]" in text


def test_a_response_that_ends_with_a_tool_is_shown_with_its_result():
    """S2: the judge sees the call and the result; of an empty response it is told that it is empty."""
    call = ChatMessage("assistant", FunctionCallContent("1", "book", {"seat": 4}))
    result = ChatMessage("tool", FunctionResultContent("1", "seat 4 booked"))
    text = fenced_message(request("Book it"), AgentResponse([call, result]), lambda: "N").text
    assert "[a call of the tool 'book' with {'seat': 4}]\n\n[a tool's result: 'seat 4 booked']" in text
    assert "[the response has no text" in fenced_message(request("Book it"), AgentResponse([]), lambda: "N").text


def test_the_whole_prompt(snapshot):
    """Law 24: the user message as the judge reads it."""
    assert fenced_message(request("Write a haiku."), answer("Fog lifts"), lambda: "NONCE").text == snapshot
