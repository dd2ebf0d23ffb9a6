from __future__ import annotations

import json
from typing import Any

import pytest
from flow_files import call, flow_file, js, llm, run

from agents_loop import LoopResult
from agents_loop.files.flomorphic.errors import FlowNodeError
from agents_loop.files.flomorphic.js import JsLimits
from agents_loop.files.flomorphic.json_text import TooLongError
from agents_loop.files.flomorphic.paths import PathError, read_path
from agents_loop.files.flomorphic.templates import fill
from agents_loop.messages import JsonValue
from agents_loop.testing import ScriptedChatClient


async def context_after(*nodes: dict[str, Any], **inputs: Any) -> dict[str, Any]:
    client = ScriptedChatClient(lambda messages, options: f"heard: {messages[-1].text}")
    return (await run(flow_file(nodes), client, inputs=inputs)).report["context"]


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (js("a", "({ x: 1 })"), {"x": 1, "in": {"n": 1}}),
        (js("a", "({ in: 2 })"), {"in": 2}),
        (js("a", "5"), {"unknow": 5, "in": {"n": 1}}),
        (js("a", "[1]"), {"unknow": [1], "in": {"n": 1}}),
        (js("a", "input.n + 1", scope="$.in", key="n"), {"in": {"n": 2}}),
        (js("a", "({ m: input.n })", scope="$.in"), {"in": {"n": 1, "m": 1}}),
        (js("a", "'x'", scope="$.in"), {"in": {"n": 1, "unknow": "x"}}),
        (js("a", "input.in", key="copy"), {"in": {"n": 1}, "copy": {"n": 1}}),
        (js("a", "typeof input", scope="$.new.place", key="k"), {"in": {"n": 1}, "new": {"place": {"k": "undefined"}}}),
        (js("a", "input.in.n = 9; 1", key="k"), {"in": {"n": 1}, "k": 1}),
    ],
)
async def test_where_an_output_lands(node: dict[str, Any], expected: dict[str, Any]):
    """An output lands under its key in its scope; without a key an object is merged, anything else is `unknow`."""
    assert await context_after(node, **{"in": '{"n": 1}'}) == expected


async def test_an_absent_key_is_no_key():
    """A node without a key has none, whatever default a catalogue may have for its kind."""
    assert await context_after(js("a", "({ result: 1, other: 2 })")) == {"result": 1, "other": 2}


async def test_a_scope_of_many_runs_once_for_each():
    """A scope with several values runs the node once for each in turn, which may be no object."""
    given = {"items": '[{"n": 1}, {"n": 2}]', "words": '["a", "b"]'}
    context = await context_after(
        js("a", "input.n * 10", scope="$.items[*]", key="tens"),
        js("b", "input + '!'", scope="$.words[*]"),
        js("c", "1", scope="$.nothing[*]", key="never"),
        **given,
    )
    assert context == {"items": [{"n": 1, "tens": 10}, {"n": 2, "tens": 20}], "words": ["a!", "b!"]}


async def test_this_is_the_element():
    """`{{$this}}` in a text is the element that the node runs on, and `{{$.path}}` still the root."""
    context = await context_after(
        llm("a", "{{$this.name}} of {{$.all}}: {{$this}}", scope="$.items[*]", key="said"),
        items='[{"name": "one"}, {"name": "two"}]',
        all="2",
    )
    asked = [item["said"]["messages"][-1]["content"] for item in context["items"]]
    assert asked == ['heard: one of 2: {"name":"one"}', 'heard: two of 2: {"name":"two"}']


async def test_a_node_without_a_key_converses_in_its_scope():
    """Without a key the conversation stands in the scope itself."""
    context = await context_after(llm("a", "hello", scope="$.chat"))

    assert [message["content"] for message in context["chat"]["messages"]] == ["hello", "heard: hello"]
    assert context["chat"]["resumed"] is False


async def test_a_conversation_is_seeded_once():
    """What stands in the slot is gone on with, templates and all; a node that clears its history begins anew."""
    grows, clears = llm("g", "n is {{$.n}}", key="grows"), llm("c", "n is {{$.n}}", key="clears", clear=True)
    count = js("count", "input.n + 1", key="n")
    twice = js("again", "1", key="done")
    nodes = [js("zero", "0", key="n"), grows, clears, count, twice]
    edges = [("start", "zero"), ("zero", "g"), ("g", "c"), ("c", "count"), ("count", "again")]
    again = [{**grows, "ref": "g2"}, {**clears, "ref": "c2"}]
    loop_file = flow_file([*nodes, *again], *edges, ("again", "g2"), ("g2", "c2"))
    client = ScriptedChatClient(lambda messages, options: f"heard: {messages[-1].text}")
    context = (await run(loop_file, client)).report["context"]

    assert [message["content"] for message in context["grows"]["messages"]] == [
        "n is 0",
        "heard: n is 0",
        "heard: heard: n is 0",
    ]
    assert (context["grows"]["resumed"], context["clears"]["resumed"]) == (True, False)
    assert [message["content"] for message in context["clears"]["messages"]] == ["n is 1", "heard: n is 1"]


async def test_a_conversation_may_be_written_by_scripts():
    """A script may write a whole conversation: roles, contents of any kind, calls and their results."""
    script = """({ a: { messages: [
        { role: 'system', content: 'be' },
        { content: { x: 1 } },
        { role: 'assistant', content: null, tool_calls: [{ name: 'f', arguments: '{}' }, { id: 'c9', name: 'g' }] },
        { role: 'tool', tool_call_id: 'c9', content: 'nine' },
        { role: 'tool', content: 'first' },
        { role: 'user', content: 'go on' },
    ] } })"""
    client = ScriptedChatClient(["done"])
    result = await run(flow_file([js("s", script), llm("a", key="a")]), client)

    sent = client.calls[0].messages
    assert [message.role for message in sent] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert sent[1].text == '{"x":1}'
    assert [content.arguments for content in sent[2].contents] == ["{}", "{}"]
    results = [content for message in sent if message.role == "tool" for content in message.contents]
    assert [(each.call_id, each.result) for each in results] == [("c9", "nine"), ("call-2-0", "first")]
    assert [message.text for message in result.iterations[0].on_behalf_of] == ["go on"]


async def test_blank_messages_are_left_out():
    """A message that is blank once it is filled in is not sent."""
    context = await context_after(llm("a", "hello", system="{{$.empty}} ", key="a"), empty="")

    assert [message["role"] for message in context["a"]["messages"]] == ["user", "assistant"]


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([llm("a", "", system="be kind", key="a")], "there is no message to send"),
        ([llm("a", "hello", key="text")], "where its conversation should be stands 'just text'"),
        ([llm("a", "hello", scope="$.text", key="k")], "is no object"),
        ([js("a", "1", scope="$.text", key="k")], "$.text is no object, so nothing can be put into it"),
        ([js("a", "1", scope="$.list[5]", key="k")], "the context has no place $.list[5] to write to"),
        ([js("s", "({ a: { messages: [1] } })"), llm("a", key="a")], "messages[0] is no message: 1"),
        ([js("s", "({ a: { messages: 'x' } })"), llm("a", key="a")], "`messages` must be a list"),
        (
            [js("s", "({ a: { messages: [{ role: 'boss', content: 'x' }] } })"), llm("a", key="a")],
            "messages[0] has the role 'boss'",
        ),
        (
            [js("s", "({ a: { messages: [{ role: 'assistant', tool_calls: [1] }] } })"), llm("a", key="a")],
            "messages[0].tool_calls[0] is no call: 1",
        ),
        ([js("a", "for (;;) {}")], "it took more than 0.05 s"),
    ],
)
async def test_a_node_that_fails_is_named_and_harms_nothing(nodes: list[dict[str, Any]], said: str):
    """A node that fails ends the run with an error that names it; the context is as it was before it."""
    loop_file = flow_file(nodes)
    loop_file.js_limits = JsLimits(time_s=0.05)
    inputs = {"text": "just text", "list": "[]"}
    with pytest.raises(FlowNodeError, match="the node 'a' failed") as caught:
        await run(loop_file, ScriptedChatClient(["never"]), inputs=inputs)

    assert said in str(caught.value)
    result = LoopResult.of(caught.value)
    assert result is not None
    assert result.stop_reason == "failed"
    context = result.report["context"]
    assert (context["text"], context["list"]) == ("just text", [])


async def test_a_context_that_grows_and_grows_is_an_error(monkeypatch: pytest.MonkeyPatch):
    """Scripts that double the context each time end with an error before the memory does."""
    monkeypatch.setattr("agents_loop.files.flomorphic.context.MOST_CHARS", 10_000)
    doubling = js("a", "({ text: (input.text || 'x') + (input.text || 'x') })")
    with pytest.raises(FlowNodeError, match="the context has grown to more than 10,000 characters"):
        await run(flow_file([doubling], ("start", "a"), ("a", "a")), ScriptedChatClient([]))


async def test_inputs_are_the_first_context():
    """An input is a value of the context: text, or what a text says that is JSON of an object or a list."""
    loop_file = flow_file([js("a", "1", key="k")])
    no_json = {"c": "[x", "d": "5", "e": 5, "f": "[NaN]", "g": "[1e999]", "h": "[" * 100 + "]" * 100}
    result = await run(loop_file, ScriptedChatClient([]), inputs={"a": '{"b": [1]}', **no_json})

    assert result.report["context"] == {"a": {"b": [1]}, **no_json, "k": 1}
    assert json.loads(result.output) == result.report["context"]


def test_an_input_that_nothing_names_is_told():
    """Inputs whose names stand nowhere in the flow are unused."""
    loop_file = flow_file([js("a", "input.topic + _get('$.tone')"), llm("b", "{{$.style}}", scope="$.place")])
    given = dict.fromkeys(["topic", "tone", "style", "place", "top"], "x")

    assert loop_file.unused_inputs(given) == ["top"]


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{{$.a.b}} and {{ $.a.b }}", "text and text"),
        ("{{$.a}}", '{"b":"text","n":[1,null,true]}'),
        ("{{$.a.n[0]}}|{{$.a.n[1]}}|{{$.a.n}}", "1|null|[1,null,true]"),
        ("{{$.missing}} {{$.a.b.c}}", "{{$.missing}} {{$.a.b.c}}"),
        ("{{$.list[*].x}}", "[1,2]"),
        ("{{$.none[*].x}}", "{{$.none[*].x}}"),
        ("{{$.tricky}}", "{{$.a.b}}"),
        ("{{a}} {$.a.b} {{ $.a.b", "{{a}} {$.a.b} {{ $.a.b"),
        ("{{$this.x}} {{$this}} {{$thisx}}", '7 {"x":7} {{$thisx}}'),
        ("{{\n$.a.b\n}}", "text"),
        ("{{$.a.__class__}} {{$.a['__proto__']}}", "{{$.a.__class__}} {{$.a['__proto__']}}"),
        ("{{$.größe}}", "1,8 m"),
    ],
)
def test_templates(text: str, filled: str):
    """Texts are inlined as they are, the rest as JSON; what leads nowhere stays; what is filled in is no template."""
    root = {
        "a": {"b": "text", "n": [1, None, True]},
        "list": [{"x": 1}, {"x": 2}],
        "tricky": "{{$.a.b}}",
        "größe": "1,8 m",
    }
    assert fill(text, root, {"x": 7}) == filled


def test_a_hostile_template_takes_no_time():
    """Many openings without an end are read in a time that grows with the text."""
    text = "{{$" * 100_000 + "{{ " + " " * 100_000
    assert fill(text, {}, {}) == text


def test_the_values_in_a_message_are_bounded(monkeypatch: pytest.MonkeyPatch):
    """A text that holds the same long value again and again is an error before it is a text, and so are many values."""
    monkeypatch.setattr("agents_loop.files.flomorphic.templates.MOST_CHARS", 1_000)
    root: JsonValue = {"a": "x" * 500, "b": [*["y" * 300] * 3]}

    assert fill("{{$.a}} {{$.a}}", root, {}) == "x" * 500 + " " + "x" * 500
    assert len(fill("{{$.b}}", root, {})) == 910
    for text in ("{{$.a}}" * 3, "{{$.b}}{{$.b}}", "{{$..*}}"):
        with pytest.raises(TooLongError, match="the values in one message are longer than 1,000 characters"):
            fill(text, root, {})


async def test_models_do_not_make_the_context_grow_without_end(monkeypatch: pytest.MonkeyPatch):
    """Messages that hold the whole context, which holds them, end the run as scripts that double it do."""
    monkeypatch.setattr("agents_loop.files.flomorphic.context.MOST_CHARS", 10_000)
    nodes = [llm("a", "{{$}}", key="a", clear=True), llm("b", "{{$}}", key="b", clear=True)]
    with pytest.raises(FlowNodeError, match="the context has grown to more than 10,000 characters"):
        await run(flow_file(nodes, ("start", "a"), ("a", "b"), ("b", "a")), ScriptedChatClient(["\\"] * 50))


@pytest.mark.parametrize(
    "path",
    [
        "",
        "a",
        "$.",
        "$..a..b",
        "$[0,1]",
        "$[?match(@.a, 'x')]",
        "$[?@.a == $.b]",
        "$[?length(@) > 1]",
        "$" + ".a" * 300,
    ],
)
def test_paths_that_are_none_or_slow_are_refused(path: str):
    """What is no path is refused, and so is what could take very long."""
    with pytest.raises(PathError):
        read_path(path)


def test_a_document_that_is_too_deep_is_an_error():
    """A descent into something nested very deep ends with an error of ours."""
    deep: Any = 1
    for _ in range(500):
        deep = {"a": deep}
    with pytest.raises(PathError, match="can't be followed"):
        read_path("$..b").value(deep)


def test_what_stands_in_quotes_is_text():
    """Signs that a path may not have are taken within quotes."""
    assert read_path("$['a,b($)..']").value({"a,b($)..": 1}) == (1,)
    assert read_path("$[?@.p == '$1,0']").value([{"p": "$1,0"}]) == ([{"p": "$1,0"}],)


async def test_arguments_stand_in_the_context_as_a_text():
    """A call's arguments are a text, the JSON that the model wrote, in a flat shape."""
    nodes = [
        llm("j", "choose", "go", key="j"),
        js("end", "JSON.parse(_get('$.j').tool_calls[0].arguments).why", key="why"),
    ]
    result = await run(flow_file(nodes, ("start", "j"), ("j", "end", "go")), ScriptedChatClient([call("go", why="ä")]))
    slot = result.report["context"]["j"]

    assert slot["messages"][-1]["tool_calls"] == [{"id": "c0", "name": "go", "arguments": '{"why":"ä"}'}]
    assert slot["tool_calls"] == slot["messages"][-1]["tool_calls"]
    assert slot["routed"] == ["go"]
    assert result.report["context"]["why"] == "ä"
    assert json.loads(result.to_json())["context"] == result.report["context"]
