"""What the pages about frameworks say is what happens: their code runs, over a server that answers as OpenAI."""

import re
import warnings
from pathlib import Path

import pytest
from fault_server import Completion, FaultServer, sqlite_session

DOCS = Path(__file__).parents[2] / "docs"
DONE = '{"gapAnalysis": "", "answered": true}'
REPLIES = {
    "agent-framework": ["A plan.", DONE, "Hello.", "A plan.", DONE, "Short."],
    "openai-agents": ["A draft.", "A plan. <done/>", "A plan. <done/>"],
    "pydantic-ai": ['{"steps": ["one"]}', '{"steps": ["one", "two", "three"]}'],
    "langgraph": [],
}
PRINTED = {
    "agent-framework": "satisfied",
    "openai-agents": "satisfied",
    "pydantic-ai": '{"steps": ["one", "two", "three"]}',
    "langgraph": "A plan. <done/>",
}
NEEDS = {
    "agent-framework": ["agent_framework", "agent_framework_openai", "agent_framework_orchestrations"],
    "openai-agents": ["agents"],
    "pydantic-ai": ["pydantic_ai", "openai"],
    "langgraph": ["langgraph.graph"],
}


@pytest.mark.parametrize("page", REPLIES)
def test_the_code_of_a_page_runs(page, monkeypatch, capsys):
    """Docs: every Python fence of a framework's page is executed, in order; what it prints first is as promised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in NEEDS[page]:
            pytest.importorskip(module)
    if page == "openai-agents":
        monkeypatch.setattr("agents.SQLiteSession", sqlite_session)  # it is closed when the test is over
    fences = re.findall(
        r"^~~~python\n(.*?)^~~~$", (DOCS / f"{page}.md").read_text("utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    assert fences
    with FaultServer() as server:
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("OPENAI_API_KEY", "a-key")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
        server.add(*[Completion(content=reply) for reply in REPLIES[page]])
        names = {"__name__": "page"}
        for fence in fences:
            exec(compile(fence, f"{page}.md", "exec"), names)  # noqa: S102 - the page's own code is what is tested
        assert len(server.requests) == len(REPLIES[page])
    assert capsys.readouterr().out.splitlines()[0] == PRINTED[page]
