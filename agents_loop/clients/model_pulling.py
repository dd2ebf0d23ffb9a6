"""Fetching a model's file: from the first source that has it, checked by its hash, put in place in one step."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from agents_loop.clients.model_sources import ModelSource, SourceError, Transport
from agents_loop.errors import AgentsLoopError

_STALE_AFTER_S = 24 * 3600
_SPARE_BYTES = 16 << 20


class ModelPullError(AgentsLoopError):
    """A model could not be fetched; nothing half-written is left behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """A model that can be pulled by name."""

    name: str
    file_name: str
    """What its file is called in the cache folder."""
    sha256: str
    """64 lower-case hex digits; a file that hashes to anything else is not accepted."""
    size_bytes: int
    licence: str
    """An SPDX identifier."""
    sources: tuple[ModelSource, ...]
    """Tried in this order."""
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PullProgress:
    """How far a pull is."""

    model: str
    source: str
    """The source that is in use, or that has just failed."""
    done_bytes: int
    """What this source gave so far; it starts again at 0 with the next source."""
    total_bytes: int
    notice: str | None = None
    """Something that a person wants to read: a source failed, and what happens next."""


def is_whole(path: Path, model: KnownModel) -> bool:
    """Whether the file is there with its size; its hash was checked when it was put there."""
    return path.is_file() and path.stat().st_size == model.size_bytes


def pull_model(
    model: KnownModel,
    folder: Path,
    *,
    progress: Callable[[PullProgress], None] | None = None,
    transport: Transport | None = None,
) -> Path:
    """Fetch a model into a folder, unless it is there, and return its path. It blocks until done.

    An exception of `progress` (or Ctrl-C) ends the pull and cleans up, as any failure does. Pulls of the same
    model at the same time don't disturb each other: each writes a file of its own, and the last one in place wins.

    Args:
        model: What to fetch, from where, and the hash it must have.
        folder: Where the file goes; made if it is missing.
        progress: Hears about every megabyte, and why a source was given up.
        transport: How bytes are fetched; by default over the network.

    Raises:
        ModelPullError: No source had the file with the right hash, or the disk has no room for it.
    """
    target = folder / model.file_name
    if is_whole(target, model):
        return target
    report = progress or _say_nothing
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelPullError(f"the folder for models can't be made: {error}") from error
    _sweep(folder, model)
    failures: list[str] = []
    for source in model.sources:
        try:
            return _pull_from(source, model, target, report, transport or Transport())
        except SourceError as error:
            failures.append(f"{source.label}: {error}")
            is_last = len(failures) == len(model.sources)
            notice = failures[-1] + ("" if is_last else f"; next: {model.sources[len(failures)].label}")
            report(_progress(model, source, 0, notice))
    raise ModelPullError(f"the model {model.name!r} could not be fetched. " + ". ".join(failures))


def _pull_from(
    source: ModelSource,
    model: KnownModel,
    target: Path,
    report: Callable[[PullProgress], None],
    transport: Transport,
) -> Path:
    _check_room(source, model, target.parent, transport)
    prefix = _scratch_prefix(model)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=target.parent, ignore_cleanup_errors=True) as scratch:
        part = Path(scratch) / model.file_name
        try:
            _write_checked(source, model, part, report, transport)
            part.replace(target)
        except OSError as error:
            raise ModelPullError(f"{target} could not be written: {error}") from error
    return target


def _write_checked(
    source: ModelSource,
    model: KnownModel,
    part: Path,
    report: Callable[[PullProgress], None],
    transport: Transport,
) -> None:
    """Write what the source gives, and accept it only if it is the model's file."""
    digest = hashlib.sha256()
    done = 0
    report(_progress(model, source, 0))
    with part.open("wb") as out, closing(source.chunks(transport, part.parent)) as chunks:
        for chunk in chunks:
            done += len(chunk)
            if done > model.size_bytes:
                raise SourceError(f"it has more than the {model.size_bytes} bytes that are expected")
            digest.update(chunk)
            out.write(chunk)
            report(_progress(model, source, done))
        out.flush()
        os.fsync(out.fileno())
    if digest.hexdigest() != model.sha256:
        raise SourceError(f"its {done} bytes have the SHA-256 {digest.hexdigest()}, not {model.sha256}")


def _check_room(source: ModelSource, model: KnownModel, folder: Path, transport: Transport) -> None:
    needed = model.size_bytes + source.scratch_bytes(model.size_bytes) + _SPARE_BYTES
    free = transport.free_bytes(folder)
    if free < needed:
        raise ModelPullError(
            f"{folder} has {free >> 20} MB free and {model.name!r} needs {needed >> 20} MB. "
            "Free some, or set AGENTS_LOOP_HOME to a folder on another disk"
        )


def _sweep(folder: Path, model: KnownModel) -> None:
    """Remove what pulls left that were killed before they could clean up."""
    for scratch in folder.glob(f"{_scratch_prefix(model)}*"):
        with suppress(OSError):
            if time.time() - scratch.stat().st_mtime > _STALE_AFTER_S:
                shutil.rmtree(scratch)


def _scratch_prefix(model: KnownModel) -> str:
    return f".pulling-{model.file_name}-"


def _progress(model: KnownModel, source: ModelSource, done_bytes: int, notice: str | None = None) -> PullProgress:
    return PullProgress(
        model=model.name,
        source=source.label,
        done_bytes=done_bytes,
        total_bytes=model.size_bytes,
        notice=notice,
    )


def _say_nothing(progress: PullProgress) -> None:
    del progress
