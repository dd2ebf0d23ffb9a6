"""A judge's structured answer."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from agents_loop.chat_client import JsonSchemaFormat

DONE_VERDICT_MARKER: Final = "VERDICT: DONE"
MORE_VERDICT_MARKER: Final = "VERDICT: MORE"
"""What a judge without structured output writes; names and wording are the ancestor's (`AIJudgeLoopEvaluator`)."""

UNKNOWN_GAP: Final = "<unknown>"
"""What stands for a gap that the judge did not name, as in the ancestor."""


class JudgeVerdict(BaseModel):
    """Whether the request is answered, and what is missing. On the wire `{"gapAnalysis": ..., "answered": ...}`."""

    model_config = ConfigDict(populate_by_name=True, defer_build=True)

    answered: StrictBool
    gap_analysis: str = Field(default="", alias="gapAnalysis")


VERDICT_FORMAT: Final = JsonSchemaFormat(
    "judge_verdict",
    {
        "type": "object",
        "properties": {
            "gapAnalysis": {
                "type": "string",
                "description": "What the request asks for and the response lacks; empty when nothing is missing.",
            },
            "answered": {
                "type": "boolean",
                "description": "true only if the response fully addresses the request.",
            },
        },
        "required": ["gapAnalysis", "answered"],
        "additionalProperties": False,
    },
)
"""The schema sent to the judge: closed, for strict mode; the gap comes first, so that reasons precede the verdict."""
