from __future__ import annotations

import asyncio
import functools
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from fakes import Way
from pydantic import AfterValidator, BaseModel, Field

from agents_loop import (
    AgentSession,
    BudgetExceededError,
    ChatClientAgent,
    ChatMessage,
    ChatResponse,
    ConfigurationError,
    FunctionCallContent,
    FunctionResultContent,
    FunctionTool,
    ToolContext,
    tool,
)
from agents_loop.testing import ScriptedChatClient
from agents_loop.tools import as_tool


class Place(BaseModel):
    city: str
    zip: str | None = None


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


def picky(value: int) -> int:
    raise KeyError(value)


class Greeter:
    """Greets."""

    def greet(self, name: str) -> str:
        """Say hello."""
        return f"hello {name}"

    async def __call__(self, name: str) -> str:
        return f"hi {name}"


def forecast(
    place: Place,
    days: Annotated[int, Field(description="how many days", ge=1)] = 3,
    *,
    unit: Unit = Unit.CELSIUS,
    detail: Literal["low", "high"] = Field("low", description="how much to say"),
) -> str:
    """Say what the weather will be."""
    return f"{place.city} {days} {unit.name} {detail}"


def call(arguments: Any = None, name: str = "f") -> FunctionCallContent:
    return FunctionCallContent("call-1", name, arguments)


async def result_of(function: Any, arguments: Any = None, **given: Any) -> Any:
    result = await FunctionTool.of(function, **given).run(call(arguments))
    assert result.call_id == "call-1"
    return result.result


# The schema


def test_the_schema_of_a_function():
    """Tools: annotations, `Annotated` descriptions and defaults are the schema; the docstring is the description."""
    made = FunctionTool.of(forecast)
    assert (made.name, made.description, made.approval_required) == (
        "forecast",
        "Say what the weather will be.",
        False,
    )
    schema = made.parameters
    assert (schema["type"], schema["required"], schema["additionalProperties"]) == ("object", ["place"], False)
    assert list(schema["properties"]) == ["place", "days", "unit", "detail"]
    assert schema["properties"]["days"] == {
        "type": "integer",
        "description": "how many days",
        "minimum": 1,
        "default": 3,
    }
    assert schema["properties"]["detail"] == {
        "type": "string",
        "description": "how much to say",
        "enum": ["low", "high"],
        "default": "low",
    }
    assert schema["$defs"]["Place"]["required"] == ["city"]


def test_names_that_pydantic_has_a_use_for():
    """Tools: a parameter may be called anything that Python allows."""

    def f(json: int, schema: str, _hidden: bool, model_config: int = 1) -> None: ...

    assert list(FunctionTool.of(f).parameters["properties"]) == ["json", "schema", "_hidden", "model_config"]


def test_a_function_without_parameters_or_annotations():
    """Tools: no parameters are an object without properties; no annotation takes any value."""
    assert FunctionTool.of(lambda: None, name="f").parameters == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    assert FunctionTool.of(lambda x, y=Greeter: None, name="f").parameters["properties"] == {"x": {}, "y": {}}


@pytest.mark.parametrize(
    ("function", "given", "said"),
    [
        (lambda: None, {}, "<lambda>"),
        (lambda: None, {"name": "a b"}, "'a b'"),
        (lambda: None, {"name": ""}, "''"),
        (lambda *args: None, {"name": "f"}, r"\*args"),
        (lambda **rest: None, {"name": "f"}, r"\*\*rest"),
        (lambda x, /: None, {"name": "f"}, "by name"),
        (Greeter.greet, {}, "bound method"),
    ],
)
def test_what_can_not_be_a_tool(function: Any, given: dict[str, Any], said: str):
    """Tools: a name that can't be sent, and a parameter that can't be filled by name, are errors that name it."""
    with pytest.raises(ConfigurationError, match=said):
        FunctionTool(function, **given)


def test_annotations_that_can_not_be_read():
    """Tools: an annotation that is not known, or that no JSON stands for, is an error that names the tool."""

    def unknown(x: Nowhere) -> None: ...  # noqa: F821 - that it is unknown is the point

    def opaque(x: threading.Thread) -> None: ...

    def callback(x: Callable[[], int]) -> None: ...

    for function in (unknown, opaque, callback):
        with pytest.raises(ConfigurationError, match=function.__name__):
            FunctionTool(function)
    with pytest.raises(TypeError, match="callable"):
        FunctionTool("f")


def test_the_decorator():
    """Tools: `@tool` with and without options; a plain function is wrapped, a tool and a mapping stay as they are."""

    @tool
    def one() -> None:
        """The first."""

    @tool(name="zwei", description="The second.", approval_required=True)
    def two() -> None: ...

    assert (one.name, one.description, one.approval_required) == ("one", "The first.", False)
    assert (two.name, two.description, two.approval_required) == ("zwei", "The second.", True)
    assert as_tool(one) is one
    assert as_tool(declared := {"type": "web_search"}) is declared
    assert as_tool(forecast).name == "forecast"
    assert repr(one) == "FunctionTool('one')"
    with pytest.raises(TypeError, match="tool"):
        as_tool("forecast")


@pytest.mark.parametrize(
    ("function", "name", "description", "said"),
    [
        (Greeter().greet, "greet", "Say hello.", "hello Ann"),
        (Greeter(), "Greeter", "Greets.", "hi Ann"),
        (functools.partial(Greeter().greet), "greet", "Say hello.", "hello Ann"),
    ],
)
async def test_any_callable(function: Any, name: str, description: str, said: str):
    """Tools: a method, a callable object and a partial are functions too."""
    made = FunctionTool(function)
    assert (made.name, made.description) == (name, description)
    assert list(made.parameters["properties"]) == ["name"]
    assert (await made.run(call({"name": "Ann"}))).result == said


async def test_what_a_partial_binds():
    """Tools: what a partial binds, by place or by name, is hidden from the model and can't be changed by it."""

    def order(user: str, item: str, count: int = 1) -> str:
        return f"{count} {item} for {user}"

    for bound in (functools.partial(order, user="Ann"), functools.partial(order, "Ann")):
        made = FunctionTool(bound)
        assert list(made.parameters["properties"]) == ["item", "count"]
        assert (await made.run(call({"item": "pen"}))).result == "1 pen for Ann"
        result = (await made.run(call({"item": "pen", "user": "Bob"}))).result
        assert result == "Error: the arguments of 'order' are wrong: user: Extra inputs are not permitted"


@pytest.mark.parametrize("function", [max, dict, int])
def test_what_has_no_signature(function: Any):
    """Tools: a builtin whose parameters Python does not know is an error that names it."""
    with pytest.raises(ConfigurationError, match=f"{function.__name__}'.*does not say"):
        FunctionTool(function)


# Running


async def test_arguments_are_validated_and_converted():
    """Tools: the function sees values of its types, and its defaults, also where the model wrote a str."""
    assert await result_of(forecast, {"place": {"city": "Oslo"}}) == "Oslo 3 CELSIUS low"
    assert await result_of(forecast, '{"place": {"city": "Oslo"}, "unit": "f", "days": 1}') == "Oslo 1 FAHRENHEIT low"


@pytest.mark.parametrize("arguments", [None, {}, "", " \n", "{}", "null", " null "])
async def test_no_arguments(arguments: Any):
    """Tools: nothing, in whatever way a model or a server writes it, is no arguments."""
    assert await result_of(lambda: "ran", arguments, name="f") == "ran"
    assert "place: Field required" in await result_of(forecast, arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("{", "Invalid JSON"),
        ("[]", "object"),
        ({}, "place: Field required"),
        ({"place": {"city": "Oslo"}, "days": 0}, "days: Input should be greater than or equal to 1"),
        ({"place": {}, "days": "x"}, "place.city: Field required; days: Input should be a valid integer"),
        ({"place": {"city": "Oslo"}, "dayz": 1}, "dayz: Extra inputs are not permitted"),
    ],
)
async def test_wrong_arguments(arguments: Any, said: str):
    """Tools: wrong arguments are an error for the model that says what is wrong and where; the function is not run."""
    result = await result_of(forecast, arguments)
    assert result.startswith("Error: the arguments of 'forecast' are wrong: ")
    assert said in result
    assert "pydantic" not in result


async def test_arguments_that_say_two_things():
    """Tools: a text with a key twice is wrong, whatever a parser would make of it; the function is not run."""

    def f(x: int) -> int:
        return x

    assert (await result_of(f, '{"x": 1, "x": 2}')).endswith("the key 'x' is given twice")
    assert await result_of(f, '{"x": 1}') == 1


async def test_arguments_that_are_no_object():
    """Tools: whatever a client took for arguments, and whatever a validator raises, is an error for the model."""

    async def f(x: Annotated[int, AfterValidator(picky)]) -> None: ...

    assert "valid dictionary" in await result_of(f, [1])
    assert await result_of(f, {"x": 1}) == "Error: the arguments of 'f' are wrong: KeyError: 1"


async def test_a_sync_function_runs_in_a_thread():
    """Tools: a sync function does not hold up the event loop; an async one runs in it."""
    seen: list[int] = []

    async def in_the_loop() -> None:
        seen.append(threading.get_ident())

    await result_of(lambda: seen.append(threading.get_ident()), name="f")
    await result_of(in_the_loop)
    assert seen[0] != seen[1] == threading.get_ident()


async def test_a_sync_function_that_gives_an_awaitable():
    """Tools: what a function gives is awaited if it can be."""

    async def later() -> str:
        return "later"

    assert await result_of(lambda x=1: later(), name="f") == "later"


@dataclass
class Point:
    x: int
    on: date


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("given", "result"),
    [
        (None, None),
        ("text", "text"),
        (Text("text"), "text"),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "\U0001f600"),
        ({"a": [1, 2.5, True]}, {"a": [1, 2.5, True]}),
        (Place(city="Oslo"), {"city": "Oslo", "zip": None}),
        ([Point(1, date(2024, 2, 1))], [{"x": 1, "on": "2024-02-01"}]),
        (float("nan"), None),
        (b"\xff", "_w=="),
        (Unit.CELSIUS, "c"),
        ({1}, [1]),
    ],
)
async def test_a_result_is_a_json_value(given: Any, result: Any):
    """Tools: models, dataclasses, dates and the like become JSON values; a str stays, but for half characters."""
    got = await result_of(lambda: given, name="f")
    assert got == result
    assert type(got) is type(result)


async def test_a_result_that_json_does_not_know():
    """Tools: anything else is its text."""
    assert (await result_of(lambda: {"lock": threading.Lock()}, name="f"))["lock"].startswith("<unlocked")


@pytest.mark.parametrize("error", [ValueError("no such city"), StopIteration("stop"), TimeoutError("slow")])
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_failing_tool(error: Exception, is_async: bool, caplog: pytest.LogCaptureFixture):
    """Tools: an exception is an error for the model, without a traceback; the log has the traceback."""

    def fails() -> None:
        raise error

    async def fails_later() -> None:
        raise error

    with caplog.at_level(logging.WARNING, "agents_loop"):
        result = await result_of(fails_later if is_async else fails, name="f")
    assert result.startswith("Error: 'f' failed: ")
    assert str(error) in result or "StopIteration" in result
    assert "Traceback" not in result
    assert caplog.records[0].exc_info is not None


@pytest.mark.parametrize("error", [BudgetExceededError("spent"), KeyboardInterrupt(), SystemExit(3)])
@pytest.mark.parametrize("is_async", [False, True])
async def test_what_is_not_swallowed(error: BaseException, is_async: bool):
    """Tools: a limit on spending, an interrupt and an exit are no result."""

    def fails() -> None:
        raise error

    async def fails_later() -> None:
        raise error

    with pytest.raises(type(error)):
        await result_of(fails_later if is_async else fails)


async def waits_for_what_is_cancelled() -> None:
    inner = asyncio.ensure_future(asyncio.sleep(60))
    inner.cancel()
    await inner


@pytest.mark.parametrize("number", [1, 2])
async def test_a_cancellation_within_a_tool(invoke: Way, number: int):
    """Tools: a tool that awaits something cancelled is a failing tool; the run, and the tools beside it, go on."""
    asked = [FunctionCallContent(f"c{n}", "f", None) for n in range(number)]
    client = ScriptedChatClient([ChatResponse([ChatMessage("assistant", asked)]), "recovered"])
    agent = ChatClientAgent(client, tools=[FunctionTool(waits_for_what_is_cancelled, name="f")])
    response = await invoke(agent, "go")
    assert response.text == "recovered"
    assert [content.result for content in response.messages[1].contents] == [
        "Error: 'f' failed: CancelledError: "
    ] * number


async def test_a_cancellation_of_the_run():
    """Tools: where the run is cancelled no tool makes a result of it."""
    running = asyncio.ensure_future(result_of(asyncio.sleep, {"delay": 60}))
    await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await result_of(asyncio.sleep, {"delay": 60})


class Mute(Exception):  # noqa: N818 - as a caller may name it
    def __str__(self) -> str:
        raise ValueError("nothing to say")


def mute(value: int) -> int:
    raise Mute(value)


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_error_without_words(is_async: bool):
    """Tools: an exception that can't be made a text is told by its type, from a function and from a validator."""

    async def fails_later() -> None:
        raise Mute

    async def f(x: Annotated[int, AfterValidator(mute)]) -> None: ...

    assert await result_of(fails_later if is_async else lambda: mute(1), name="f") == "Error: 'f' failed: Mute"
    assert await result_of(f, {"x": 1}) == "Error: the arguments of 'f' are wrong: Mute"


async def test_an_error_with_half_a_character():
    """Tools: what a function's error says can be sent."""

    async def f() -> None:
        raise ValueError("a\ud800b")

    assert await result_of(f) == "Error: 'f' failed: ValueError: a\ufffdb"


async def test_generators():
    """Tools: what a generator yields is collected, sync or async; a sync one runs in a thread to its end."""
    seen: list[int] = []

    def count(n: int) -> Any:
        for number in range(n):
            seen.append(threading.get_ident())
            yield number

    async def count_later(n: int) -> Any:
        for number in range(n):
            yield Place(city=str(number))

    assert await result_of(count, {"n": 3}) == [0, 1, 2]
    assert threading.get_ident() not in seen
    places = [{"city": "0", "zip": None}, {"city": "1", "zip": None}]
    assert await result_of(count_later, {"n": 2}) == places
    assert await result_of(lambda: count_later(2), name="f") == places


async def test_a_generator_that_fails():
    """Tools: an error while a generator runs is the tool's; a limit on spending is raised; what is left is closed."""
    closed: list[str] = []

    async def fails(error: str) -> Any:
        try:
            yield 1
            raise ValueError("stuck") if error == "value" else BudgetExceededError("spent")
        finally:
            closed.append(error)

    assert await result_of(fails, {"error": "value"}) == "Error: 'fails' failed: ValueError: stuck"
    with pytest.raises(BudgetExceededError):
        await result_of(fails, {"error": "budget"})
    assert closed == ["value", "budget"]


async def test_the_context_of_a_call():
    """Tools: a parameter of type `ToolContext` is filled in, wherever it stands, and the model does not see it."""

    def remember(what: str, context: ToolContext, times: int = 1) -> None:
        context.session.state[what] = [context.call.name, context.agent.name, times]

    made = FunctionTool(remember)
    assert list(made.parameters["properties"]) == ["what", "times"]
    agent, session = ChatClientAgent(ScriptedChatClient([]), name="Ann"), AgentSession()
    asked = call({"what": "k"}, "remember")
    result = await made.run(asked, ToolContext(agent=agent, session=session, call=asked))
    assert result == FunctionResultContent("call-1", None)
    assert session.state == {"k": ["remember", "Ann", 1]}
    assert "wrong: context: Extra inputs" in (await made.run(call({"what": "k", "context": 1}))).result


@pytest.mark.parametrize(
    "hint",
    [ToolContext, ToolContext | None, Annotated[ToolContext, "of the call"], Annotated[ToolContext, 1] | None],
    ids=["plain", "optional", "annotated", "optional annotated"],
)
async def test_annotations_of_the_context(hint: Any):
    """Tools: the context is filled in however its annotation is written."""

    async def f(given: Any, what: str) -> str:
        return f"{what} by {given.agent.name}"

    f.__annotations__["given"] = hint
    made = FunctionTool(f)
    assert list(made.parameters["properties"]) == ["what"]
    context = ToolContext(
        agent=ChatClientAgent(ScriptedChatClient([]), name="Ann"), session=AgentSession(), call=call({"what": "it"})
    )
    assert (await made.run(context.call, context)).result == "it by Ann"
