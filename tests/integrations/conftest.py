from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from fault_server import CLIENTS


@pytest.fixture(autouse=True)
async def clients_are_closed() -> AsyncIterator[None]:
    yield
    await CLIENTS.aclose()
