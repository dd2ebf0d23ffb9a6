"""How the house is built: public names, what an import loads, where each SDK may appear."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import agents_loop

PACKAGE = Path(agents_loop.__file__).parent
HOMES = {
    "openai": "clients/chat_completions/sdk.py",
    "azure": "clients/azure_openai.py",
    "jsonschema": "checks/json_schema.py",
    "xllamacpp": "clients/local.py",
    "semantic_kernel": "integrations/semantic_kernel/",
    "agent_framework": "integrations/agent_framework/sdk.py",
    "agents": "integrations/openai_agents/sdk.py",
    "pydantic_ai": "integrations/pydantic_ai/sdk.py",
    "langgraph": "integrations/langgraph/sdk.py",
    "langchain_core": "integrations/langgraph/sdk.py",
    "syrupy": "testing/snapshots.py",
}
"""The SDKs, and the one file or folder that may name each."""
EXTRAS = ["openai", "azure", "xllamacpp", "typer", "click", "rich", "jinja2", "yaml", "platformdirs", "httpx", "httpx2"]
EXTRAS += ["semantic_kernel", "agent_framework", "agents", "pydantic_ai", "langgraph", "langchain_core", "mcp"]
EXTRAS += ["jsonschema", "referencing"]


def loaded_by(code):
    """The modules that some code has loaded in a fresh interpreter."""
    script = f"{code}\nimport sys\nprint(*sorted(sys.modules))"
    return set(subprocess.check_output([sys.executable, "-I", "-c", script], text=True).split())


def test_the_public_names_are_exactly_these(snapshot):
    """Design: the public names are schema."""
    assert agents_loop.__all__ == snapshot


def test_every_public_name_is_there():
    """Design: each name is exported from `agents_loop`, documented, and the same object as in its own module."""
    for name in agents_loop.__all__:
        value = getattr(agents_loop, name)
        if isinstance(value, type):
            assert value.__doc__, name
            assert getattr(importlib.import_module(value.__module__), name) is value
    assert set(agents_loop.__all__) <= set(dir(agents_loop))


def test_an_unknown_name_is_an_attribute_error():
    """Design: a lazy module answers like any other."""
    with pytest.raises(AttributeError, match="LoopAgnet"):
        _ = agents_loop.LoopAgnet


def test_importing_the_package_loads_nothing_else():
    """Design: `import agents_loop` loads no SDK, and not even pydantic."""
    loaded = loaded_by("import agents_loop")
    assert not loaded & {*EXTRAS, "pydantic", "asyncio"}


@pytest.mark.parametrize("name", [name for name in agents_loop.__all__ if name != "__version__"])
def test_a_name_loads_no_sdk(name):
    """Design: the core needs pydantic alone; a client is importable without its SDK."""
    assert not loaded_by(f"from agents_loop import {name}") & set(EXTRAS)


def names_imported(node):
    """What an import names: a statement, or `importlib.import_module("...")`."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module]
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")) and node.args:
        return [str(ast.literal_eval(node.args[0]))] if isinstance(node.args[0], ast.Constant) else []
    return []


def test_each_sdk_appears_in_its_own_file_alone():
    """Design: floors; imports within functions and under TYPE_CHECKING count."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            for name in names_imported(node):
                sdk = name.split(".")[0]
                if sdk in HOMES:
                    found.setdefault(sdk, set()).add(path.relative_to(PACKAGE).as_posix())
    strays = {sdk: [file for file in files if not file.startswith(HOMES[sdk])] for sdk, files in found.items()}
    assert not any(strays.values()), strays
    assert set(found) >= set(HOMES) - {"langgraph"}, "an SDK is no longer named where it was: is the map right?"


def test_no_module_is_called_utils():
    """Style: no utils.py, no Helper, no Manager."""
    names = [path.stem for path in PACKAGE.rglob("*.py")]
    assert not {"utils", "helpers", "common", "misc"} & set(names)
