"""Readers of MovieLens, on small files of the published formats."""

from pathlib import Path

import numpy as np
import pytest

from retable.common.data.arrays import check_arrays, sha256_of_arrays
from retable.common.data.movielens import ARRAYS, GENRES, read_1m, read_100k, read_100k_atomic
from retable.common.errors import InputError

RATINGS = [(196, 2, 3, 881250949), (186, 4, 5, 881250949), (196, 4, 1, 891717742)]
# Film 3 does not exist; one title has a letter of Latin-1 and a byte that Unicode calls a line end.
FILMS = {
    1: ("Toy Story (1995)", ["Animation", "Children's", "Comedy"]),
    2: ("Les Mis\xe9rables \x85 (1995)", ["Drama"]),
    4: ("Nothing (1996)", ["unknown"]),
}


def write_100k(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "u.data").write_text("".join("\t".join(map(str, row)) + "\n" for row in RATINGS))
    lines = []
    for item, (title, genres) in FILMS.items():
        flags = ["1" if genre in genres else "0" for genre in GENRES]
        lines.append("|".join([str(item), title, "01-Jan-1995", "", "http://a/b", *flags]))
    (folder / "u.item").write_bytes(("\n".join(lines) + "\n").encode("latin-1"))


def write_atomic(folder: Path) -> None:
    folder.mkdir(parents=True)
    rows = ["user_id:token\titem_id:token\trating:float\ttimestamp:float"]
    rows += ["\t".join(map(str, row)) for row in RATINGS]
    (folder / "ml-100k.inter").write_text("\n".join(rows) + "\n")
    rows = ["item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq"]
    rows += [f"{item}\t{title}\t1995\t{' '.join(g)}" for item, (title, g) in FILMS.items()]
    (folder / "ml-100k.item").write_text("\n".join(rows) + "\n", encoding="latin-1")


def write_1m(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "ratings.dat").write_text("".join("::".join(map(str, row)) + "\n" for row in RATINGS))
    (folder / "movies.dat").write_bytes(
        "".join(
            f"{item}::{title}::{'|'.join(genres)}\n"
            for item, (title, genres) in FILMS.items()
            if "unknown" not in genres
        ).encode("latin-1")
    )


def test_both_forms_of_100k_give_equal_arrays(tmp_path: Path) -> None:
    write_100k(tmp_path / "a" / "ml-100k")
    write_atomic(tmp_path / "b" / "recbole" / "dataset_example" / "ml-100k")
    own, package = read_100k(tmp_path / "a"), read_100k_atomic(tmp_path / "b")
    for found in (own, package):
        check_arrays(found, ARRAYS, "made")
    assert sha256_of_arrays(own) == sha256_of_arrays(package)
    assert own["user"].tolist() == [196, 186, 196]
    assert own["timestamp"].tolist() == [881250949, 881250949, 891717742]
    assert own["item_genres"].shape == (4, 19)
    films = [[GENRES[k] for k in np.flatnonzero(row)] for row in own["item_genres"]]
    assert films == [["Animation", "Children's", "Comedy"], ["Drama"], [], ["unknown"]]


def test_1m(tmp_path: Path) -> None:
    write_1m(tmp_path / "ml-1m")
    found = read_1m(tmp_path)
    check_arrays(found, ARRAYS, "made")
    assert found["rating"].tolist() == [3, 5, 1]
    assert found["item_genres"].shape == (2, 18)
    assert found["genre_names"].tolist() == list(GENRES[1:])
    assert found["item_genres"].sum() == 4


def test_line_ends_of_windows(tmp_path: Path) -> None:
    write_100k(tmp_path / "a")
    expected = read_100k(tmp_path / "a")
    for path in (tmp_path / "a").iterdir():
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert sha256_of_arrays(read_100k(tmp_path / "a")) == sha256_of_arrays(expected)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("u.data", "1\t2\t3\t4\n1\t2\t3\n", "line 2 has 3 fields, must have 4"),
        ("u.data", "1\t2\t3\n1\t2\t3\n", "3 fields"),
        ("u.data", "1\t2\tfive\t4\n", "a rating is not four numbers"),
        ("u.data", "1\t2\t3.5\t4\n", "3.5"),
        ("u.data", "1\t2\tnan\t4\n", "nan"),
        ("u.data", "", "is empty"),
        ("u.item", "1|title|01-Jan-1995\n", "3 fields, must be at least 20"),
        ("u.item", "x|title|" + "|".join("0" * 19) + "\n", "'x'"),
        ("u.item", "0|title|" + "|".join("0" * 19) + "\n", "'0'"),
    ],
)
def test_wrong_file_of_100k(tmp_path: Path, name: str, content: str, message: str) -> None:
    write_100k(tmp_path / "a")
    (tmp_path / "a" / name).write_text(content)
    with pytest.raises(InputError, match=rf"{name}: .*{message}"):
        read_100k(tmp_path / "a")


@pytest.mark.parametrize("column", ["class:token_seq", "item_id:token"])
def test_a_column_that_the_package_lacks_is_named(tmp_path: Path, column: str) -> None:
    write_atomic(tmp_path / "a")
    path = tmp_path / "a" / "ml-100k.item"
    path.write_text(path.read_text(encoding="latin-1").replace(column, "other"), "latin-1")
    with pytest.raises(InputError, match=rf"ml-100k\.item: there is no column {column}, found "):
        read_100k_atomic(tmp_path / "a")


def test_the_order_of_the_package_s_columns_does_not_matter(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a")
    expected = read_100k_atomic(tmp_path / "a")
    path = tmp_path / "a" / "ml-100k.item"
    rows = [row.split("\t") for row in path.read_text(encoding="latin-1").split("\n") if row]
    path.write_text("".join("\t".join(row[::-1]) + "\n" for row in rows), "latin-1")
    assert sha256_of_arrays(read_100k_atomic(tmp_path / "a")) == sha256_of_arrays(expected)


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file u\.data"):
        read_100k(tmp_path)
    write_100k(tmp_path / "a")
    (tmp_path / "a" / "u.item").unlink()
    with pytest.raises(InputError, match=r"u\.item: there is no such file"):
        read_100k(tmp_path / "a")


def test_unknown_genre(tmp_path: Path) -> None:
    write_1m(tmp_path / "a")
    (tmp_path / "a" / "movies.dat").write_text("1::Title::Drama|Cooking\n")
    with pytest.raises(InputError, match=r"movies\.dat: item 1: unknown genre 'Cooking'"):
        read_1m(tmp_path / "a")
