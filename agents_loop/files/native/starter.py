"""A file to begin with."""

from __future__ import annotations

import re
from string import Template
from typing import Final

from agents_loop.errors import ConfigurationError
from agents_loop.files.native.yaml_text import yaml_text

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_STARTER: Final = Template("""\
# yaml-language-server: $$schema=loop.schema.json
#
# The line above is for editors: `agents-loop schema > loop.schema.json` writes what it names.
#
#   agents-loop validate $name.yaml
#   agents-loop run $name.yaml -i topic="a thermos flask" --backend local
$named
description: Writes a slogan, and goes on until it is short and has all that is asked for.

# What the templates below are given: -i topic=... on the command line. Without this block any input may be given.
inputs:
  topic:
    description: what the slogan is for
  words:
    type: integer        # string (the default), integer, number or boolean
    default: 8           # an input without a default must be given

loop:
  agent:
    # A name of this file, or of a model: `--model writer=openai:gpt-5-mini` says who it is.
    model: writer
    instructions: You write slogans. Answer with the slogan alone, without quotation marks.
    # What is asked: a Jinja2 template with the inputs.
    request: |
      Write a slogan of at most {{ words }} words for {{ topic }}.
    max_output_tokens: 200
    # temperature: 0.8

  # The agent is sent back while one of these asks for more. They are asked in order; put cheap ones first.
  evaluators:
    - type: length
      unit: words
      at_most: 12
    - type: ai_judge
      model: judge
      # "requirements": what is asked for is listed once, and judged point by point. Small models judge better so.
      design: requirements
      criteria:
        - It is about {{ topic }}.

  options:
    max_iterations: 4
    evaluate_final_iteration: true   # the last answer is judged, too
    return_best: true                # where nothing satisfies, the best answer is given

  # What all calls together may use.
  budget:
    max_tokens: 20000

  # When the loop is stuck, and what follows. Without this block it is nudged once, and then stopped; `stall: off` lets
  # it run to its cap.
  # stall:
  #   ladder: [nudge, fresh_context, {type: another_model, model: stronger}, ask_person]
""")


def starter_text(name: str) -> str:
    """A commented file that is valid, and runs.

    Args:
        name: What it is called.

    Raises:
        ConfigurationError: The name is not of letters, digits, `_` and `-`, or longer than 64.
    """
    if not _NAME.fullmatch(name):
        allowed = "use up to 64 letters, digits, '_' and '-', and begin with a letter or a digit"
        raise ConfigurationError(f"{name!r} is no name for a loop: {allowed}")
    return _STARTER.substitute(name=name, named=yaml_text({"name": name}).rstrip())
