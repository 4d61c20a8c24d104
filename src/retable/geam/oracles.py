"""Oracles: the seven multi-property tasks of GuacaMol, the docking property, and counting."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rdkit import Chem, DataStructs
from rdkit.Chem import QED, Crippen, Mol, rdFingerprintGenerator, rdMolDescriptors
from rdkit.Contrib.SA_Score import sascorer

from retable.common.molecules import parse_smiles

TARGETS = {
    "perindopril": "O=C(OCC)C(NC(C(=O)N1C(C(=O)O)CC2CCCCC12)C)CCC",
    "amlodipine": "Clc1ccccc1C2C(=C(/N/C(=C2/C(=O)OCC)COCCN)C)\\C(=O)OC",
    "osimertinib": "COc1cc(N(C)CCN(C)C)c(NC(=O)C=C)cc1Nc2nccc(n2)c3cn(C)c4ccccc34",
    "fexofenadine": "CC(C)(C(=O)O)c1ccc(cc1)C(O)CCCN2CCC(CC2)C(O)(c3ccccc3)c4ccccc4",
    "ranolazine": "COc1ccccc1OCC(O)CN2CCN(CC(=O)Nc3c(C)cccc3C)CC2",
    "sitagliptin": "Fc1cc(c(F)cc1F)CC(N)CC(=O)N3Cc2nnc(n2CC3)C(F)(F)F",
    "zaleplon": "O=C(C)N(CC)C1=CC=CC(C2=CC=NC3=C(C=NN23)C#N)=C1",
}


class BudgetExhausted(RuntimeError):
    """No oracle call is left."""


def evaluate_many(fn: Callable[[Mol], float], mols: Sequence[Mol]) -> Iterator[float]:
    """`fn` of molecules in their order; by `fn.many`, side by side, where it has such a method."""
    many = getattr(fn, "many", None)
    return map(fn, mols) if many is None else many(mols)


class OracleStopped(RuntimeError):
    """An oracle was ended from outside: its failure says nothing of the molecule."""


class CountingOracle:
    """Scores SMILES; `fn` is called once for each distinct molecule.

    Attributes:
        order: canonical SMILES -> score, in the order of the calls.

    Raises:
        BudgetExhausted: a new molecule when all calls are used.
    """

    def __init__(self, fn: Callable[[Mol], float], budget: int):
        self._fn, self._budget = fn, budget
        self.order: dict[str, float] = {}
        self._ahead: dict[str, float] = {}

    @property
    def calls(self) -> int:
        """Distinct calls so far."""
        return len(self.order)

    def __call__(self, smiles: str) -> float:
        mol = parse_smiles(smiles)
        key = Chem.MolToSmiles(mol)
        if key not in self.order:
            if self.calls >= self._budget:
                raise BudgetExhausted(f"all {self._budget} oracle calls are used")
            known = self._ahead.pop(key, None)
            self.order[key] = float(self._fn(mol)) if known is None else known
        return self.order[key]

    def ahead(self, smiles: Iterable[str]) -> Iterator[None]:
        """Evaluate molecules that will be scored, one a step of the iterator, in their order.

        A function that has a method `many` gets them together. They count as calls when they are
        scored; whoever stops in between keeps what is there.
        """
        mols: dict[str, Mol] = {}
        for text in smiles:
            mol = parse_smiles(text)
            key = Chem.MolToSmiles(mol)
            if key not in self.order and key not in self._ahead:
                mols.setdefault(key, mol)
        values = evaluate_many(self._fn, list(mols.values()))
        for key, value in zip(mols, values, strict=True):
            self._ahead[key] = float(value)
            yield

    def state_dict(self) -> dict[str, Any]:
        """Molecules and scores, those of calls first."""
        known = self.order | self._ahead
        values = [float(value) for value in known.values()]
        return {"calls": self.calls, "smiles": list(known), "scores": values}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        known = list(zip(state["smiles"], state["scores"], strict=True))
        self.order = dict(known[: state["calls"]])
        self._ahead = dict(known[state["calls"] :])


def _gauss(x: float, mu: float, s: float) -> float:
    """g(x; mu, s) = exp(-((x - mu)/s)^2/2)."""
    return math.exp(-(((x - mu) / s) ** 2) / 2)


def _gmin(x: float, mu: float, s: float) -> float:
    """1 up to mu, falling above it: smaller is better."""
    return _gauss(max(x, mu), mu, s)


def _gmax(x: float, mu: float, s: float) -> float:
    """1 from mu on, falling below it: larger is better."""
    return _gauss(min(x, mu), mu, s)


def _mean(*values: float) -> float:
    """Geometric mean."""
    return math.prod(values) ** (1 / len(values))


def _isomer(formula: Mapping[str, int]) -> Callable[[Mol], float]:
    """Geometric mean over the elements and the number of all atoms, hydrogen included."""

    def score(mol: Mol) -> float:
        symbols = [atom.GetSymbol() for atom in Chem.AddHs(mol).GetAtoms()]
        counts = [_gauss(symbols.count(symbol), n, 1) for symbol, n in formula.items()]
        return _mean(*counts, _gauss(len(symbols), sum(formula.values()), 2))

    return score


def _similarity(target: Mol, kind: str) -> Callable[[Mol], float]:
    """Tanimoto similarity of count fingerprints to the target."""
    library = rdFingerprintGenerator
    generator = {
        "ECFP4": lambda: library.GetMorganGenerator(2),
        "ECFP6": lambda: library.GetMorganGenerator(3),
        "FCFP4": lambda: library.GetMorganGenerator(
            2, atomInvariantsGenerator=library.GetMorganFeatureAtomInvGen()
        ),
        "AP": lambda: library.GetAtomPairGenerator(maxDistance=10),
    }[kind]()
    reference = generator.GetSparseCountFingerprint(target)
    return lambda mol: DataStructs.TanimotoSimilarity(
        generator.GetSparseCountFingerprint(mol), reference
    )


_tpsa, _logp = rdMolDescriptors.CalcTPSA, Crippen.MolLogP
_rings, _aromatic = rdMolDescriptors.CalcNumRings, rdMolDescriptors.CalcNumAromaticRings


def _amlodipine(target: Mol) -> Callable[[Mol], float]:
    ecfp = _similarity(target, "ECFP4")
    return lambda mol: _mean(ecfp(mol), _gauss(_rings(mol), 3, 0.5))


def _perindopril(target: Mol) -> Callable[[Mol], float]:
    ecfp = _similarity(target, "ECFP4")
    return lambda mol: _mean(ecfp(mol), _gauss(_aromatic(mol), 2, 0.5))


def _zaleplon(target: Mol) -> Callable[[Mol], float]:
    ecfp, isomer = _similarity(target, "ECFP4"), _isomer({"C": 19, "H": 17, "N": 3, "O": 2})
    return lambda mol: _mean(ecfp(mol), isomer(mol))


def _fexofenadine(target: Mol) -> Callable[[Mol], float]:
    pairs = _similarity(target, "AP")
    return lambda mol: _mean(
        min(pairs(mol) / 0.8, 1), _gmax(_tpsa(mol), 90, 10), _gmin(_logp(mol), 4, 1)
    )


def _osimertinib(target: Mol) -> Callable[[Mol], float]:
    fcfp, ecfp = _similarity(target, "FCFP4"), _similarity(target, "ECFP6")
    return lambda mol: _mean(
        min(fcfp(mol) / 0.8, 1),
        _gmin(ecfp(mol), 0.85, 0.1),
        _gmax(_tpsa(mol), 100, 10),
        _gmin(_logp(mol), 1, 1),
    )


def _ranolazine(target: Mol) -> Callable[[Mol], float]:
    pairs = _similarity(target, "AP")

    def score(mol: Mol) -> float:
        fluorine = sum(atom.GetAtomicNum() == 9 for atom in mol.GetAtoms())
        return _mean(
            min(pairs(mol) / 0.7, 1),
            _gmax(_logp(mol), 7, 1),
            _gauss(fluorine, 1, 1),
            _gmax(_tpsa(mol), 95, 20),
        )

    return score


def _sitagliptin(target: Mol) -> Callable[[Mol], float]:
    ecfp = _similarity(target, "ECFP4")
    isomer = _isomer({"C": 16, "H": 15, "F": 6, "N": 5, "O": 1})
    return lambda mol: _mean(
        _gauss(ecfp(mol), 0, 0.1),
        _gauss(_logp(mol), 2.0165, 0.2),
        _gauss(_tpsa(mol), 77.04, 5),
        isomer(mol),
    )


_TASKS = {
    "amlodipine": _amlodipine,
    "fexofenadine": _fexofenadine,
    "osimertinib": _osimertinib,
    "perindopril": _perindopril,
    "ranolazine": _ranolazine,
    "sitagliptin": _sitagliptin,
    "zaleplon": _zaleplon,
}
MPO_TASKS = tuple(_TASKS)


def mpo(name: str) -> Callable[[Mol], float]:
    """A multi-property task of GuacaMol (Brown et al. 2019): a molecule's score in [0, 1].

    Raises:
        ValueError: unknown task; the message lists the seven.
    """
    if name not in _TASKS:
        raise ValueError(f"unknown task {name!r}; known are {', '.join(MPO_TASKS)}")
    return _TASKS[name](Chem.MolFromSmiles(TARGETS[name]))


def qed(mol: Mol) -> float:
    """Quantitative estimate of drug-likeness, in [0, 1]."""
    return float(QED.qed(mol))


def sa_score(mol: Mol) -> float:
    """Synthetic accessibility (Ertl and Schuffenhauer 2009): 1 is easy, 10 hard."""
    return float(sascorer.calculateScore(mol))


def docking_property(ds: float, qed: float, sa: float) -> float:
    """Y = clip(-DS, 0, 20)/20 * QED * (10 - SA)/9, in [0, 1]; 0 for a failed docking (NaN).

    Args:
        ds: docking score in kcal/mol.
    """
    if math.isnan(ds):
        return 0.0
    return min(max(-ds, 0.0), 20.0) / 20 * qed * (10 - sa) / 9
