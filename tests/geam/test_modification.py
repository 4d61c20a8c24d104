"""Population and offspring."""

from collections import Counter

import pytest
from rdkit import Chem

from retable.geam.modification import (
    Population,
    canonical,
    reproduce,
    seeded_random,
    within_atom_limits,
)

PARENTS = [
    "CC(=O)Nc1ccc(OCC(O)CN2CCCCC2)cc1",
    "Cc1ccc(cc1)-c1cc(nn1-c1ccc(cc1)S(N)(=O)=O)C(F)(F)F",
    "COc1ccccc1OCC(O)CN2CCN(CC(=O)Nc3c(C)cccc3C)CC2",
    "O=C(OCC)C(NC(C(=O)N1C(C(=O)O)CC2CCCCC12)C)CCC",
]


def population():
    pool = Population(10)
    pool.add((Chem.CanonSmiles(smiles), 0.2 * k) for k, smiles in enumerate(PARENTS, start=1))
    return pool


def test_keeps_the_best_distinct_ones():
    pool = Population(2)
    pool.add([("C", 0.1), ("CC", 0.3), ("CC", 0.3), ("CCC", 0.2)])
    assert pool.smiles == ["CC", "CCC"]
    pool.add([("CCCC", 0.2), ("CCCCC", 0.25)])  # a tie does not push out
    assert pool.smiles == ["CC", "CCCCC"]
    assert pool.scores == [0.3, 0.25]


def test_parents_in_proportion_to_the_score():
    pool = Population(3)
    pool.add([("C", 0.6), ("CC", 0.3), ("CCC", 0.0)])
    rng = seeded_random(0)
    counts = Counter(parent for _ in range(5000) for parent in pool.parents(rng))
    assert counts["C"] / counts["CC"] == pytest.approx(2, rel=0.1)
    assert counts["CCC"] == 0
    zeros = Population(3)
    zeros.add([("C", 0.0), ("CC", 0.0)])
    assert set(zeros.parents(rng)) <= {"C", "CC"}


def test_offspring_obey_the_atom_limits_and_are_canonical():
    pool, rng = population(), seeded_random(1)
    children = [reproduce(pool, 0.5, rng) for _ in range(40)]
    assert sum(child is not None for child in children) > 30
    for child in filter(None, children):
        mol = Chem.MolFromSmiles(child)
        assert 16 <= mol.GetNumHeavyAtoms() <= 39
        assert Chem.MolToSmiles(mol) == child
        assert max((len(ring) for ring in mol.GetRingInfo().AtomRings()), default=0) <= 6
    tight = [reproduce(pool, 0.0, rng, min_atoms=20, max_atoms=21) for _ in range(10)]
    sizes = {Chem.MolFromSmiles(c).GetNumHeavyAtoms() for c in filter(None, tight)}
    assert sizes
    assert sizes <= {20, 21}


def test_same_seed_same_offspring():
    runs = [[reproduce(population(), 0.3, seeded_random(7, k)) for k in range(8)] for _ in "ab"]
    assert runs[0] == runs[1]
    other = [reproduce(population(), 0.3, seeded_random(8, k)) for k in range(8)]
    assert other != runs[0]


def test_limits():
    assert within_atom_limits("C" * 16)
    assert not within_atom_limits("C" * 15)
    assert within_atom_limits("C" * 39)
    assert not within_atom_limits("C" * 40)
    assert not within_atom_limits("C" * 10 + "." + "C" * 10)
    assert not within_atom_limits("no molecule")


def test_canonical_is_a_fixed_point():
    for smiles in PARENTS:
        assert canonical(canonical(smiles)) == canonical(smiles)


@pytest.mark.parametrize("score", [float("nan"), -0.1])
def test_bad_scores_are_named(score):
    with pytest.raises(ValueError, match="score of 'CC'"):
        Population(3).add([("CC", score)])


def test_bad_arguments():
    with pytest.raises(ValueError, match="size of the population is 0"):
        Population(0)
    with pytest.raises(ValueError, match="population is empty"):
        Population(3).parents(seeded_random(0))
    with pytest.raises(ValueError, match="mutation_rate is 2"):
        reproduce(population(), 2, seeded_random(0))
