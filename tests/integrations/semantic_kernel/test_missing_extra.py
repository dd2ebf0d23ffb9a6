from __future__ import annotations

import subprocess
import sys


def test_without_the_sdk_the_extra_is_named():
    """Adapters: with Semantic Kernel missing, one line says what to install."""
    code = "import sys; sys.modules['semantic_kernel'] = None; import agents_loop.integrations.semantic_kernel"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert last.endswith("Run: pip install 'agents-loop[semantic-kernel]'")
    assert "MissingExtraError" in last
