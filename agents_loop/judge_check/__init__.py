"""Whether the judge of a loop file is worth looping on: the four ways in which write and check fails, as tests.

It needs the extra `cli`, as loop files do.
"""

from agents_loop.judge_check.cases import CaseKind, CasesError, JudgeCase, load_cases
from agents_loop.judge_check.checking import JudgeCheck, JudgeCheckOptions
from agents_loop.judge_check.report import CheckResult, JudgeReport

__all__ = [
    "CaseKind",
    "CasesError",
    "CheckResult",
    "JudgeCase",
    "JudgeCheck",
    "JudgeCheckOptions",
    "JudgeReport",
    "load_cases",
]
