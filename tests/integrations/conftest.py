from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from fault_server import CLIENTS


@pytest.fixture(autouse=True)
async def clients_are_closed() -> AsyncIterator[None]:
    yield
    await CLIENTS.aclose()


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.delenv(name, raising=False)
