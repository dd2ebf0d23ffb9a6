"""A real HTTP server on loopback that speaks the chat completions API, and misbehaves on demand.

    with FaultServer() as server:
        server.add(Failure(429, headers={"Retry-After": "0"}), Completion("hello"))
        ...  # point a client at server.base_url
        assert server.requests[0].body["model"] == "m"

Replies are used in order; when none is left, `server.default` is given. A `Completion` is streamed where the
request asks for a stream. `server.rejects("json_schema")` makes an endpoint that does not know something.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self, TypeVar
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]
C = TypeVar("C")

CLIENTS = AsyncExitStack()
"""Closes the clients of `closed_later`."""


def closed_later(client: C) -> C:
    """A client of ours or of an SDK's, which a fixture closes after the test.

    One of the OpenAI SDK that is left to the garbage collector closes itself by a task, in whatever test runs then.
    """
    CLIENTS.push_async_exit(client)  # type: ignore[arg-type]
    return client


def sqlite_session(session_id: str) -> Any:
    """A session of the OpenAI Agents SDK, closed in the same way: an open connection that is dropped is a warning."""
    from agents.memory import SQLiteSession

    session = SQLiteSession(session_id)
    CLIENTS.callback(session.close)
    return session


@dataclass(frozen=True)
class RecordedRequest:
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    """By lower-case name."""
    body: Json


@dataclass(frozen=True, kw_only=True)
class Completion:
    """A proper reply, whole or streamed as the request asks."""

    content: Any = ""
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: tuple[Json, ...] = ()
    finish_reason: str | None = "stop"
    usage: Json | None = None
    logprobs: Json | None = None
    extra: Json = field(default_factory=dict)
    """Further fields of the message."""

    def whole(self) -> Json:
        message: Json = {"role": "assistant", "content": self.content, **self.extra}
        if self.reasoning is not None:
            message["reasoning_content"] = self.reasoning
        if self.refusal is not None:
            message["refusal"] = self.refusal
        if self.tool_calls:
            message["tool_calls"] = list(self.tool_calls)
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason, "logprobs": self.logprobs}
        whole: Json = {**_head("chat.completion"), "choices": [choice]}
        return whole if self.usage is None else {**whole, "usage": self.usage}

    def chunks(self) -> list[Json]:
        """As OpenAI streams: the role, pieces of each part, the finish reason, the usage with no choices."""
        deltas: list[Json] = [{"role": "assistant", "content": ""}]
        deltas += [{"reasoning_content": piece} for piece in _pieces(self.reasoning)]
        deltas += [{"content": piece} for piece in _pieces(self.content)]
        deltas += [{"refusal": piece} for piece in _pieces(self.refusal)]
        for index, call in enumerate(self.tool_calls):
            function = call["function"]
            deltas.append(_call_delta(index, "", id=call["id"], name=function["name"]))
            deltas += [_call_delta(index, piece) for piece in _pieces(function["arguments"])]
        chunks = [chunk(delta) for delta in deltas]
        if self.logprobs is not None:
            chunks[1]["choices"][0]["logprobs"] = self.logprobs
        chunks.append(chunk({}, finish_reason=self.finish_reason))
        if self.usage is not None:
            chunks.append({**_head("chat.completion.chunk"), "choices": [], "usage": self.usage})
        return chunks


@dataclass(frozen=True)
class Failure:
    """An HTTP error with the body that OpenAI gives it."""

    status: int
    message: str = "no"
    code: str | None = None
    param: str | None = None
    inner: Json | None = None
    """Azure's `innererror`."""
    headers: dict[str, str] = field(default_factory=dict)
    body: Json | None = None
    """Instead of OpenAI's form."""

    def whole(self) -> Json:
        error: Json = {"message": self.message, "type": "error", "param": self.param, "code": self.code}
        if self.inner is not None:
            error["innererror"] = self.inner
        return self.body if self.body is not None else {"error": error}


@dataclass(frozen=True)
class Stream:
    """Events as they stand, and how the stream ends after them."""

    events: tuple[Json, ...]
    end: Literal["done", "closed", "torn", "held"] = "done"
    """`[DONE]`; closed in order but without it; torn inside the body; held open until the client leaves."""


@dataclass(frozen=True)
class Raw:
    """A body as it stands."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200


@dataclass(frozen=True)
class Silence:
    """No answer at all until the client gives up."""


Reply = Completion | Failure | Stream | Raw | Silence


class FaultServer:
    """Serves on its own threads, so clients of any event loop or process may ask it."""

    def __init__(self) -> None:
        self.requests: list[RecordedRequest] = []
        self.default: Reply = Completion(content="ok")
        self.answer: Callable[[RecordedRequest], Reply] | None = None
        """Gives the replies in place of the queue, where requests come at once and in no order."""
        self.keep_alive = False
        self.asked = threading.Event()
        """Set when the first request has come."""
        self.client_left = threading.Event()
        """Set when the client has closed the connection of a held stream, or in a silence."""
        self._replies: deque[Reply] = deque()
        self._rejected: set[str] = set()
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.faults = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    @property
    def bodies(self) -> list[Json]:
        return [request.body for request in self.requests]

    def add(self, *replies: Reply) -> None:
        self._replies.extend(replies)

    def rejects(self, *names: str) -> None:
        """Answer 400 to requests with these parameters, or these types of `response_format`."""
        self._rejected.update(names)

    def reply_to(self, request: RecordedRequest) -> Reply:
        self.requests.append(request)
        self.asked.set()
        used = request.body.keys() | {(request.body.get("response_format") or {}).get("type")}
        for name in sorted(self._rejected & used):
            param = "response_format" if name.startswith("json") else name
            return Failure(400, f"Unsupported: {name!r} is not supported with this model.", param=param)
        if self.answer is not None:
            return self.answer(request)
        return self._replies.popleft() if self._replies else self.default

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def chunk(delta: Json, *, finish_reason: str | None = None, usage: Json | None = None) -> Json:
    """One event of a stream."""
    choices = [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
    event: Json = {**_head("chat.completion.chunk"), "choices": choices}
    return event if usage is None else {**event, "usage": usage}


def usage(prompt: int, completion: int, **details: Json) -> Json:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        **details,
    }


def _head(kind: str) -> Json:
    return {"id": "reply-1", "object": kind, "created": 1_700_000_000, "model": "served-model"}


def _pieces(text: str | None) -> Iterator[str]:
    for start in range(0, len(text or ""), 4):
        yield (text or "")[start : start + 4]


def _call_delta(index: int, arguments: str, *, id: str | None = None, name: str | None = None) -> Json:  # noqa: A002 - as on the wire
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    call: Json = {"index": index, "function": function}
    return {"tool_calls": [call if id is None else {**call, "id": id, "type": "function"}]}


class _Http(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True
    faults: FaultServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves early is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http
    timeout = 30

    def do_POST(self) -> None:
        parts = urlsplit(self.path)
        read = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = RecordedRequest(parts.path, parse_qs(parts.query), headers, json.loads(read))
        reply = self.server.faults.reply_to(request)
        match reply:
            case Completion() if request.body.get("stream"):
                self._stream(Stream(tuple(reply.chunks())))
            case Completion():
                self._send(200, json.dumps(reply.whole()).encode())
            case Failure():
                self._send(reply.status, json.dumps(reply.whole()).encode(), **reply.headers)
            case Stream():
                self._stream(reply)
            case Raw():
                self._send(reply.status, reply.body, **{"Content-Type": reply.content_type})
            case Silence():
                self._wait_for_leaving()

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self._start(status, {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers})
        self.wfile.write(body)

    def _stream(self, stream: Stream) -> None:
        self._start(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        if stream.end == "held":
            with suppress(ConnectionError):  # the client may leave while events are still being sent
                self._events(stream)
            self._wait_for_leaving()
            return
        self._events(stream)
        match stream.end:
            case "done":
                self._event("[DONE]")
                self.wfile.write(b"0\r\n\r\n")
            case "closed":
                self.wfile.write(b"0\r\n\r\n")
            case "torn":
                self.close_connection = True

    def _events(self, stream: Stream) -> None:
        for event in stream.events:
            self._event(json.dumps(event))

    def _wait_for_leaving(self) -> None:
        with suppress(ConnectionError):  # a client that leaves with events unread resets the connection
            self.connection.recv(1)
        self.server.faults.client_left.set()
        self.close_connection = True

    def _event(self, data: str) -> None:
        line = f"data: {data}\n\n".encode()
        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")

    def _start(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        if not self.server.faults.keep_alive:
            headers = {**headers, "Connection": "close"}
            self.close_connection = True
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Tests look at `requests`."""
