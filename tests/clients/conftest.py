from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from fault_server import FaultServer

from agents_loop.clients.openai import OpenAIChatClient


@pytest.fixture
async def client(server: FaultServer) -> AsyncIterator[OpenAIChatClient]:
    """The client of a compatible server that takes no key and is asked once."""
    async with OpenAIChatClient("m", api_key="test-key", base_url=server.base_url, max_retries=0) as client:
        yield client


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENAI_API_VERSION",
        "AZURE_OPENAI_ENDPOINT",
        "AZURE_OPENAI_API_KEY",
        "AZURE_OPENAI_AD_TOKEN",
    ):
        monkeypatch.delenv(name, raising=False)
