import gzip
from pathlib import Path

import numpy as np
import pytest

from retable.common.data.arrays import check_arrays, save_arrays
from retable.common.data.bundles import BUNDLE, bundle_of, pack_files, read_bundle, unpack_files
from retable.common.errors import InputError

FILES = {"b.txt": b"one\ntwo\n", "a.bin": bytes(range(256)), "empty": b""}


def test_files_come_back_byte_for_byte(tmp_path: Path) -> None:
    arrays = pack_files(FILES)
    check_arrays(arrays, BUNDLE, "packed")
    assert unpack_files(arrays) == FILES
    save_arrays(tmp_path / "bundle.npz", arrays)
    assert read_bundle(tmp_path / "bundle.npz") == FILES


def test_files_are_found_wherever_they_lie(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "x.pdb").write_bytes(b"ATOM\r\n")
    (tmp_path / "table.csv").write_bytes(b"a,b\r\n1,2\r\n")
    (tmp_path / "deep" / "seq.fasta.gz").write_bytes(gzip.compress(b">p\nACD\n"))
    (tmp_path / "other.md").write_text("not asked for")
    read = bundle_of("*.pdb", "table.csv", "seq.fasta")
    # The line ends of tables are those of Unix; other files stay as they are.
    assert unpack_files(read(tmp_path)) == {
        "x.pdb": b"ATOM\r\n",
        "table.csv": b"a,b\n1,2\n",
        "seq.fasta": b">p\nACD\n",
    }


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file 'MUTAG_\*\.txt'"):
        bundle_of("MUTAG_*.txt")(tmp_path)


def test_two_files_of_one_name_must_be_equal(tmp_path: Path) -> None:
    for folder, text in (("one", "x"), ("two", "x")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "t.sdf").write_text(text)
    assert unpack_files(bundle_of("t.sdf")(tmp_path)) == {"t.sdf": b"x"}
    (tmp_path / "two" / "t.sdf").write_text("y")
    with pytest.raises(InputError, match=r"two different files 't\.sdf'"):
        bundle_of("t.sdf")(tmp_path)


def test_a_damaged_gzip_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "s.sto.gz").write_bytes(gzip.compress(b"x" * 1000)[:-9])
    with pytest.raises(InputError, match=r"s\.sto\.gz: damaged or truncated gzip file"):
        bundle_of("s.sto")(tmp_path)


def test_an_npz_of_other_arrays_is_no_bundle(tmp_path: Path) -> None:
    save_arrays(tmp_path / "x.npz", {"names": np.array(["a"])})
    with pytest.raises(InputError, match="the array 'ends' is missing; needed: names, ends"):
        read_bundle(tmp_path / "x.npz")
