"""The models on this machine, as the command shows and fetches them."""

from __future__ import annotations

import sys
from pathlib import Path

from agents_loop.chat_client import ChatClient
from agents_loop.cli.streams import is_person_there, write_err, write_out
from agents_loop.cli.text import one_line
from agents_loop.clients.model_files import (
    KNOWN_MODELS,
    ModelNotFoundError,
    default_local_model,
    describe_models,
    find,
    pull,
)
from agents_loop.clients.model_pulling import PullProgress

_MEGABYTE = 1_000_000


def local_client(model: str | None) -> ChatClient:
    """The client of a local model. If it is not here: in a terminal a person is asked, elsewhere it is an error.

    Raises:
        ModelNotFoundError: The model is not on this machine, and is not to be fetched.
    """
    from agents_loop.clients.local import LocalChatClient  # noqa: PLC0415 - an extra

    name = model or default_local_model()
    if name in KNOWN_MODELS and find(name) is None and _wants(name):
        pull_with_progress(name)
    return LocalChatClient(name)


def list_models() -> None:
    """Write the known models to standard output, one a line."""
    rows = describe_models()
    width = max(len(row.name) for row in rows)
    for row in rows:
        here = str(row.path) if row.is_here else f"not here: agents-loop models pull {row.name}"
        size = f"{row.size_bytes / _MEGABYTE:,.0f} MB"
        write_out(f"{row.name:<{width}}  {size:>8}  {row.licence}  {here}\n  {row.description}\n")


def pull_with_progress(name: str) -> Path:
    """Fetch a model; a bar, or in a file plain lines, goes to standard error.

    Raises:
        ModelNotFoundError: The name is not known.
        ModelPullError: It could not be fetched.
    """
    if name not in KNOWN_MODELS or find(name) is not None:
        return pull(name)
    if sys.stderr is not None and sys.stderr.isatty():
        return _pull_with_bar(name)
    write_err(f"pulling {name} ({KNOWN_MODELS[name].size_bytes / _MEGABYTE:,.0f} MB)\n")
    return pull(name, progress=_say_notice)


def _say_notice(progress: PullProgress) -> None:
    if progress.notice:
        write_err(f"{one_line(progress.notice)}\n")


def _pull_with_bar(name: str) -> Path:
    from rich.console import Console  # noqa: PLC0415 - only where there is a terminal
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn  # noqa: PLC0415

    columns = (TextColumn(name, markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=KNOWN_MODELS[name].size_bytes)

        def show(progress: PullProgress) -> None:
            if progress.notice:
                bar.console.print(one_line(progress.notice), markup=False)
            bar.update(task, completed=progress.done_bytes)

        return pull(name, progress=show)


def _wants(name: str) -> bool:
    """Ask the person at the terminal, if there is one."""
    if not is_person_there():
        return False
    size = f"{KNOWN_MODELS[name].size_bytes / _MEGABYTE:,.0f} MB"
    write_err(f"The model {name!r} is not on this machine. Pull it now ({size})? [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


__all__ = ["ModelNotFoundError", "list_models", "local_client", "pull_with_progress"]
