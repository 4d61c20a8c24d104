"""Arrays on disk: equal bytes for equal arrays, damage found, descriptions enforced."""

import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retable.common.data.arrays import (
    ArraySpec,
    check_arrays,
    load_arrays,
    save_arrays,
    sha256_of_arrays,
)
from retable.common.errors import InputError

ARRAYS = {
    "image": np.arange(60, dtype=np.uint8).reshape(3, 4, 5),
    "label": np.array([0, 1, 2]),
    "name": np.array(["a", "longer"]),
    "scalar": np.array(2.5),
    "flag": np.array([True, False]),
}


def test_round_trip(tmp_path: Path) -> None:
    save_arrays(tmp_path / "a.npz", ARRAYS)
    back = load_arrays(tmp_path / "a.npz")
    assert list(back) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert back[name].dtype == array.dtype
        assert back[name].shape == array.shape
        assert np.array_equal(back[name], array)


def test_bytes_do_not_depend_on_the_time(tmp_path: Path) -> None:
    save_arrays(tmp_path / "a.npz", ARRAYS)
    # A zip holds times in steps of two seconds.
    time.sleep(2.1)
    save_arrays(tmp_path / "b.npz", ARRAYS)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_bytes_do_not_depend_on_the_layout_in_memory(tmp_path: Path) -> None:
    table = np.arange(12.0).reshape(3, 4)
    for name, array in {"c": table, "f": np.asfortranarray(table), "view": table[::1, :]}.items():
        save_arrays(tmp_path / f"{name}.npz", {"table": array})
    expected = (tmp_path / "c.npz").read_bytes()
    assert (tmp_path / "f.npz").read_bytes() == expected
    assert (tmp_path / "view.npz").read_bytes() == expected


def test_numpy_reads_what_is_saved(tmp_path: Path) -> None:
    save_arrays(tmp_path / "a.npz", ARRAYS)
    with np.load(tmp_path / "a.npz") as file:
        assert sorted(file.files) == sorted(ARRAYS)


def test_python_objects_are_refused_both_ways(tmp_path: Path) -> None:
    objects = np.array([{"a": 1}], dtype=object)
    with pytest.raises(ValueError, match="allow_pickle"):
        save_arrays(tmp_path / "a.npz", {"o": objects})
    np.savez(tmp_path / "b.npz", o=objects)
    with pytest.raises(InputError, match="not a readable npz of plain arrays"):
        load_arrays(tmp_path / "b.npz")


def test_a_pickle_is_not_run(tmp_path: Path) -> None:
    """A pickle that would make a file when it is loaded."""
    code = (
        "import pathlib, pickle, sys\n"
        "class Evil:\n"
        "    def __reduce__(self):\n"
        "        return (pathlib.Path.touch, (pathlib.Path(sys.argv[1]),))\n"
        "pathlib.Path(sys.argv[2]).write_bytes(pickle.dumps(Evil()))\n"
    )
    made, path = tmp_path / "made", tmp_path / "a.npz"
    subprocess.run([sys.executable, "-c", code, made, path], check=True)
    with pytest.raises(InputError, match=r"a\.npz"):
        load_arrays(path)
    assert not made.exists()


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        load_arrays(tmp_path / "none.npz")


def test_npy_instead_of_npz(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    with pytest.raises(InputError, match=r"a\.npy: not a readable npz"):
        load_arrays(tmp_path / "a.npy")


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(place=st.floats(0, 1), what=st.binary(min_size=1, max_size=6), cut=st.booleans())
def test_damage_is_an_input_error_or_does_no_harm(
    tmp_path: Path, place: float, what: bytes, cut: bool
) -> None:
    """Bytes overwritten or cut off anywhere: InputError, or the arrays are still right."""
    path = tmp_path / "a.npz"
    save_arrays(path, {"x": np.arange(500), "y": np.ones((3, 2))})
    good = path.read_bytes()
    at = int(place * (len(good) - 1))
    path.write_bytes(good[:at] if cut else good[:at] + what + good[at + len(what) :])
    try:
        found = load_arrays(path)
    except InputError:
        return
    assert not cut
    assert all(array.dtype != object for array in found.values())
    if "x" in found:
        assert np.array_equal(found["x"], np.arange(500))


def test_hash_sees_names_types_shapes_and_values() -> None:
    base = {"a": np.arange(6), "b": np.zeros(2)}
    same = {"b": np.zeros(2), "a": np.arange(12)[:6]}
    assert sha256_of_arrays(base) == sha256_of_arrays(same)
    assert sha256_of_arrays(base) == sha256_of_arrays(
        {"a": np.asarray(np.arange(12)[::2] // 2), "b": np.zeros(2)}
    )
    others = [
        {"a": np.arange(6)},
        {"c": np.arange(6), "b": np.zeros(2)},
        {"a": np.arange(6).reshape(2, 3), "b": np.zeros(2)},
        {"a": np.arange(6, dtype=np.int32), "b": np.zeros(2)},
        {"a": np.arange(6)[::-1], "b": np.zeros(2)},
        {"a": np.arange(6), "b": np.zeros(2, ">f8")},
    ]
    hashes = {sha256_of_arrays(other) for other in others}
    assert len(hashes) == len(others)
    assert sha256_of_arrays(base) not in hashes
    assert sha256_of_arrays({"a": np.array(1)}) != sha256_of_arrays({"a": np.array([1])})


SPEC = {
    "images": ArraySpec("uint8", ("samples", 2, 2)),
    "labels": ArraySpec("int64", ("samples",), low=0, high=9),
    "weights": ArraySpec("float64", ("classes",)),
    "names": ArraySpec("str", ("classes",)),
}
GOOD = {
    "images": np.zeros((3, 2, 2), np.uint8),
    "labels": np.array([0, 9, 4]),
    "weights": np.ones(2),
    "names": np.array(["a", "bc"]),
}


def test_right_arrays_pass() -> None:
    check_arrays(GOOD | {"more": np.zeros(1)}, SPEC, "my.npz")


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("images", np.zeros((3, 2, 2), np.int16), "images: dtype int16, must be uint8"),
        ("images", np.zeros((3, 4), np.uint8), r"images: shape \(3, 4\), must have 3 axes"),
        ("images", np.zeros((3, 2, 5), np.uint8), r"shape \(3, 2, 5\), axis 2 must be 2"),
        ("labels", np.array([0, 1]), "labels: axis 0 has 2 entries, but images has 3"),
        ("labels", np.array([0, -1, 2]), "labels: smallest value -1, must be >= 0"),
        ("labels", np.array([0, 10, 2]), "labels: largest value 10, must be <= 9"),
        ("labels", np.array(["0", "1", "2"]), "labels: dtype <U1, must be int64"),
        ("weights", np.array([1.0, np.nan]), "weights: holds values that are not finite"),
        ("weights", np.array([1.0, np.inf]), "weights: holds values that are not finite"),
        ("names", np.array([1, 2]), "names: dtype int64, must be str"),
    ],
)
def test_wrong_array_is_named(name: str, array: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=f"^my.npz: .*{message}"):
        check_arrays(GOOD | {name: array}, SPEC, "my.npz")


def test_missing_array_is_named() -> None:
    arrays = {name: array for name, array in GOOD.items() if name != "labels"}
    with pytest.raises(InputError, match="the array 'labels' is missing; needed: images, labels"):
        check_arrays(arrays, SPEC, "my.npz")


def test_empty_array_is_refused() -> None:
    with pytest.raises(InputError, match="x: is empty"):
        check_arrays({"x": np.zeros(0)}, {"x": ArraySpec("float64", ("n",))}, "my.npz")


def test_damaged_member_of_a_deflated_file(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    save_arrays(path, {"x": np.random.default_rng(0).normal(size=2000)})
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("x.npy").header_offset + 120
    raw = bytearray(path.read_bytes())
    for at in range(start, start + 3000, 97):
        damaged = raw.copy()
        damaged[at : at + 4] = b"\xff\xff\xff\xff"
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"a\.npz: not a readable npz"):
            load_arrays(path)
