"""Structures and microenvironments: readers, geometry, and what must not leak into a feature."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from retable.evorank.alphabet import AMINO_ACIDS, RESIDUES
from retable.evorank.structure import (
    Backbone,
    Environments,
    local_frames,
    microenvironments,
    parse_structure,
    read_structure,
    structure_of,
    virtual_cb,
    wildtype_of,
)

LINE = (
    "ATOM  {serial:5d}  {atom:<3s} {name:3s} {chain:1s}{number:4d}    "
    "{x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00"
)
NAMES = {letter: name for name, letter in reversed(RESIDUES.items())}


def chain_of(length: int, seed: int = 0) -> Backbone:
    """A compact random walk with bonds of the right length."""
    generator = np.random.default_rng(seed)
    atoms = np.zeros((3 * length, 3))
    for i in range(1, 3 * length):
        step = generator.normal(size=3) - 0.15 * atoms[i - 1]
        atoms[i] = atoms[i - 1] + 1.4 * step / np.linalg.norm(step)
    letters = generator.choice(list(AMINO_ACIDS), length)
    return Backbone("".join(letters), np.arange(1, length + 1), "A", atoms.reshape(length, 3, 3))


def pdb_text(backbone: Backbone, ending: str = "           C") -> str:
    lines, serial = [], 0
    for letter, number, atoms in zip(
        backbone.sequence, backbone.residue_numbers, backbone.coords, strict=True
    ):
        for atom, (x, y, z) in zip(("N", "CA", "C"), atoms, strict=True):
            serial += 1
            line = LINE.format(
                serial=serial, atom=atom, name=NAMES[letter], chain=backbone.chain,
                number=number, x=x, y=y, z=z,
            )  # fmt: skip
            lines.append(line + ending)
    return "\n".join(lines) + "\nEND\n"


BACKBONE = chain_of(60)


def test_virtual_cb_of_a_known_case():
    coords = np.array([[[1.458, 0, 0], [0, 0, 0], [-0.55, 1.42, 0]]])
    assert virtual_cb(coords)[0] == pytest.approx([-0.530814, -0.767758, 1.206470], abs=1e-6)


def test_frames_are_rotations():
    frames = local_frames(BACKBONE.coords)
    assert np.linalg.det(frames) == pytest.approx(1)
    assert frames @ frames.transpose(0, 2, 1) == pytest.approx(np.tile(np.eye(3), (60, 1, 1)))


def moved(backbone: Backbone, matrix: np.ndarray, shift: float = 3.0) -> Backbone:
    return replace(backbone, coords=backbone.coords @ matrix.T + shift)


def test_rotation_and_translation_change_nothing_but_reflection_does():
    plain = microenvironments(BACKBONE)
    turned = microenvironments(moved(BACKBONE, Rotation.random(random_state=0).as_matrix()))
    assert torch.allclose(plain.neighbours, turned.neighbours, atol=1e-4)
    assert torch.allclose(plain.density, turned.density)
    mirrored = microenvironments(moved(BACKBONE, np.diag([1.0, 1, -1])))
    assert not torch.allclose(plain.neighbours, mirrored.neighbours, atol=0.1)


def test_the_residues_own_letter_enters_nowhere():
    plain = microenvironments(BACKBONE)
    for place in (0, 17, 59):
        other = "W" if BACKBONE.sequence[place] != "W" else "A"
        letters = BACKBONE.sequence[:place] + other + BACKBONE.sequence[place + 1 :]
        changed = microenvironments(replace(BACKBONE, sequence=letters))
        assert torch.equal(changed.neighbours[place], plain.neighbours[place])
        assert torch.equal(changed.density[place], plain.density[place])
        assert not torch.equal(changed.neighbours, plain.neighbours)


def test_features_by_hand():
    found = microenvironments(BACKBONE, k=5)
    assert found.neighbours.shape == (60, 5, 58)
    cb, frames = virtual_cb(BACKBONE.coords), local_frames(BACKBONE.coords)
    i = 23
    distances = np.linalg.norm(cb - cb[i], axis=1)
    distances[i] = np.inf
    for rank, j in enumerate(np.argsort(distances)[:5]):
        x = found.neighbours[i, rank].numpy()
        assert x[:20].argmax() == AMINO_ACIDS.index(BACKBONE.sequence[j])
        offset = j - i
        assert x[20:38].argmax() == (offset + 8 if abs(offset) <= 8 else 17)
        place = frames[i] @ (cb[j] - BACKBONE.coords[i, 1]) / 10
        assert x[38:41] == pytest.approx(place, abs=1e-5)
        radial = np.exp(-(((distances[j] - np.linspace(3, 15, 8)) / 1.7) ** 2))
        assert x[41:49] == pytest.approx(radial, abs=1e-5)
        assert x[49:].reshape(3, 3) == pytest.approx(frames[i] @ frames[j].T, abs=1e-5)
    counts = [(distances < radius).sum() for radius in (6, 8, 10, 14)]
    assert found.density[i].tolist() == pytest.approx(np.array(counts) / [8, 15, 25, 50])


def test_a_chain_break_makes_neighbours_far():
    numbers = BACKBONE.residue_numbers.copy()
    numbers[30:] += 5
    plain, broken = (
        microenvironments(BACKBONE),
        microenvironments(replace(BACKBONE, residue_numbers=numbers)),
    )
    cb = virtual_cb(BACKBONE.coords)
    distances = np.linalg.norm(cb[29] - cb, axis=1)
    distances[29] = np.inf
    near = np.argsort(distances)[:16].tolist()
    if 30 in near:
        rank = near.index(30)
        assert plain.neighbours[29, rank, 20:38].argmax() == 9
        assert broken.neighbours[29, rank, 20:38].argmax() == 17
    assert not torch.equal(plain.neighbours, broken.neighbours)
    pulled = BACKBONE.coords.copy()
    pulled[30:] += [3.0, 0, 0]
    torn = microenvironments(replace(BACKBONE, coords=pulled))
    across = torn.neighbours[:30, :, 20:37].sum(-1)
    assert across.shape == (30, 16)


def test_selection():
    found = microenvironments(BACKBONE)
    part = found[torch.tensor([3, 1])]
    assert isinstance(part, Environments)
    assert torch.equal(part.neighbours[1], found.neighbours[1])
    assert len(Environments.concatenate([part, found])) == 62


@pytest.mark.parametrize("ending", [".pdb", ".pdbqt", ".cif"])
def test_readers_give_the_same_backbone(tmp_path: Path, ending: str):
    path = tmp_path / f"x{ending}"
    if ending == ".cif":
        import gemmi

        gemmi.read_pdb_string(pdb_text(BACKBONE)).make_mmcif_document().write_file(str(path))
    else:
        path.write_text(
            pdb_text(BACKBONE, "    -0.055 N " if ending == ".pdbqt" else "  " * 5 + " C")
        )
    found = read_structure(path)
    assert found.sequence == BACKBONE.sequence
    assert found.residue_numbers.tolist() == BACKBONE.residue_numbers.tolist()
    assert found.coords == pytest.approx(BACKBONE.coords, abs=1e-3)
    assert read_structure(path, "A").sequence == BACKBONE.sequence
    with pytest.raises(ValueError, match=r"there is no chain 'B'; there are: A"):
        read_structure(path, "B")


def test_forms_of_residues_unknown_ones_and_missing_atoms(caplog):
    text = pdb_text(BACKBONE)
    lines = text.splitlines()
    # Residue 1 is a selenomethionine, 2 is unknown, 3 lacks its CA.
    lines[:3] = [line[:17] + "MSE" + line[20:] for line in lines[:3]]
    lines[3:6] = [line[:17] + "TPO" + line[20:] for line in lines[3:6]]
    del lines[7]
    found = parse_structure("\n".join(lines).encode(), ".pdbqt", "x.pdbqt")
    assert found.sequence == "M" + BACKBONE.sequence[3:]
    assert found.residue_numbers[:2].tolist() == [1, 4]
    assert "x.pdbqt: 1 unknown residues (TPO) and 1 without backbone are left out" in caplog.text


@pytest.mark.parametrize(
    ("content", "ending", "message"),
    [
        (b"", ".xyz", r"x: ending '\.xyz', must be \.pdb, \.ent, \.cif or \.pdbqt"),
        (b"REMARK nothing\n", ".pdbqt", "x: there are no amino acids"),
        (b"REMARK nothing\n", ".pdb", "x: there are no amino acids"),
        (
            b"ATOM      1  N   THR     A     135.230  63.519   4.638\n",
            ".pdbqt",
            "x: line 1: no residue",
        ),
        (b"data_x\nloop_\n", ".cif", "x: "),
    ],
)
def test_bad_files(content, ending, message):
    with pytest.raises(ValueError, match=message):
        parse_structure(content, ending, "x")


def test_bad_arguments():
    with pytest.raises(ValueError, match="29 residues; an environment needs at least 30"):
        microenvironments(chain_of(29))
    with pytest.raises(ValueError, match=r"k: 60, must be within 1\.\.59"):
        microenvironments(BACKBONE, k=60)
    wrong = {
        r"coords \(59, 3, 3\) and residue_numbers \(60,\), must be": {
            "coords": BACKBONE.coords[1:]
        },
        "coords hold values that are not finite": {"coords": BACKBONE.coords * np.nan},
        "sequence: 'X' at 3 is no residue": {"sequence": "AAAX" + BACKBONE.sequence[4:]},
    }
    for message, change in wrong.items():
        with pytest.raises(ValueError, match=message):
            microenvironments(replace(BACKBONE, **change))
    with pytest.raises(ValueError, match=r"structure: 'XYZ', must be one of .*5p21"):
        structure_of({}, "XYZ")
    assert wildtype_of(BACKBONE).dtype == np.int64
