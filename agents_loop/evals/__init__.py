"""Loops measured over a data set: questions, their grades, what the loop adds to the first draft, and what it costs.

It needs the extra `cli`, as loop files do, and the extra `eval` for patterns and comparisons.
"""

from agents_loop.evals.comparing import EvalComparison, compare_results
from agents_loop.evals.grading import Grade
from agents_loop.evals.options import EvalOptions
from agents_loop.evals.questions import Question, QuestionsError, load_questions
from agents_loop.evals.record import CallSum, QuestionRecord
from agents_loop.evals.result import EvalResult, load_result
from agents_loop.evals.running import Evaluation, evaluate_file
from agents_loop.evals.summary import Lift, Side, Summary

__all__ = [
    "CallSum",
    "EvalComparison",
    "EvalOptions",
    "EvalResult",
    "Evaluation",
    "Grade",
    "Lift",
    "Question",
    "QuestionRecord",
    "QuestionsError",
    "Side",
    "Summary",
    "compare_results",
    "evaluate_file",
    "load_questions",
    "load_result",
]
