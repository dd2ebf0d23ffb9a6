"""The folder of a run: what its nodes have finished, by content, and the state from which the run can be resumed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents_loop.errors import AgentsLoopError, ConfigurationError
from agents_loop.file_kinds import why_not_read
from agents_loop.files.atomic import clear_folder, write_whole
from agents_loop.files.file_lock import FileLock
from agents_loop.files.inputs import InputValue

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_VERSION = 1
_STATE = "state.json"
_MAX_STATE_BYTES = 64 << 20
_RESERVED = frozenset({"con", "prn", "aux", "nul"} | {f"{name}{n}" for name in ("com", "lpt") for n in range(10)})
"""What Windows takes for a device, whatever follows a dot."""

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class RunFolderError(AgentsLoopError):
    """What a node has finished can't be kept."""


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class KeptNode(_Closed):
    """A node that is over."""

    type: str
    status: Literal["done", "skipped"]
    artifact: Digest
    """The hash of its output."""
    stop_reason: str | None = None
    """How its loop ended."""
    stop_detail: str | None = None


class _State(_Closed):
    version: Literal[1]
    run_id: str
    file: Digest
    """The hash of what the file says."""
    inputs: dict[str, str | int | float | bool]
    ended: str | None = None
    """The stop reason of the latest attempt; nothing while one goes on, or when it was killed."""
    spent: dict[str, Any] | None = None
    """What all attempts have spent, when the last of their nodes was over or they were; `None` without a budget."""
    nodes: dict[str, KeptNode] = Field(default_factory=dict[str, KeptNode])


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Where a run keeps what its nodes have finished.

    Raises:
        ConfigurationError: The id is none.
    """

    runs_dir: Path
    """The folder that has a folder for each run."""
    run_id: str
    """Letters, digits, `.`, `_` and `-`; the same id resumes the run."""

    def __post_init__(self) -> None:
        is_device = self.run_id.partition(".")[0].lower() in _RESERVED
        if not _ID.fullmatch(self.run_id) or self.run_id.endswith(".") or is_device:
            said = "use at most 100 letters, digits, '.', '_' and '-', and begin with a letter or a digit"
            raise ConfigurationError(f"{self.run_id!r} is no id for a run: {said}")

    @classmethod
    def new(cls, runs_dir: Path) -> RunFolder:
        """The folder of a run that is not there yet."""
        return cls(runs_dir, secrets.token_hex(6))

    @property
    def path(self) -> Path:
        """The run's own folder."""
        return self.runs_dir / self.run_id

    @property
    def mark(self) -> str:
        """What the names of files hold that the run writes beside others, before they take their place."""
        return hashlib.sha256(os.fsencode(self.path.resolve())).hexdigest()[:8]

    def open(self, file: str, inputs: Mapping[str, InputValue], upstream: Mapping[str, Collection[str]]) -> OpenRun:
        """Begin the run, or go on with it. Nobody else can while it is open.

        A node is over if all that come before it are: where one of those is not, what it had put out may be made of
        what will be no more.

        Args:
            file: The hash of what the file says.
            inputs: The values of the inputs.
            upstream: Of each node all that come before it.

        Raises:
            ConfigurationError: Another process has it open; it was begun with another file or other inputs; it ended at
                a budget; or what stands there can't be read.
        """
        lock_path, unusable = self.path / "lock", f"the run folder {str(self.path)!r} can't be used"
        if why := why_not_read(lock_path):
            raise ConfigurationError(f"{unusable}: {lock_path}: {why}")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(lock_path)
        except OSError as error:
            raise ConfigurationError(f"{unusable}: {error.strerror}") from error
        if not lock.acquire():
            raise ConfigurationError(f"the run {self.run_id!r} is under way in another process ({self.path})")
        try:
            state = _whole(self._state(file, dict(inputs)), upstream)
            for folder in (self.path, self.path / "artifacts", self.path / "artifacts" / "sha256"):
                clear_folder(folder)
            return OpenRun(self, lock, state)
        except BaseException:
            lock.release()
            raise

    def _state(self, file: str, inputs: dict[str, InputValue]) -> _State:
        path = self.path / _STATE
        if not path.exists():
            return _State(version=_VERSION, run_id=self.run_id, file=file, inputs=inputs)
        state = self._read(path)
        if state.run_id != self.run_id:
            raise self._broken(f"it is of the run {state.run_id!r}")
        again = "it can only be resumed as it was begun; begin another with a new --run-id"
        if state.file != file:
            raise ConfigurationError(f"the file has changed since the run {self.run_id!r} began: {again}")
        if _typed(state.inputs) != _typed(inputs):
            names = sorted({name for name, _ in set(_typed(state.inputs)) ^ set(_typed(inputs))})
            said = f"the run {self.run_id!r} began with other inputs ({', '.join(names)})"
            raise ConfigurationError(f"{said}: {again}")
        if state.ended == "budget_exceeded":
            said = f"the run {self.run_id!r} ended at its budget, and is not resumed"
            raise ConfigurationError(f"{said}: begin another with a new --run-id (what it finished is in {self.path})")
        return state

    def _read(self, path: Path) -> _State:
        if why := why_not_read(path):
            raise self._broken(why)
        try:
            with path.open("rb") as file:
                content = file.read(_MAX_STATE_BYTES + 1)
            if len(content) > _MAX_STATE_BYTES:
                raise self._broken("it is too big")
            return _State.model_validate_json(content)
        except OSError as error:
            raise self._broken(error.strerror or str(error)) from error
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise self._broken(f"{place}: {first['msg']}" if place else first["msg"]) from error

    def _broken(self, why: str) -> ConfigurationError:
        said = f"the state of the run {self.run_id!r} can't be read ({self.path / _STATE}: {why})"
        return ConfigurationError(f"{said}: begin another with a new --run-id")


class FinishedNode(Protocol):
    """What is kept of a node."""

    type: str
    output: str
    stop_reason: str | None
    stop_detail: str | None


class OpenRun:
    """A run's folder, while the run goes on. Made by `RunFolder.open`."""

    def __init__(self, folder: RunFolder, lock: FileLock, state: _State) -> None:
        self.folder = folder
        self._lock = lock
        self._state = state.model_copy(update={"ended": None})
        self.outputs = {name: self._artifact(name, node.artifact) for name, node in state.nodes.items()}
        """The outputs of the nodes that are over."""
        self._write_state()

    @property
    def nodes(self) -> Mapping[str, KeptNode]:
        """The nodes that are over."""
        return self._state.nodes

    @property
    def spent(self) -> dict[str, Any] | None:
        """What earlier attempts have spent; `None` without a budget."""
        return self._state.spent

    def keep(self, name: str, node: FinishedNode, spent: dict[str, Any] | None, *, is_skipped: bool) -> None:
        """Keep a node that is over.

        Args:
            name: Its id.
            node: The node.
            spent: What the run has spent by now.
            is_skipped: Whether the node did not run.

        Raises:
            RunFolderError: It can't be written.
        """
        content = node.output.encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(content).hexdigest()
        kept = KeptNode(
            type=node.type,
            status="skipped" if is_skipped else "done",
            artifact=digest,
            stop_reason=node.stop_reason,
            stop_detail=node.stop_detail,
        )
        self._state = self._state.model_copy(update={"nodes": {**self._state.nodes, name: kept}, "spent": spent})
        try:
            path = self._path_of(digest)
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                write_whole(path, content)
            index = {each: other.artifact for each, other in self._state.nodes.items()}
            write_whole(self.folder.path / "artifacts" / "index.json", _json(index))
        except OSError as error:
            raise self._unwritten(error) from error
        self._write_state()

    def end(self, reason: str, spent: dict[str, Any] | None) -> None:
        """The run is over.

        Args:
            reason: Its stop reason.
            spent: What it has spent.

        Raises:
            RunFolderError: It can't be written.
        """
        self._state = self._state.model_copy(update={"ended": reason, "spent": spent})
        self._write_state()

    def close(self) -> None:
        """Let others have it."""
        self._lock.release()

    def _write_state(self) -> None:
        try:
            write_whole(self.folder.path / _STATE, _json(self._state.model_dump(mode="json")))
        except OSError as error:
            raise self._unwritten(error) from error

    def _unwritten(self, error: OSError) -> RunFolderError:
        return RunFolderError(f"the run folder {str(self.folder.path)!r} can't be written: {error.strerror}")

    def _path_of(self, digest: str) -> Path:
        return self.folder.path / "artifacts" / "sha256" / f"{digest}.bin"

    def _artifact(self, name: str, digest: str) -> str:
        path = self._path_of(digest)
        if why := why_not_read(path):
            raise self._lost(name, path, why)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise self._lost(name, path, error.strerror or str(error)) from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise self._lost(name, path, "its content is not what was kept")
        try:
            return content.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise self._lost(name, path, "it is no text") from error

    def _lost(self, name: str, path: Path, why: str) -> ConfigurationError:
        said = f"the run {self.folder.run_id!r} can't be resumed: the output of the node {name!r} can't be read"
        return ConfigurationError(f"{said} ({path}: {why}): begin another with a new --run-id")


def _whole(state: _State, upstream: Mapping[str, Collection[str]]) -> _State:
    """The state without nodes that are not the file's, and without those of which one that comes before is not over."""
    over = state.nodes.keys()
    nodes = {name: node for name, node in state.nodes.items() if name in upstream and over >= set(upstream[name])}
    return state.model_copy(update={"nodes": nodes})


def _typed(inputs: Mapping[str, InputValue]) -> list[tuple[str, str]]:
    """Values that can be compared: in Python `True` equals 1, and 1 equals 1.0."""
    return sorted((name, json.dumps(value)) for name, value in inputs.items())


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=True, indent=1).encode()
