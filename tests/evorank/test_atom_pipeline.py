"""The paper's scale from files to table and figure, with real structures and a tiny network."""

import csv
import gzip
import io
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from retable.common.checkpoints import Checkpoints
from retable.common.claims import ledger
from retable.common.data.arrays import save_arrays
from retable.common.data.bundles import pack_files
from retable.common.errors import InputError
from retable.common.metrics import read_measures, read_metrics
from retable.common.seedfile import read_seed_file
from retable.common.seeds import Seeds
from retable.evorank.alphabet import AMINO_ACIDS, RESIDUES, decode
from retable.evorank.atom_data import HELD_OUT, TRAINING, AtomPositions
from retable.evorank.baselines import blosum62
from retable.evorank.config import (
    AtomAssaysSettings,
    AtomEvaluateSettings,
    AtomFinetuneSettings,
    AtomRepresentSettings,
    AtomScoreSettings,
    AtomShardSettings,
    AtomStabilitySettings,
    AtomTrainSettings,
)
from retable.evorank.own_files import held_out_families, own_proteins
from retable.evorank.steps.atom_assays import atom_assays
from retable.evorank.steps.atom_evaluate import atom_evaluate
from retable.evorank.steps.atom_figure import atom_figure
from retable.evorank.steps.atom_finetune import atom_finetune
from retable.evorank.steps.atom_represent import atom_represent
from retable.evorank.steps.atom_score import atom_score
from retable.evorank.steps.atom_shard import atom_shard
from retable.evorank.steps.atom_stability import atom_stability
from retable.evorank.steps.atom_train import atom_train
from retable.evorank.steps.table import table
from retable.evorank.variants import load_variants

from .structures import bundle, structure

ROOT = Path(__file__).resolve().parents[2]

TINY = {"atoms": 32, "points": 50}
NETWORK = {"width": 16, "depth": 1, "heads": 2, "atoms": 32}
METHODS = {"wildtype": {"objective": "wildtype"}, "evorank": {"objective": "evorank"}}
SEEDS = Seeds((0, 1))
HEADER = "dataset,uniprot_id,pdb_code,chain_id,position,wtAA,mutAA,from,to,rel_rsa,ddG,sequence"
# The first twenty names of residues are the standard ones.
THREE = {letter: name for name, letter in list(RESIDUES.items())[:20]}


def alignment(sequence, rows=30, seed=0):
    """An a3m file as ColabFold writes it: homologs that keep half of the query, with insertions."""
    generator = np.random.default_rng(seed)
    lines = [f"#{len(sequence)}\t1", ">101", sequence]
    for number in range(rows):
        letters = np.array(list(sequence))
        changed = generator.random(len(letters)) < 0.5
        letters[changed] = generator.choice([*AMINO_ACIDS, "-"], changed.sum())
        text = "".join(letters)
        lines += [f">hit{number}\t90\t0.5", f"{text[:20]}ggs{text[20:]}"]
    return "\n".join([*lines, ""])


def gym_csv(sequence, positions, seed=0, pairs=0):
    """An assay in ProteinGym's format: BLOSUM62 and noise, single mutants and some pairs."""
    generator = np.random.default_rng(seed)
    matrix = blosum62()
    rows = ["mutant,mutated_sequence,DMS_score,DMS_score_bin"]

    def row(*changes):
        letters, score = list(sequence), 0.0
        for position, letter in changes:
            old = letters[position - 1]
            score += matrix[AMINO_ACIDS.index(old), AMINO_ACIDS.index(letter)]
            letters[position - 1] = letter
        name = ":".join(f"{sequence[p - 1]}{p}{b}" for p, b in changes)
        value = score + generator.normal()
        rows.append(f"{name},{''.join(letters)},{value:.4f},{int(value > -1)}")

    for position in positions:
        for letter in AMINO_ACIDS[::3]:
            if letter != sequence[position - 1]:
                row((position, letter))
    for number in range(pairs):
        first, second = sequence[positions[number] - 1], sequence[positions[number + 3] - 1]
        row(
            (positions[number], "A" if first != "A" else "G"),
            (positions[number + 3], "K" if second != "K" else "R"),
        )
    return "\n".join([*rows, ""]).encode()


def stability_csv(changes):
    """Rows as in T2837.csv: (structure, index, new letter, ddG)."""
    lines = [HEADER]
    for name, index, letter, ddg in changes:
        found = structure(name)
        old = THREE[found.sequence[index]]
        number = found.residue_numbers[index]
        lines.append(
            f"s669,P0,{name},{found.chain},{number},{old},{THREE[letter]},{old},{THREE[letter]},"
            f"20,{ddg},{found.sequence}"
        )
    return "\n".join([*lines, ""]).encode()


def some_changes(names, count, seed=0):
    generator = np.random.default_rng(seed)
    for name in names:
        for index in generator.choice(len(structure(name).sequence), count, replace=False):
            old = structure(name).sequence[index]
            letter = generator.choice([x for x in AMINO_ACIDS if x != old])
            yield name, int(index), str(letter), round(float(generator.normal(0.5)), 2)


def archive(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as found:
        for name, content in files.items():
            found.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The user's files: three proteins to train on, structures and changes of stability."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "structures").mkdir()
    (folder / "alignments").mkdir()
    for number, name in enumerate(("5p21", "2grn", "1a5r")):
        (folder / "structures" / f"{name}.pdb").write_bytes(bundle()[f"{name}.pdb"])
        sequence = structure(name).sequence
        # The alignment is of the whole protein: the structure lacks residues.
        text = alignment(f"MSTAGK{sequence}GG", seed=number)
        (folder / "alignments" / f"{name}.a3m.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "stability").mkdir()
    for name in ("1erm", "1nd4"):
        packed = gzip.compress(bundle()[f"{name}.pdb"])
        (folder / "stability" / f"{name}.pdb.gz").write_bytes(packed)
    (folder / "C2878.csv").write_bytes(stability_csv(some_changes(("1erm", "1nd4"), 12)))
    return folder


@pytest.fixture(scope="module")
def made(own, tmp_path_factory):
    """Everything that the paper's scale makes, at the size of a toy."""
    out = tmp_path_factory.mktemp("made")
    bla, kka2 = structure("1erm").sequence, structure("1nd4").sequence
    prefix = "MSIQHFRVALIPFFAAFCLPVFA"  # what the structure lacks
    gym = {
        "DMS/BLAT_ECOLX_Deng_2012.csv": gym_csv(prefix + bla, range(30, 60), pairs=6),
        "DMS/KKA2_KLEPN_Melnikov_2014.csv": gym_csv(kka2, range(20, 50), seed=1),
    }
    structures = {
        "AF2/BLAT_ECOLX.pdb": bundle()["1erm.pdb"],
        "AF2/KKA2_KLEPN_1-255.pdb": bundle()["1nd4.pdb"],
        "AF2/OTHER_HUMAN.pdb": b"",
    }
    files = {
        "DMS_ProteinGym_substitutions.zip": archive(gym),
        "ProteinGym_AF2_structures.zip": archive(structures),
    }
    save_arrays(out / "proteingym-data.npz", pack_files(files))
    t2837 = stability_csv(some_changes(("1erm",), 30, seed=2))
    save_arrays(out / "t2837-data.npz", pack_files({"T2837.csv": t2837}))

    def benchmark(name):
        return out / f"{name}.safetensors", out / f"{name}.npz"

    atom_assays(
        out / "proteingym-data.npz", *benchmark("proteingym"), settings=AtomAssaysSettings(**TINY)
    )
    for name in ("t2837", "c2878"):
        atom_stability(
            [out / "t2837-data.npz"] if name == "t2837" else [own / "C2878.csv"],
            *benchmark(name),
            dataset=name,
            settings=AtomStabilitySettings(
                structures=str(own / "stability"), changes=str(own / "C2878.csv"), **TINY
            ),
        )
    shards = [out / f"part{part}.safetensors" for part in range(2)]
    for part, path in enumerate(shards):
        atom_shard(
            [],
            [benchmark("proteingym")[1], benchmark("t2837")[1]],
            path,
            part=part,
            parts=2,
            settings=AtomShardSettings(
                proteins=str(own), positions=40, held_out=0.3, least_depth=3, **TINY
            ),
        )
    scores = {"proteingym": [], "t2837": []}
    held_out = []

    def score(method):
        for name, paths in scores.items():
            path = out / name / method / "seeds0-1.npz"
            path.parent.mkdir(parents=True)
            atom_score(
                benchmark(name)[0],
                out / method / "seeds0-1.safetensors",
                path,
                settings=AtomScoreSettings(),
            )
            paths.append(path)

    for method, about in METHODS.items():
        (out / method).mkdir()
        model = out / method / "seeds0-1.safetensors"
        atom_train(
            shards,
            model,
            out / method / "history.csv",
            method=method,
            seeds=SEEDS,
            settings=AtomTrainSettings(method=about, network=NETWORK, steps=12, batch=20, lr=3e-3),
            checkpoints=Checkpoints(out / "checkpoints", method, 60.0),
        )
        score(method)
        held_out.append(out / method / "held_out.csv")
        atom_represent(
            shards,
            model,
            held_out[-1],
            method=method,
            settings=AtomRepresentSettings(positions=60),
        )
    (out / "finetuned").mkdir()
    atom_finetune(
        *benchmark("c2878"),
        [out / "wildtype" / "seeds0-1.safetensors"],
        out / "finetuned" / "seeds0-1.safetensors",
        seeds=SEEDS,
        settings=AtomFinetuneSettings(epochs=2, batch=8, held_out=0.5),
        checkpoints=Checkpoints(out / "checkpoints", "finetuned", 60.0),
    )
    score("finetuned")
    evaluated(out, benchmark, scores, held_out, None, "")
    return out, benchmark, scores, held_out


def evaluated(out, benchmark, scores, held_out, zero_shot, suffix):
    atom_evaluate(
        benchmark("proteingym")[1],
        benchmark("t2837")[1],
        scores["proteingym"],
        scores["t2837"],
        held_out,
        [],
        out / f"rows{suffix}.csv",
        out / f"measures{suffix}.csv",
        out / f"map{suffix}.npz",
        assay="BLAT_ECOLX_Deng_2012",
        settings=AtomEvaluateSettings(zero_shot=zero_shot),
    )


def test_assays_are_placed_on_their_structures(made):
    _, benchmark, *_ = made
    positions = AtomPositions([benchmark("proteingym")[0]])
    variants = load_variants(benchmark("proteingym")[1])
    assert variants.assays == ("BLAT_ECOLX_Deng_2012", "KKA2_KLEPN_Melnikov_2014")
    assert positions.proteins == ["BLAT_ECOLX", "KKA2_KLEPN_1-255"]
    # The letters at the positions are the mutants' wild types.
    letters = decode(positions.wildtype.numpy())
    for mutant, number in zip(variants.mutants, range(len(variants.mutants)), strict=True):
        here = variants.variant == number
        parts = mutant.split(":")
        assert "".join(part[0] for part in parts) == "".join(
            letters[i] for i in variants.position[here]
        )
        assert [AMINO_ACIDS[i] for i in variants.letter[here]] == [p[-1] for p in parts]
    assert sum(":" in mutant for mutant in variants.mutants) == 6
    # Sums over a mutant's substitutions.
    scores = np.random.default_rng(0).normal(size=(len(positions), 20))
    pair = next(i for i, mutant in enumerate(variants.mutants) if ":" in mutant)
    here = variants.variant == pair
    expected = scores[variants.position[here], variants.letter[here]].sum()
    assert variants.predicted(scores)[pair] == pytest.approx(expected)


def test_stability_is_minus_ddg_at_the_residue_of_the_file(made):
    _, benchmark, *_ = made
    variants = load_variants(benchmark("t2837")[1])
    positions = AtomPositions([benchmark("t2837")[0]])
    changes = list(some_changes(("1erm",), 30, seed=2))
    assert variants.scores.tolist() == [-ddg for *_, ddg in changes]
    for (name, index, letter, _), place, new in zip(
        changes, variants.position, variants.letter, strict=True
    ):
        batch = positions.batch([place])
        assert AMINO_ACIDS[batch.wildtype[0]] == structure(name).sequence[index]
        assert AMINO_ACIDS[new] == letter


def test_shards_hold_both_splits_and_the_alignments_distribution(made, own):
    out, *_ = made
    shards = [out / f"part{part}.safetensors" for part in range(2)]
    proteins = own_proteins(str(own))
    held = held_out_families(proteins, 0.3)
    assert len(held) == 1
    training, held_out = AtomPositions(shards, TRAINING), AtomPositions(shards, HELD_OUT)
    assert (len(training), len(held_out)) == (80, 40)
    names = {held_out.proteins[i] for i in held_out.protein.unique()}
    assert names == held
    p = training.p.numpy()
    assert np.allclose(p.sum(1), 1, atol=1e-5)
    # Half of each column is the query's letter: it is the likeliest nearly everywhere.
    assert (p.argmax(1) == training.wildtype.numpy()).mean() > 0.9


def test_table_and_measures(made):
    out, *_ = made
    table(out / "rows.csv", ROOT / "seeds" / "evorank.yaml", out / "table.csv")
    found = pd.read_csv(out / "table.csv")
    spearman = found[found["metric"] == "spearman"]
    for method in ("wildtype", "evorank", "finetuned", "blosum62"):
        own = spearman[spearman["method"] == method]
        assert set(own["dataset"]) == {
            "BLAT_ECOLX_Deng_2012",
            "KKA2_KLEPN_Melnikov_2014",
            "mean",
            "t2837",
        }
        assert (own["n_seeds"] == (1 if method == "blosum62" else 2)).all()
    assert {"pearson", "auroc", "masked_accuracy", "own_accuracy"} <= set(found["metric"])
    blosum = spearman[(spearman["method"] == "blosum62") & (spearman["dataset"] == "mean")]
    assert blosum["mean"].item() > 0.5  # what the assays were made of
    # Every check of every claim finds its measure at the paper's scale.
    seed_file = read_seed_file(ROOT / "seeds" / "evorank.yaml")
    checks = ledger(seed_file, read_measures(out / "measures.csv"), "paper")
    assert (checks["n"] == 2).all()


def test_the_mean_and_the_stability_by_hand(made):
    out, benchmark, scores, _ = made
    from scipy.stats import spearmanr

    rows = read_metrics(out / "rows.csv")
    own = rows[(rows["method"] == "evorank") & (rows["seed"] == 1)].set_index(
        ["dataset", "metric"]
    )["value"]
    variants = load_variants(benchmark("t2837")[1])
    matrix = np.load(scores["t2837"][1])["1"]
    rho = spearmanr(matrix[variants.position, variants.letter], variants.scores).statistic
    assert own["t2837", "spearman"] == pytest.approx(rho)
    assays = [own[name, "spearman"] for name in load_variants(benchmark("proteingym")[1]).assays]
    assert own["mean", "spearman"] == pytest.approx(np.mean(assays))


def test_published_models_stand_beside(made, tmp_path):
    out, benchmark, scores, held_out = made
    names = load_variants(benchmark("proteingym")[1]).assays
    (tmp_path / "level.csv").write_text(
        "DMS ID,Site-Independent,ESM-IF1,Number of Mutants,Selection Type\n"
        f"{names[0]},0.3,0.4,150,Activity\n{names[1]},0.5,,150,Activity\nX_Y_2000,0.1,0.1,9,Z\n"
    )
    evaluated(out, benchmark, scores, held_out, str(tmp_path / "level.csv"), "_level")
    rows = read_metrics(out / "rows_level.csv")
    own = rows[rows["method"] == "published/Site-Independent"].set_index("dataset")["value"]
    assert own.to_dict() == pytest.approx({names[0]: 0.3, names[1]: 0.5, "mean": 0.4})
    # Without all assays there is no mean.
    assert set(rows[rows["method"] == "published/ESM-IF1"]["dataset"]) == {names[0]}

    variants = load_variants(benchmark("proteingym")[1])
    folder = tmp_path / "scores"
    folder.mkdir()
    for number, name in enumerate(names):
        here = variants.assay == number
        mutants = [m for m, own in zip(variants.mutants, here, strict=True) if own]
        pd.DataFrame(
            {
                "mutant": [*mutants, "A1C"],
                "DMS_score": 0.0,
                "same": [*variants.scores[here], 0.0],
                "few": [1.0, 2.0, 3.0, *[None] * (len(mutants) - 2)],
            }
        ).to_csv(folder / f"{name}.csv")
    shutil.make_archive(str(tmp_path / "packed"), "zip", folder)
    for place in (folder, tmp_path / "packed.zip"):
        evaluated(out, benchmark, scores, held_out, str(place), "_scores")
        rows = read_metrics(out / "rows_scores.csv")
        own = rows[rows["method"] == "published/same"]
        assert (own[own["metric"] == "spearman"]["value"] == 1).all()
        assert not (rows["method"] == "published/few").any()


def test_the_figure(made):
    out, *_ = made
    atom_figure(out / "rows.csv", out / "map.npz", out / "x.png", out / "x.pdf")
    assert (out / "x.png").read_bytes().startswith(b"\x89PNG")


def test_proteins_like_tested_ones_are_left_out(made, own, tmp_path, caplog):
    _, benchmark, *_ = made
    (tmp_path / "list.csv").write_text(
        "name,structure,alignment,chain,family\n"
        f"tem,{own}/stability/1erm.pdb.gz,bla.a3m,A,lactamases\n"
        f"ras,{own}/structures/5p21.pdb,{own}/alignments/5p21.a3m.gz,A,small GTPases\n"
    )
    (tmp_path / "bla.a3m").write_text(alignment(structure("1erm").sequence))
    caplog.set_level("INFO")
    atom_shard(
        [tmp_path / "list.csv"],
        [benchmark("proteingym")[1]],
        tmp_path / "x",
        part=0,
        parts=1,
        settings=AtomShardSettings(proteins=str(tmp_path / "list.csv"), least_depth=3, **TINY),
    )
    assert AtomPositions([tmp_path / "x"]).proteins == ["ras"]
    assert "tem: left out, like the tested" in caplog.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name,structure\n", "there is no column 'alignment'; needed: name, structure, alignment"),
        ("name,structure,alignment\na,,b\n", r"row 2: 'structure' is empty"),
        ("name,structure,alignment\na,b.pdb,c.a3m\n", r"row 2: .*b\.pdb: no such file"),
        ("name,structure,alignment\n", "there are no proteins"),
        (
            "name,structure,alignment\na,list.csv,list.csv\na,list.csv,list.csv\n",
            "the name 'a' stands there twice",
        ),
    ],
)
def test_bad_lists(tmp_path, text, message):
    path = tmp_path / "list.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        own_proteins(str(path))


def test_missing_files_are_one_clear_line(tmp_path, own):
    with pytest.raises(InputError, match="own: proteins: nothing is named; it must be a CSV file"):
        own_proteins(None)
    with pytest.raises(InputError, match="own: proteins: /nowhere: no such file"):
        own_proteins("/nowhere")
    with pytest.raises(InputError, match="there is no folder 'structures'"):
        own_proteins(str(tmp_path))
    (tmp_path / "structures").mkdir()
    (tmp_path / "alignments").mkdir()
    shutil.copy(own / "structures" / "5p21.pdb", tmp_path / "structures")
    with pytest.raises(InputError, match="there is none of the structure '5p21'"):
        own_proteins(str(tmp_path))
    choice = AtomStabilitySettings(structures=str(tmp_path), changes=str(own / "C2878.csv"))
    arguments = ([], tmp_path / "x", tmp_path / "y")
    with pytest.raises(InputError, match=r"there is no structure '1erm' \(\.pdb, \.ent, \.cif"):
        atom_stability(*arguments, dataset="c2878", settings=choice)
    choice = AtomStabilitySettings(structures=str(tmp_path))
    with pytest.raises(InputError, match=r"own: finetuning: nothing is named; .* C2878\.csv"):
        atom_stability(*arguments, dataset="c2878", settings=choice)
    choice = AtomStabilitySettings()
    with pytest.raises(InputError, match="own: stability_structures: nothing is named"):
        atom_stability(*arguments, dataset="c2878", settings=choice)


def test_changes_that_do_not_fit_their_structures(tmp_path, own):
    rows = list(csv.reader((own / "C2878.csv").read_text().splitlines()))
    for row in rows[1:16]:
        row[4] = "9999"
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("\n".join(",".join(row) for row in rows))
    choice = AtomStabilitySettings(structures=str(own / "stability"), changes=str(wrong), **TINY)
    with pytest.raises(InputError, match="only 9 of 24 changes lie on the structures"):
        atom_stability([], tmp_path / "x", tmp_path / "y", dataset="c2878", settings=choice)
