from __future__ import annotations

import json
from typing import Any

import pytest

from agents_loop import ConfigurationError
from agents_loop.files.flomorphic.js import JsError, JsLimits, JsOutcome, run_script, syntax_error_in

LIMITS = JsLimits(time_s=0.1, memory_bytes=8 << 20, output_chars=100_000)
CONTEXT = {"a": {"b": [1, 2]}, "none": None}


def get(path: str) -> tuple[Any] | None:
    if path == "$.wrong[":
        raise JsError("_get: no path")
    found: dict[str, Any] = {"$": CONTEXT, "$.a": CONTEXT["a"], "$.none": None}
    return (found[path],) if path in found else None


def outcome(code: str, given: str = '{"x": 1}', limits: JsLimits = LIMITS, *, has_input: bool = True) -> JsOutcome:
    return run_script(code, given, get, limits, has_input=has_input)


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("let eval = 3\nlet q = eval + 1\nq", 4),
        ("input.y = 2\ninput", {"x": 1, "y": 2}),
        ("input = { ...{ a: [1, ...[2, 3]] } }\ninput", {"a": [1, 2, 3]}),
        ("let a = {b: [{c: 7}]}; a.b[0]?.c", 7),
        ("let a; a?.b || 'fallback'", "fallback"),
        ("let n = input.x + 1\n\nn // what lands under the key\n", 2),
        ("if (input.x) { 'yes' } else { 'no' }", "yes"),
        ("let input = 5; input", 5),
        ("undeclared = 2; undeclared", 2),
        ("JSON.parse('{\"p\": null}')", {"p": None}),
        ("[undefined, {a: undefined, b: 1}]", [None, {"b": 1}]),
        ("({d: new Date(0)})", {"d": "1970-01-01T00:00:00.000Z"}),
        ("class Point { constructor() { this.x = 1 } }; new Point()", {"x": 1}),
        ("'\\ud83d'", "\ufffd"),
        ("null", None),
        ("-0", 0),
        ("1e21", 1e21),
    ],
)
def test_the_last_expression_of_a_sloppy_script_is_its_output(code: str, output: Any):
    """A script is a sloppy-mode program: the value of its last expression is the output, without a `return`."""
    assert outcome(code).output == output


def test_every_run_has_a_scope_of_its_own():
    """Nothing of a run is left for the next: a second pass of a loop declares its names anew."""
    code = "let seen = typeof left; globalThis.left = 1; Array.prototype.extra = 1; [seen, [].extra === 1]"

    assert [outcome(code).output for _ in range(2)] == [["undefined", True]] * 2


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("_get('$.a')", {"b": [1, 2]}),
        ("_get('$').a.b.length", 2),
        ("_get('$.none')", None),
        ("String(_get('$.nothing'))", "undefined"),
        ("_get('$.a').b[0] + _get('$.a').b[1]", 3),
        ("let copy = _get('$.a'); copy.b = 0; [copy, _get('$.a')]", [{"b": 0}, {"b": [1, 2]}]),
        ("let found = null; try { found = _get('$.a') } catch (error) { found = 'caught' } found", {"b": [1, 2]}),
        ("let path = '$.' + 'a'; _get(path)", {"b": [1, 2]}),
    ],
)
def test_get_reads_the_root(code: str, output: Any):
    """`_get` gives a copy of what stands at a path of the whole context, and `undefined` where nothing does."""
    assert outcome(code).output == output


def test_log_is_kept_once():
    """What a script logs is kept, once, also where it had to be run again for a path."""
    assert outcome("_log('begun'); _get('$.a'); _log({}); 1").logs == ["begun", "[object Object]"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("while (true) {}", "took more than 0.1 s"),
        ("while (true) { try { while (true) {} } catch (error) {} }", "took more than"),
        ("/^(a+)+$/.test('a'.repeat(50) + 'b')", "took more than"),
        ("Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)", "took more than"),
        ("throw { toString() { for (;;) {} } }", "took more than"),
        ("new Proxy({}, { ownKeys() { for (;;) {} } })", "took more than"),
        ("({ get a() { for (;;) {} } })", "took more than"),
        ("new Array(2 ** 32 - 1).fill(1)", "memory|took more"),
        ("let all = []; while (true) all.push(new Uint8Array(1e6).fill(1))", "memory|took more"),
        ("let text = 'x'; while (true) text += text", "too long|memory"),
        ("function f() { return f() + 1 } f()", "Maximum call stack"),
        ("JSON.parse('['.repeat(1e5) + ']'.repeat(1e5))", "Maximum call stack"),
        ("'x'.repeat(2e5)", "longer than 100000 characters"),
        ("new Array(1e5).fill('abc')", "longer than 100000 characters"),
        ("let a = {}; a.a = a; a", "nested more than 100 deep, or holds itself"),
        ("let x = 1", "it has no value: end it with an expression"),
        ("undefined", "it has no value"),
        ("NaN", "it is NaN"),
        ("({ a: 1 / 0 })", r"it\.a is Infinity"),
        ("() => 1", "it is a function"),
        ("({ a: [() => 1] })", r"it\.a\[0\] is a function"),
        ("({ a: 1n })", r"it\.a is a bigint"),
        ("Symbol('x')", "it is a symbol"),
        ("new Map()", r"\[object Map\]"),
        ("Promise.resolve(1)", r"\[object Promise\]"),
        ("/x/", r"\[object RegExp\]"),
        ("throw new Error('mine')", "Error: mine"),
        ("throw { toString() { throw 1 } }", "can't be shown"),
        ("throw null", "it threw null, or its memory ran out"),
        ("throw 'x'.repeat(1e6)", r"^x{500}\.\.\.$"),
        ("throw { name: 'n'.repeat(1e6), message: 'm' }", r"^n{500}\.\.\.$"),
        ("throw new Error('one\\n\\ttwo')", "^Error: one two$"),
        ("JSON.parse(undefined)", "SyntaxError"),
        ("input.missing.deeper", "TypeError"),
        ("return 3", "SyntaxError"),
        ("let = = 3", "SyntaxError"),
        ("_get({ toString() { return '$.a' } })", "_get takes a path"),
        ("_get()", "_get takes a path"),
        ("_get('$.wrong[')", "_get: no path"),
        ("let n = 0; for (let i = 0; i < 500; i++) { try { _get('$.a' + i) } catch (e) {} } n", "more than 100 paths"),
    ],
)
def test_a_script_that_goes_wrong_says_how(code: str, said: str):
    """Endless loops, memory, recursion and outputs that are no JSON end the script with a clear error."""
    with pytest.raises(JsError, match=said):
        outcome(code)


def test_what_paths_give_is_bounded_as_memory_is():
    """Paths that give the same things again and again end the script as memory does, before they are written out."""
    code = "for (let i = 0; i < 90; i++) { try { _get('$[?@ != ' + i + ']') } catch (e) {} } 1"
    with pytest.raises(JsError, match="it needs more than 4 MB"):
        run_script(code, "{}", lambda path: (["x" * 1_000_000],), JsLimits(memory_bytes=4 << 20), has_input=True)


def test_a_path_with_half_a_character_is_a_path():
    """Half of a surrogate pair in a path is read as the character that stands for what is none."""
    assert outcome("_get('$.\\ud800') === undefined ? 'nothing' : 'some'").output == "nothing"


def test_the_runs_for_paths_share_one_limit():
    """A script that is run again for each path it asks for gets no more time by that."""
    slow = "for (let i = 0; i < 5e5; i++); let n = 0; for (let i = 0; i < 90; i++) n += _get('$.a' + i) ? 1 : 0; n"
    with pytest.raises(JsError, match=r"it took more than 0\.1 s"):
        outcome(slow)


@pytest.mark.parametrize(
    "tricks",
    [
        "Object.prototype.toJSON = () => 1; Array.prototype.toJSON = () => 2; String.prototype.toJSON = () => 3",
        "JSON.stringify = () => '\"forged\"'; JSON.parse = () => 'forged'",
        "globalThis.eval = () => 'forged'; globalThis.String = globalThis.Object = null",
        "Object.keys = () => ['forged']; Array.isArray = () => false",
        "Object.defineProperty(Array.prototype, 0, { set() { throw 1 }, get() { return 'forged' } })",
        "Object.defineProperty(Object.prototype, 'a', { set() { throw 1 } })",
        "Function.prototype.call = Function.prototype.bind = () => 'forged'",
    ],
)
def test_what_a_script_does_to_prototypes_is_its_own_affair(tricks: str):
    """The output and `_get` are what they are, whatever was done to the language's own objects."""
    assert outcome(f"{tricks}\n;({{ 'b': [1, 'x', null], 'c': _get('$.a') }})").output == {
        "b": [1, "x", None],
        "c": {"b": [1, 2]},
    }


def test_a_key_named_proto_is_a_key():
    """`__proto__` in an output is a key as any other."""
    assert outcome('JSON.parse(\'{"__proto__": {"x": 1}}\')').output == {"__proto__": {"x": 1}}


def test_a_script_has_no_host():
    """There is nothing of a host: no modules, no process, no timers, no network, and nothing of what runs it."""
    names = [
        "process",
        "require",
        "std",
        "os",
        "fetch",
        "setTimeout",
        "console",
        "XMLHttpRequest",
        "given",
        "known",
        "call",
        "run",
    ]
    code = ",".join(f"typeof {name}" for name in names)

    assert set(outcome(f"[{code}]").output) == {"undefined"}
    assert outcome("_get.constructor('return typeof given + typeof write')()").output == "undefinedundefined"


def test_input_is_a_copy():
    """What a script does to `input` stays in it; without a value there is `undefined`."""
    assert outcome("input.x = 5; 1").output == 1
    assert outcome("typeof input", has_input=False).output == "undefined"


def test_syntax_is_checked_without_running_anything():
    """A script's syntax is known without a run."""
    assert syntax_error_in("let eval = 1; while (true) {}") is None
    assert syntax_error_in("let a = ;") is not None


@pytest.mark.parametrize(
    ("code", "given", "limits", "said"),
    [
        ("1", json.dumps("x" * 1_000_000), JsLimits(memory_bytes=1 << 20), "needs more than 1 MB"),
        ("'x'.repeat(400_000)", "1", JsLimits(memory_bytes=1 << 20), "needs more than 1 MB|memory"),
        ("1", "[" * 20_000 + "]" * 20_000, JsLimits(), "Maximum call stack|calls itself too deep"),
    ],
)
def test_what_the_harness_can_not_hold_is_a_limit(code: str, given: str, limits: JsLimits, said: str):
    """An input or an output that does not fit is told as the limit that it is."""
    with pytest.raises(JsError, match=said):
        outcome(code, given, limits)


@pytest.mark.parametrize("name", ["time_s", "memory_bytes", "output_chars"])
def test_limits_are_more_than_nothing(name: str):
    """A limit must be a number that is more than 0 and finite."""
    with pytest.raises(ConfigurationError, match=name):
        JsLimits(**{name: 0})
    for wrong in (None, "5", True):
        with pytest.raises(TypeError, match=f"{name} must be a"):
            JsLimits(**{name: wrong})
    for infinite in (float("inf"), float("nan")):
        with pytest.raises((ConfigurationError, TypeError), match=name):
            JsLimits(**{name: infinite})
