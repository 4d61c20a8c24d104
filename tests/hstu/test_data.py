import numpy as np
import pytest
import torch

from retable.hstu.data import (
    Interactions,
    Sequence,
    build_sequences,
    collate,
    leave_last,
    load_amazon_books,
    load_movielens,
    relabel_items,
)


def interactions(user, item, timestamp):
    return Interactions(np.array(user), np.array(item), np.full(len(user), 4), np.array(timestamp))


def test_movielens_100k(tmp_path):
    (tmp_path / "u.data").write_text("196\t242\t3\t881250949\n186\t302\t5\t891717742\n")
    inter = load_movielens(tmp_path, "100k")
    assert inter.user.tolist() == [196, 186]
    assert inter.item.tolist() == [242, 302]
    assert inter.rating.tolist() == [3, 5]
    assert inter.timestamp.tolist() == [881250949, 891717742]
    assert {getattr(inter, name).dtype for name in inter.__dataclass_fields__} == {
        np.dtype(np.int64)
    }


def test_movielens_100k_inter(tmp_path):
    path = tmp_path / "ml-100k.inter"
    path.write_text(
        "user_id:token\titem_id:token\trating:float\ttimestamp:float\n196\t242\t3.0\t881250949.0\n"
    )
    inter = load_movielens(path, "100k")
    assert (inter.user[0], inter.item[0], inter.rating[0], inter.timestamp[0]) == (
        196,
        242,
        3,
        881250949,
    )


def test_movielens_1m(tmp_path):
    (tmp_path / "ratings.dat").write_text("1::1193::5::978300760\n6040::3952::1::956704746\n")
    inter = load_movielens(tmp_path, "1m")
    assert inter.user.tolist() == [1, 6040]
    assert inter.item.tolist() == [1193, 3952]
    assert inter.rating.tolist() == [5, 1]
    assert inter.timestamp.tolist() == [978300760, 956704746]


def test_movielens_20m_keeps_half_stars(tmp_path):
    (tmp_path / "ratings.csv").write_text(
        "userId,movieId,rating,timestamp\n1,2,3.5,1112486027\n138493,131262,0.5,1260759144\n"
    )
    inter = load_movielens(tmp_path, "20m")
    assert inter.rating.tolist() == [3.5, 0.5]
    assert inter.item.tolist() == [2, 131262]
    assert inter.timestamp.dtype == np.int64


def test_amazon_books_five_core(tmp_path):
    rows = []
    # Users a..e rate items X and Y and three more each: 5 ratings a user, 5 for X and for Y only.
    for user in "abcde":
        rows += [f"{user},X,5.0,10", f"{user},Y,4.0,20"]
        rows += [f"{user},{user}{i},1.0,3{i}" for i in range(3)]
    # z has five items of which four survive, so z goes although the file holds five rows of z.
    rows += [f"z,{item},3.0,99" for item in ("X", "Y", "P", "Q", "once")]
    # f..i and y rate P, Q, R, S, T: a dense block that survives as a whole.
    for user in "fghiy":
        rows += [f"{user},{item},2.0,{n}" for n, item in enumerate("PQRST")]
    path = tmp_path / "ratings_Books.csv"
    path.write_text("\n".join(rows) + "\n")
    inter = load_amazon_books(path)
    assert len(inter) == 25
    assert inter.user.tolist() == np.repeat([1, 2, 3, 4, 5], 5).tolist()
    assert inter.item.tolist() == [1, 2, 3, 4, 5] * 5
    assert inter.rating.tolist() == [2] * 25
    assert inter.timestamp.tolist() == [0, 1, 2, 3, 4] * 5


def test_loaders_say_what_is_wrong(tmp_path):
    with pytest.raises(ValueError, match=r"variant must be one of \['100k', '1m', '20m'\]"):
        load_movielens(tmp_path, "10m")
    with pytest.raises(FileNotFoundError, match=r"ml-100k\.zip.*recbole 1\.2\.1"):
        load_movielens(tmp_path, "100k")
    with pytest.raises(FileNotFoundError, match=r"ml-20m\.zip"):
        load_movielens(tmp_path, "20m")
    with pytest.raises(FileNotFoundError, match=r"ratings_Books\.csv"):
        load_amazon_books(tmp_path)
    path = tmp_path / "u.data"
    path.write_text("1\t2\t3\n")
    with pytest.raises(ValueError, match="has 3 columns"):
        load_movielens(path, "100k")
    path.write_text("1\t2\tgood\t5\n")
    with pytest.raises(ValueError, match="column rating holds values that are not numbers"):
        load_movielens(path, "100k")
    path.write_text("1\t2\t3.5\t5\n")
    with pytest.raises(ValueError, match="column rating must hold whole numbers"):
        load_movielens(path, "100k")
    path.write_text("1\t2\t3\t5\n1\t2\t3\t\n")
    with pytest.raises(ValueError, match="column timestamp holds values that are not numbers"):
        load_movielens(path, "100k")
    path.write_text("")
    with pytest.raises(ValueError, match="is not a ratings file"):
        load_movielens(path, "100k")
    with pytest.raises(ValueError, match="equally long"):
        Interactions(np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(3))


def test_ties_keep_file_order():
    seqs = build_sequences(
        interactions([7, 3, 7, 7, 3, 7], [9, 5, 2, 8, 4, 1], [10, 5, 10, 3, 5, 10])
    )
    assert [seq.user for seq in seqs] == [3, 7]
    assert seqs[0].items.tolist() == [5, 4]
    assert seqs[1].items.tolist() == [8, 9, 2, 1]
    assert seqs[1].timestamps.tolist() == [3, 10, 10, 10]


def test_relabelling_items():
    inter, originals = relabel_items(interactions([1, 1, 2], [50, 7, 50], [1, 2, 3]))
    assert inter.item.tolist() == [2, 1, 2]
    assert originals.tolist() == [7, 50]
    assert (originals[inter.item - 1] == [50, 7, 50]).all()


def test_leave_last(sequences):
    split = leave_last(sequences, n_valid=2, n_test=3)
    for seq, train, valid, test in zip(
        sequences, split.train, split.valid, split.test, strict=True
    ):
        assert train.items.tolist() == seq.items[:-5].tolist()
        assert valid.items.tolist() == seq.items[:-3].tolist()
        assert test.items.tolist() == seq.items.tolist()
        assert valid.timestamps.tolist() == seq.timestamps[:-3].tolist()
    with pytest.raises(ValueError, match=r"user 1 has 8 events, fewer than .* = 9"):
        leave_last(sequences, 3, 4)
    with pytest.raises(ValueError, match="n_test >= 1, got 1 and 0"):
        leave_last(sequences, 1, 0)


def test_collate(sequences):
    batch = collate(sequences, 10)
    assert batch.lengths.tolist() == [7, 10, 10]
    for row, (seq, n) in enumerate(zip(sequences, [7, 10, 10], strict=True)):
        assert batch.ids[row, :n].tolist() == seq.items[-n - 1 : -1].tolist()
        assert batch.target_ids[row, :n].tolist() == seq.items[-n:].tolist()
        assert batch.timestamps[row, :n].tolist() == seq.timestamps[-n - 1 : -1].tolist()
        assert batch.target_timestamps[row, :n].tolist() == seq.timestamps[-n:].tolist()
        for name in ("ids", "target_ids", "timestamps", "target_timestamps"):
            assert getattr(batch, name)[row, n:].abs().sum() == 0
            assert getattr(batch, name).dtype == torch.int64


def test_collate_bad_input(sequences):
    with pytest.raises(ValueError, match="max_len must be at least 1, got 0"):
        collate(sequences, 0)
    with pytest.raises(ValueError, match="seqs is empty"):
        collate([], 3)
    one = Sequence(9, np.array([1]), np.array([1]), np.array([1]))
    with pytest.raises(ValueError, match="user 9 has 1 events"):
        collate([*sequences, one], 3)


def test_trimming_drops_only_what_no_row_uses(sequences):
    batch = collate(sequences[:2], 30)
    short = batch.trimmed()
    assert short.ids.shape == (2, 13)
    assert short.lengths.tolist() == [7, 13]
    for name in ("ids", "timestamps", "target_ids", "target_timestamps"):
        assert torch.equal(getattr(short, name), getattr(batch, name)[:, :13])
        assert getattr(batch, name)[:, 13:].abs().sum() == 0
