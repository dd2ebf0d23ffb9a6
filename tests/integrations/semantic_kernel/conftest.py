from __future__ import annotations

import warnings
from collections.abc import AsyncIterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from fault_server import FaultServer

if find_spec("semantic_kernel") is not None:
    with warnings.catch_warnings():  # importing it, and not using it, warns of pydantic's deprecations
        warnings.simplefilter("ignore", DeprecationWarning)
        import semantic_kernel.agents.orchestration.group_chat
        import semantic_kernel.agents.orchestration.sequential
        import semantic_kernel.agents.runtime
        import semantic_kernel.connectors.ai.open_ai  # noqa: F401

if TYPE_CHECKING:
    from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion


@pytest.fixture
async def openai_service(server: FaultServer) -> AsyncIterator[OpenAIChatCompletion]:
    """Semantic Kernel's own connector, and a server that speaks OpenAI's API."""
    import openai
    from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion

    client = openai.AsyncOpenAI(base_url=server.base_url, api_key="test-key", max_retries=0)
    yield OpenAIChatCompletion(ai_model_id="m", async_client=client)
    await client.close()
