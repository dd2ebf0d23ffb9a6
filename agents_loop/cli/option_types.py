"""Options that several commands have, as Typer reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

File: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", help="A loop as a file.", show_default=False)]
Inputs: TypeAlias = Annotated[
    list[str] | None, typer.Option("--input", "-i", metavar="KEY=VALUE", help="A value for the prompts.")
]
Backend: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--backend", metavar="SPEC", help="Who answers: openai, azure, local[:NAME or /path.gguf], scripted:FILE."
    ),
]
Models: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="NAME=SPEC", help="A backend for one model name of the file, or for a glob."),
]
MaxIterations: TypeAlias = Annotated[
    str | None, typer.Option("--max-iterations", metavar="N", help="Instead of the file's.")
]
MaxTokens: TypeAlias = Annotated[
    str | None,
    typer.Option("--max-tokens", metavar="N", help="Input and output tokens at most, instead of the file's."),
]
MaxCost: TypeAlias = Annotated[
    str | None, typer.Option("--max-cost", metavar="USD", help="US dollars at most, instead of the file's.")
]
PriceOf: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--price", metavar="NAME=IN,OUT", help="What a model costs: US dollars for a million tokens."),
]
Deadline: TypeAlias = Annotated[
    str | None, typer.Option("--deadline", metavar="SECONDS", help="How long the run may take.")
]
ReturnBest: TypeAlias = Annotated[
    bool, typer.Option("--return-best", help="Where no draft satisfies, give the best one instead of the last.")
]
Trace: TypeAlias = Annotated[
    Path | None, typer.Option("--trace", metavar="FILE.jsonl", help="Write each event to a file.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Write the whole result as one JSON object.")]
Dry: TypeAlias = Annotated[
    bool, typer.Option("--dry", help="Call no model: show the calls, tokens and cost that it would come to.")
]
Quiet: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="Nothing but errors on standard error.")]
Debug: TypeAlias = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
AllowImports: TypeAlias = Annotated[
    bool,
    typer.Option("--allow-imports", help="Let the file name Python objects: their modules are imported and run."),
]
RunId: TypeAlias = Annotated[
    str | None,
    typer.Option("--run-id", metavar="ID", help="Keep what nodes finish; the same id resumes the run."),
]
RunsDir: TypeAlias = Annotated[
    Path | None, typer.Option("--runs-dir", metavar="DIR", help="Where runs are kept: runs, if it is left out.")
]
Record: TypeAlias = Annotated[
    Path | None, typer.Option("--record", metavar="FILE.jsonl", help="Write each model call and its reply to a file.")
]
Replay: TypeAlias = Annotated[
    Path | None, typer.Option("--replay", metavar="FILE.jsonl", help="Answer from a recorded file; no model is called.")
]
