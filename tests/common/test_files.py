"""Files are whole or not there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from retable.common.files import (
    move_into_place,
    partial_path,
    remove_partial,
    sha256_of_file,
    whole,
)


def test_the_name_shows_when_the_file_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.csv"
    with whole(path) as part:
        part.write_text("half")
        assert not path.exists()
        assert part.suffix == ".csv"
        part.write_text("whole")
    assert path.read_text() == "whole"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")

    def fail() -> None:
        with whole(path) as part:
            part.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_leftovers_of_other_files_stay(tmp_path: Path) -> None:
    names = [
        *(".a.part-12.csv", ".a.part-13.csv", ".ab.part-12.csv", ".a.part-12.png"),
        *(".[a].part-1.csv", ".t.part-3", ".t.part-3.csv", "a.csv"),
    ]
    for name in names:
        (tmp_path / name).write_text("x")
    remove_partial(tmp_path / "a.csv")
    remove_partial(tmp_path / "[a].csv")
    remove_partial(tmp_path / "t")
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == sorted([".ab.part-12.csv", ".a.part-12.png", ".t.part-3.csv", "a.csv"])


def test_own_partial_is_found(tmp_path: Path) -> None:
    for name in ("a.csv", "a.b.tar.gz", "noending", "x[1]*.png"):
        part = partial_path(tmp_path / name)
        part.write_text("half")
        assert str(os.getpid()) in part.name
        remove_partial(tmp_path / name)
        assert not part.exists()


def test_move_replaces(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "b").write_text("new")
    move_into_place(tmp_path / "b", tmp_path / "a")
    assert (tmp_path / "a").read_text() == "new"
    assert not (tmp_path / "b").exists()


def test_hash(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    assert sha256_of_file(tmp_path / "a") == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_full_disk_names_the_file(tmp_path: Path) -> None:
    """Real: the system refuses to let a file grow beyond the limit."""
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from retable.common.files import whole\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        "    with whole(Path(sys.argv[1])) as part:\n"
        "        part.write_bytes(bytes(5000))\n"
        "except OSError as error:\n"
        "    print(error.filename)\n"
    )
    path = tmp_path / "a.bin"
    done = subprocess.run(
        [sys.executable, "-c", code, path],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == str(path)
    assert list(tmp_path.iterdir()) == []
