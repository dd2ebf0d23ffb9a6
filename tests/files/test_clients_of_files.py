from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents_loop.files import load_loop_file

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.mark.parametrize(
    ("sample", "inputs"),
    [
        ("product_name.yaml", {"product": "thermos"}),
        ("garden_notice.yaml", {}),
        ("dinner_flow.json", {}),
    ],
)
@pytest.mark.parametrize(("client", "said"), [(None, "must not be None"), (5, "must be a chat client, not")])
def test_a_model_without_a_client_is_told(sample: str, inputs: dict[str, Any], client: Any, said: str):
    """Where nothing, or no chat client, is given for a model of a file, the error names it, before any call."""
    loop_file = load_loop_file(SAMPLES / sample)
    with pytest.raises(TypeError, match=f"what client_for gives for the model {loop_file.models[0]!r} {said}"):
        loop_file.build(inputs, lambda name: client)
