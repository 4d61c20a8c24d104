"""Environments of atoms: what they hold, and that nothing of the masked residue is in them."""

import gzip
import io
from collections import defaultdict

import numpy as np
import pytest
import torch

from retable.evorank.alphabet import AMINO_ACIDS, RESIDUES
from retable.evorank.atom_data import AtomPositions, save_environments
from retable.evorank.atoms import (
    atom_environments,
    environment_table,
    parse_atoms,
    read_atoms,
)
from retable.evorank.charges import _RENAMED, residue_charges
from retable.evorank.model import ELEMENTS
from retable.evorank.surface import exposed_points, point_areas, sphere_points

from .structures import bundle, lines_of, structure

POSITION = 31  # residue 32 of HRAS, a tyrosine


def only_backbone_of(number):
    """Leaves out the side chain of one residue of chain A."""
    return lambda line: (
        line[22:26].strip() == str(number)
        and line[21] == "A"
        and line[12:16].strip() not in ("N", "CA", "C", "O")
    )


def renamed(number, name):
    def change(line):
        own = line[22:26].strip() == str(number) and line[21] == "A"
        return f"{line[:17]}{name}{line[20:]}" if own else line

    return change


def seen(found, index):
    """What the network gets of one position."""
    atoms, exposed = atom_environments(found, np.array([index]), 200)
    places = found.xyz[atoms[0]] - found.ca[index]
    return found.element[atoms[0]], found.charge[atoms[0]], places, exposed[0]


def test_a_structure_of_a_file():
    hras = structure("5p21")
    assert hras.sequence.startswith("MTEYKLVVVGAGGVGKSALTIQLIQNHFVDEY")
    assert hras.residue_numbers.tolist() == list(range(1, 167))
    assert hras.chain == "A"
    # Carbon, nitrogen, oxygen, sulphur, three phosphorus of GNP, magnesium; no hydrogen, no water.
    counts = np.bincount(hras.element, minlength=9)
    assert counts[ELEMENTS.index("P")] == 3
    assert counts[ELEMENTS.index("other")] == 1
    assert counts[0] == 0
    text = bundle()["5p21.pdb"].decode().splitlines()
    heavy = [x for x in text if x.startswith(("ATOM", "HETATM")) and x[17:20] != "HOH"]
    assert len(hras.element) == len(heavy)


def test_what_has_no_charge_is_said(caplog):
    parse_atoms(bundle()["5p21.pdb"], ".pdb", "5p21")
    assert "5p21: 33 atoms (GNP, MG) have no partial charge but their formal one" in caplog.text


def test_pdb_and_mmcif_give_the_same_atoms(tmp_path):
    import gemmi

    path = tmp_path / "x.cif"
    gemmi.read_pdb_string(bundle()["5p21.pdb"].decode()).make_mmcif_document().write_file(str(path))
    (tmp_path / "y.pdb.gz").write_bytes(gzip.compress(bundle()["5p21.pdb"]))
    for found in (read_atoms(path), read_atoms(tmp_path / "y.pdb.gz")):
        for name, value in vars(structure("5p21")).items():
            assert np.array_equal(getattr(found, name), value), name


def test_the_nearest_atoms_without_the_residue():
    hras = structure("5p21")
    atoms, exposed = atom_environments(hras, np.array([POSITION, 5]))
    assert atoms.shape == exposed.shape == (2, 512)
    for row, position in zip(atoms, (POSITION, 5), strict=True):
        away = np.linalg.norm(hras.xyz - hras.ca[position], axis=1)
        others = hras.group != hras.residues[position]
        assert set(row) == set(np.flatnonzero(others)[np.argsort(away[others])[:512]])
        assert (np.diff(away[row]) >= 0).all()
        # The first is bonded to the residue: the next one's N or the last one's C.
        assert 2.3 < away[row[0]] < 2.6
    wide = atom_environments(hras, np.array([0]), most=3000)[0][0]
    own = (hras.group == hras.residues[0]).sum()
    assert (wide >= 0).sum() == len(hras.element) - own


def test_the_side_chain_and_the_name_of_the_residue_enter_nowhere():
    whole = structure("5p21")
    assert whole.sequence[POSITION] == "Y"
    bare = parse_atoms(
        lines_of("5p21", only_backbone_of(32), renamed(32, "GLY")), ".pdb", "5p21 Y32G"
    )
    assert bare.sequence[POSITION] == "G"
    for first, second in zip(seen(whole, POSITION), seen(bare, POSITION), strict=True):
        assert np.array_equal(first, second)
    # Of a neighbour's environment the side chain is a part.
    assert not np.array_equal(seen(whole, POSITION - 1)[2], seen(bare, POSITION - 1)[2])


def test_the_surface_of_the_whole_structure_would_tell_the_size():
    whole = structure("5p21")
    atoms, exposed = atom_environments(whole, np.array([POSITION]), 100)
    leaking, _ = exposed_points(whole.xyz, whole.radius, whole.group)
    assert (exposed[0] >= leaking[atoms[0]]).all()
    assert (exposed[0] > leaking[atoms[0]]).sum() > 5


def test_surfaces_are_those_of_biopython():
    from Bio.PDB import PDBParser
    from Bio.PDB.SASA import ShrakeRupley

    def areas(content):
        model = PDBParser(QUIET=True).get_structure("x", io.StringIO(content.decode()))[0]
        for chain in model:
            for residue in [r for r in chain if r.id[0] != " "]:
                chain.detach_child(residue.id)
        ShrakeRupley().compute(model)
        return np.array([atom.sasa for atom in model.get_atoms()])

    hetero = lambda line: line.startswith("HETATM")  # noqa: E731
    content = lines_of("5p21", hetero)
    found = parse_atoms(content, ".pdb", "5p21")
    exposed, freed = exposed_points(found.xyz, found.radius, found.group)
    per_point = point_areas(found.radius, 100)
    assert np.allclose(exposed * per_point, areas(content), atol=1e-3)
    without = lines_of("5p21", lambda line: hetero(line) or line[22:26].strip() == "32")
    kept = found.group != found.residues[POSITION]
    freed = freed.toarray()[:, found.residues[POSITION]]
    assert np.allclose(((exposed + freed) * per_point)[kept], areas(without), atol=1e-3)


def test_surfaces_of_known_spheres():
    points = sphere_points(400)
    assert np.allclose(np.linalg.norm(points, axis=1), 1)
    assert np.abs(points.mean(0)).max() < 0.01
    # Two equal spheres at a distance d hide a cap of height r - d/2: a share (1 - d/2r) / 2.
    xyz = np.array([[0.0, 0, 0], [3.1, 0, 0], [50, 0, 0]])
    exposed, freed = exposed_points(xyz, np.full(3, 1.7), np.arange(3), points=200)
    assert exposed[2] == 200
    assert exposed[0] / 200 == pytest.approx(1 - 0.25, abs=0.02)
    assert np.array_equal(exposed + freed.toarray().sum(1), [200, 200, 200])


def test_rotation_and_translation_leave_the_environment():
    from scipy.spatial.transform import Rotation

    hras = structure("5p21")
    turn = Rotation.from_euler("xyz", [30, 50, 70], degrees=True)
    moved = type(hras)(
        **vars(hras) | {"xyz": turn.apply(hras.xyz) + 7, "ca": turn.apply(hras.ca) + 7}
    )
    chosen = np.arange(20, 60)
    tables = [environment_table(found, chosen, most=100) for found in (hras, moved)]
    assert np.array_equal(tables[0]["atoms"], tables[1]["atoms"])
    away = [np.linalg.norm(t["xyz"][t["atoms"]] - t["ca"][:, None], axis=2) for t in tables]
    assert np.allclose(*away, atol=1e-3)
    # The points of a surface stand still: the areas change by what points stand for.
    areas = [t["exposed"] * t["point_area"][t["atoms"]] for t in tables]
    assert np.corrcoef(areas[0].ravel(), areas[1].ravel())[0, 1] > 0.98
    assert areas[0].sum() == pytest.approx(areas[1].sum(), rel=0.02)


def test_copies_of_the_residue_in_a_homomer_are_masked_too():
    # A second copy of the chain, beside the first.
    def copied(line):
        return f"{line[:21]}B{line[22:30]}{float(line[30:38]) + 4:8.3f}{line[38:]}"

    hetero = lambda line: line.startswith(("HETATM", "TER"))  # noqa: E731
    first = lines_of("5p21", hetero).decode().replace("END\n", "TER\n")
    second = lines_of("5p21", hetero, copied).decode()
    dimer = parse_atoms((first + second).encode(), ".pdb", "dimer")
    assert len(dimer.sequence) == 166
    own = dimer.group == dimer.residues[POSITION]
    assert own.sum() == 2 * 12  # a tyrosine has 12 heavy atoms
    atoms, _ = atom_environments(dimer, np.array([POSITION]), 512)
    assert not own[atoms].any()
    # A chain of other residues at the same numbers is no copy.
    other = lines_of("5p21", hetero, lambda line: copied(renamed_all(line))).decode()
    hetero_dimer = parse_atoms((first + other).encode(), ".pdb", "heterodimer")
    assert (hetero_dimer.group == hetero_dimer.residues[POSITION]).sum() == 12


def renamed_all(line):
    return f"{line[:17]}GLY{line[20:]}"


def test_charges_of_residues():
    table = residue_charges()
    for letter in AMINO_ACIDS:
        expected = {"D": -1, "E": -1, "K": 1, "R": 1}.get(letter, 0)
        assert sum(table[letter].values()) == pytest.approx(expected, abs=0.01)
    for letter, pair in {"D": ("OD1", "OD2"), "E": ("OE1", "OE2"), "R": ("NH1", "NH2")}.items():
        assert table[letter][pair[0]] == pytest.approx(table[letter][pair[1]])
    assert table["K"]["NZ"] > 0.5
    assert table["S"]["OG"] < 0


def test_names_of_the_table_are_bonded_as_in_structures():
    """The atom that a name stands for in the table has the neighbours that it has in files."""
    import gemmi
    from rdkit import Chem
    from scipy.spatial.distance import cdist

    expected = {}
    for letter in AMINO_ACIDS:
        for atom in Chem.MolFromSequence(f"G{letter}G").GetAtoms():
            info = atom.GetPDBResidueInfo()
            name = info.GetName().strip()
            # N and C are bonded to other residues.
            if info.GetResidueNumber() == 2 and name not in ("N", "C"):
                expected[letter, table_name(letter, name)] = atom.GetDegree()
    found = defaultdict(list)
    for name in ("5p21", "1erm", "1nd4"):
        for residue in gemmi.read_pdb_string(bundle()[f"{name}.pdb"].decode())[0][0]:
            letter = RESIDUES.get(residue.name)
            atoms = [a for a in residue if not a.is_hydrogen() and a.altloc in "\0A"]
            xyz = np.array([a.pos.tolist() for a in atoms])
            for atom, degree in zip(atoms, (cdist(xyz, xyz) < 2.0).sum(1) - 1, strict=True):
                found[letter, atom.name].append(degree)
    for key, degree in expected.items():
        assert np.median(found[key]) == degree, key


def table_name(letter, name):
    """The name in files of an atom of RDKit's."""
    return _RENAMED.get((letter, name), name)


def test_batches_are_what_was_saved(tmp_path):
    hras, ubc = structure("5p21"), structure("2grn")
    first = environment_table(hras, np.array([3, 40, 90]), most=50)
    second = environment_table(ubc, np.array([7, 8]), most=50) | {"split": np.ones(2)}
    third = environment_table(hras, np.array([100]), most=50) | {"p": np.eye(20)[[4]]}
    save_environments(tmp_path / "a", {"hras": first, "ubc": second})
    save_environments(tmp_path / "b", {})
    save_environments(tmp_path / "c", {"again": third})
    paths = [tmp_path / name for name in "abc"]
    every = AtomPositions(paths)
    assert len(every) == 6
    assert every.proteins == ["hras", "ubc", "again"]
    assert every.protein.tolist() == [0, 0, 0, 1, 1, 2]
    assert len(AtomPositions(paths, 1)) == 2
    assert AtomPositions(paths, most=3).protein.tolist() == [0, 0, 2]
    batch = every.batch(torch.tensor([5, 3, 1]))
    assert batch.p[0].argmax() == 4
    assert batch.p[1].tolist() == pytest.approx([0.05] * 20)
    for row, (table, place) in enumerate(((third, 0), (second, 0), (first, 1))):
        atoms = table["atoms"][place]
        assert np.array_equal(batch.element[row], table["element"][atoms])
        away = table["xyz"][atoms] - table["ca"][place]
        assert np.allclose(batch.xyz[row], away, atol=1e-5)
        area = table["exposed"][place] * table["point_area"][atoms] / 10
        charge = table["charge"][atoms]
        assert np.allclose(batch.properties[row], np.stack([charge, area], 1), atol=1e-5)
        assert batch.wildtype[row] == table["wildtype"][place]
    assert batch.mask.all()
    assert not batch.emptied().mask.any()
    content = (tmp_path / "a").read_bytes()
    save_environments(tmp_path / "a", {"hras": first, "ubc": second})
    assert (tmp_path / "a").read_bytes() == content


def test_environments_that_end_early_are_padded(tmp_path):
    hras = structure("5p21")
    table = environment_table(hras, np.array([0, 1]), most=2000)
    save_environments(tmp_path / "x", {"hras": table})
    batch = AtomPositions([tmp_path / "x"]).batch(torch.arange(2))
    left = [len(hras.element) - (hras.group == hras.residues[i]).sum() for i in (0, 1)]
    assert batch.mask.sum(1).tolist() == left
    assert batch.mask.shape[1] == max(left)
    assert (batch.xyz[~batch.mask] == 0).all()


@pytest.mark.parametrize(
    ("content", "ending", "chain", "message"),
    [
        (b"", ".pdbqt", None, r"x: ending '\.pdbqt', must be one of \.pdb, \.ent, \.cif"),
        (b"", ".pdb", None, "x: there are no amino acids with a CA"),
        (b"data_", ".cif", None, "x: "),
        (None, ".pdb", "Q", "x: there is no chain 'Q'; there are: A"),
    ],
)
def test_bad_files(content, ending, chain, message):
    with pytest.raises(ValueError, match=message):
        parse_atoms(bundle()["5p21.pdb"] if content is None else content, ending, "x", chain)


def test_bad_arguments(tmp_path):
    with pytest.raises(ValueError, match=r"points: 256, must be within 1\.\.255"):
        atom_environments(structure("5p21"), np.array([0]), points=256)
    with pytest.raises(ValueError, match="most: 0, must be >= 1"):
        atom_environments(structure("5p21"), np.array([0]), most=0)
    (tmp_path / "x.pdb.gz").write_bytes(b"no gzip")
    with pytest.raises(ValueError, match="damaged gzip file"):
        read_atoms(tmp_path / "x.pdb.gz")
    save_environments(tmp_path / "empty", {})
    with pytest.raises(ValueError, match="there are no training positions"):
        AtomPositions([tmp_path / "empty"], 0)
