"""Getting data sets: a real HTTP server on this machine that misbehaves in every way."""

import hashlib
import io
import json
import shutil
import socket
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from retable.common.data import fetch
from retable.common.data.arrays import ArraySpec, load_arrays, save_arrays, sha256_of_arrays
from retable.common.data.fetch import Dataset, Download, Package
from retable.common.errors import InputError

RIGHT = {"x": np.arange(4000)}
WRONG = {"x": np.arange(4000) + 1}


def npz(arrays: dict[str, np.ndarray], folder: Path) -> bytes:
    path = folder / "made.npz"
    save_arrays(path, arrays)
    content = path.read_bytes()
    path.unlink()
    return content


class Server:
    """Serves bytes by path; the first part of the path says in which way."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                _, way, name = self.path.split("/", 2)
                if way == "missing" or name not in outer.files:
                    self.send_error(404)
                    return
                content = outer.files[name]
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                outer.send(self.wfile, way, content)
                self.close_connection = True

            def log_message(self, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.closing = threading.Event()
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,))
        self.thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}"

    def send(self, out: io.BufferedIOBase, way: str, content: bytes) -> None:
        if way == "truncated":
            out.write(content[: len(content) // 2])
        elif way == "silent":
            out.write(content[: len(content) // 2])
            out.flush()
            self.closing.wait(10)
        elif way == "slow":
            step = len(content) // 12 + 1
            for start in range(0, len(content), step):
                out.write(content[start : start + step])
                out.flush()
                time.sleep(0.1)
        else:
            out.write(content)

    def close(self) -> None:
        self.closing.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(fetch, "SECONDS_OF_SILENCE", 2.0)
    monkeypatch.setenv("NO_PROXY", "*")
    running = Server()
    running.files["right.npz"] = npz(RIGHT, tmp_path)
    running.files["wrong.npz"] = npz(WRONG, tmp_path)
    running.files["page.npz"] = b"<html>log in to the network first</html>"
    yield running
    running.close()


def read(folder: Path) -> dict[str, np.ndarray]:
    return load_arrays(folder / "made.npz")


def made(*sources: Download | Package, sha256: str | None = "") -> Dataset:
    return Dataset(
        name="made",
        arrays={"x": ArraySpec("int64", ("n",), low=0)},
        sources=sources,
        read=read,
        licence="none",
        sha256=sha256_of_arrays(RIGHT) if sha256 == "" else sha256,
    )


def at(server: Server, way: str, name: str = "right.npz") -> Download:
    return Download({"made.npz": f"{server.address}/{way}/{name}"}, read)


def cached(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.rglob("*") if path.is_file())


def test_good_source_and_then_the_cache(server: Server, tmp_path: Path) -> None:
    dataset = made(at(server, "good"))
    assert np.array_equal(dataset.get(tmp_path / "cache")["x"], RIGHT["x"])
    assert cached(tmp_path / "cache") == ["made.npz"]
    assert np.array_equal(dataset.get(tmp_path / "cache")["x"], RIGHT["x"])
    assert server.asked == ["/good/right.npz"]


def test_cache_from_the_environment(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETABLE_CACHE", str(tmp_path / "chosen"))
    made(at(server, "good")).get()
    assert cached(tmp_path / "chosen" / "made") == ["made.npz"]


def test_slow_but_steady_source_is_waited_for(server: Server, tmp_path: Path) -> None:
    """It takes twice as long as the silence that is allowed, but it never falls silent."""
    started = time.monotonic()
    assert np.array_equal(made(at(server, "slow")).get(tmp_path)["x"], RIGHT["x"])
    assert time.monotonic() - started > 0.6


@pytest.mark.parametrize(
    ("way", "name", "reason"),
    [
        ("silent", "right.npz", "[Tt]imed out"),
        ("truncated", "right.npz", "Connection broken|IncompleteRead"),
        ("missing", "right.npz", "404"),
        ("good", "wrong.npz", "SHA-256 is [0-9a-f]{16}..., must be [0-9a-f]{16}..."),
        ("good", "page.npz", "not a readable npz"),
    ],
)
def test_bad_source_gives_way_to_the_next(
    server: Server,
    tmp_path: Path,
    way: str,
    name: str,
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = made(at(server, way, name), at(server, "good")).get(tmp_path / "cache")
    assert np.array_equal(found["x"], RIGHT["x"])
    assert server.asked == [f"/{way}/{name}", "/good/right.npz"]
    assert [r for r in caplog.records if "made: " in r.message]
    # Of the bad source nothing stays, so that it cannot be taken for good later.
    assert cached(tmp_path / "cache") == ["made.npz"]
    assert (tmp_path / "cache" / "made" / "source1" / "made.npz").exists()
    # The same source alone: one error that says why.
    with pytest.raises(InputError, match=f"{server.address}/{way}/{name}: .*({reason})"):
        made(at(server, way, name)).get(tmp_path / "other")
    assert cached(tmp_path / "other") == []


def test_unreachable_server(tmp_path: Path, server: Server) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/x.npz"
        source = Download({"made.npz": address}, read)
        found = made(source, at(server, "good")).get(tmp_path / "cache")
        assert np.array_equal(found["x"], RIGHT["x"])
        with pytest.raises(InputError, match=address):
            made(source).get(tmp_path / "other")


def test_all_sources_fail(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    dataset = made(
        at(server, "missing"),
        at(server, "good", "wrong.npz"),
        at(server, "truncated"),
        Package("npm", "made", "1.0.0", read),
        Package("apt", "made", None, read),
    )
    with pytest.raises(InputError) as caught:
        dataset.get(tmp_path / "cache")
    first, *reasons = str(caught.value).splitlines()
    assert first == (
        "made: no source could be used; name your own copy in config/config.yaml "
        "(data: made: /path). Tried:"
    )
    assert len(reasons) == 5
    assert f"{server.address}/missing/right.npz: 404" in reasons[0]
    assert f"{server.address}/good/wrong.npz: the arrays' SHA-256 is" in reasons[1]
    assert f"{server.address}/truncated/right.npz: " in reasons[2]
    assert reasons[3].strip() == "npm package made 1.0.0: the command 'npm' is not installed"
    assert reasons[4].strip() == "apt package made: the command 'apt-get' is not installed"
    assert cached(tmp_path / "cache") == []


def test_damaged_cache_is_fetched_again(server: Server, tmp_path: Path) -> None:
    dataset = made(at(server, "good"))
    dataset.get(tmp_path)
    file = tmp_path / "made" / "source0" / "made.npz"
    for damage in (b"", file.read_bytes()[:100], server.files["wrong.npz"]):
        file.write_bytes(damage)
        assert np.array_equal(dataset.get(tmp_path)["x"], RIGHT["x"])
    assert server.asked == ["/good/right.npz"] * 4


def test_without_a_hash_the_description_decides(server: Server, tmp_path: Path) -> None:
    server.files["negative.npz"] = npz({"x": np.arange(4) - 1}, tmp_path)
    with pytest.raises(InputError, match="smallest value -1, must be >= 0"):
        made(at(server, "good", "negative.npz"), sha256=None).get(tmp_path / "cache")
    found = made(at(server, "good", "wrong.npz"), sha256=None).get(tmp_path / "cache")
    assert np.array_equal(found["x"], WRONG["x"])


def test_archive_is_unpacked_once(server: Server, tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("made.npz", server.files["right.npz"])
    server.files["made.zip"] = content.getvalue()
    address = f"{server.address}/good/made.zip"
    dataset = made(Download({"made.zip": address}, read, unpack=True))
    for _ in range(2):
        assert np.array_equal(dataset.get(tmp_path / "cache")["x"], RIGHT["x"])
    assert server.asked == ["/good/made.zip"]
    server.files["made.zip"] = content.getvalue()[:40]
    with pytest.raises(InputError, match=rf"{address}: .*made\.zip: damaged or truncated archive"):
        dataset.get(tmp_path / "other")
    assert cached(tmp_path / "other") == []


def test_two_at_once(server: Server, tmp_path: Path) -> None:
    """Two runs of two checkouts share the user's cache and fetch the same data set."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("made.npz", server.files["right.npz"])
    server.files["made.zip"] = content.getvalue()
    dataset = made(Download({"made.zip": f"{server.address}/slow/made.zip"}, read, unpack=True))
    found: list[np.ndarray] = []
    threads = [
        threading.Thread(target=lambda: found.append(dataset.get(tmp_path / "cache")["x"]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(np.array_equal(array, RIGHT["x"]) for array in found)


def test_wheel_through_pip(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real client, with a folder of this machine in place of the registry."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "retable_made-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("made.npz", server.files["right.npz"])
        archive.writestr(
            "retable_made-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: retable-made\nVersion: 1.0\n",
        )
        archive.writestr(
            "retable_made-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr("retable_made-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    dataset = made(Package("pip", "retable-made", "1.0", read))
    assert np.array_equal(dataset.get(tmp_path / "cache")["x"], RIGHT["x"])
    shutil.rmtree(wheels)
    assert np.array_equal(dataset.get(tmp_path / "cache")["x"], RIGHT["x"])
    with pytest.raises(InputError, match=r"pip package retable-made 1\.0: .*No matching dist"):
        dataset.get(tmp_path / "other")
    assert cached(tmp_path / "other") == []


def test_tarball_through_npm(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real client, with a registry that this test serves."""
    if shutil.which("npm") is None:
        pytest.skip("the command npm is not installed")
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, data in {
            "package/package.json": b'{"name": "retable-made", "version": "1.0.0"}',
            "package/made.npz": server.files["right.npz"],
        }.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    tarball = content.getvalue()
    server.files["made.tgz"] = tarball
    version = {
        "name": "retable-made",
        "version": "1.0.0",
        "dist": {
            "tarball": f"{server.address}/good/made.tgz",
            "shasum": hashlib.sha1(tarball).hexdigest(),
        },
    }
    server.files["retable-made"] = json.dumps(
        {
            "name": "retable-made",
            "dist-tags": {"latest": "1.0.0"},
            "versions": {"1.0.0": version},
        }
    ).encode()
    monkeypatch.setenv("npm_config_registry", f"{server.address}/good/")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
    monkeypatch.setenv("npm_config_fetch_retries", "0")

    def read_package(folder: Path) -> dict[str, np.ndarray]:
        return load_arrays(folder / "package" / "made.npz")

    dataset = made(Package("npm", "retable-made", "1.0.0", read_package))
    assert np.array_equal(dataset.get(tmp_path / "cache")["x"], RIGHT["x"])
    absent = made(Package("npm", "retable-none", "1.0.0", read_package))
    with pytest.raises(InputError, match=r"npm package retable-none 1\.0\.0: .*404 Not Found"):
        absent.get(tmp_path / "other")
    assert cached(tmp_path / "other") == []


def test_own_npz(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    save_arrays(path, {"x": np.arange(3), "more": np.zeros(2)})
    found = made().load_own(path)
    assert list(found) == ["x"]
    assert np.array_equal(found["x"], np.arange(3))


def test_own_folder(tmp_path: Path) -> None:
    save_arrays(tmp_path / "made.npz", WRONG)
    assert np.array_equal(made().load_own(tmp_path)["x"], WRONG["x"])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 2), np.int64), r"x: shape \(2, 2\), must have 1 axes"),
        (np.zeros(2, np.float32), "x: dtype float32, must be int64"),
        (np.array([-3, 1]), "x: smallest value -3, must be >= 0"),
    ],
)
def test_own_data_that_are_wrong(tmp_path: Path, array: np.ndarray, message: str) -> None:
    path = tmp_path / "mine.npz"
    save_arrays(path, {"x": array})
    with pytest.raises(InputError, match=rf"mine\.npz: {message}"):
        made().load_own(path)


def test_own_data_that_are_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"data: made: .*none\.npz: there is no such file"):
        made().load_own(tmp_path / "none.npz")
    with pytest.raises(InputError, match=r"made\.npz: there is no such file"):
        made().load_own(tmp_path)
