from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest
from fault_server import FaultServer
from hypothesis import settings

settings.register_profile("ours", deadline=None)  # a busy machine is no failure
settings.load_profile("ours")

pytest.register_assert_rewrite("fakes")

from fakes import WAYS, RecordingAgent, Way  # noqa: E402 - its asserts are rewritten first


@pytest.fixture(params=WAYS, ids=["run", "run_streaming"])
def invoke(request: pytest.FixtureRequest) -> Way:
    """Runs an agent to its end; a test that takes it holds for `run` and for `run_streaming`."""
    return request.param


@pytest.fixture
def agent() -> RecordingAgent:
    """One that answers `reply 1`, `reply 2`, ..."""
    return RecordingAgent()


@pytest.fixture
def server() -> Iterator[FaultServer]:
    """One that speaks OpenAI's API on loopback, with the faults that a test asks for."""
    with FaultServer() as server:
        yield server


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Reports go from process to process as UTF-8, and tests log and show half characters."""
    report = yield
    report.sections = [(name, as_utf8(text)) for name, text in report.sections]
    shown = str(report.longrepr or "")
    if as_utf8(shown) != shown:
        report.longrepr = as_utf8(shown)
    return report


def as_utf8(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
