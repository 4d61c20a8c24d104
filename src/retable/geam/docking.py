"""Docking with AutoDock Vina as an oracle, its results kept on disk."""

import hashlib
import json
import logging
import math
import os
import re
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from rdkit import Chem
from rdkit.Chem import rdDistGeom, rdForceFieldHelpers

from retable.common.molecules import parse_smiles, quiet_rdkit
from retable.geam.oracles import docking_property, qed, sa_score

logger = logging.getLogger("retable")

# Thresholds of a hit in -kcal/mol (section 4.1 of the paper).
HIT_THRESHOLDS = {"parp1": 10.0, "fa7": 8.5, "5ht1b": 8.7845, "braf": 10.3, "jak2": 9.1}
_MODE = re.compile(r"^\s*1\s+(-?\d+\.?\d*)\s", re.MULTILINE)
_LIGAND_SEED = 1
_TIME_LIMIT = 600.0


@dataclass(frozen=True)
class Box:
    """The search space: centre and edge lengths in angstrom."""

    centre: tuple[float, float, float]
    size: tuple[float, float, float]


# The boxes of the official code.
BOXES = {
    "parp1": Box((26.413, 11.282, 27.238), (18.521, 17.479, 19.995)),
    "fa7": Box((10.131, 41.879, 32.097), (20.673, 20.198, 21.362)),
    "5ht1b": Box((-26.602, 5.277, 17.898), (22.5, 22.5, 22.5)),
    "braf": Box((84.194, 6.949, -7.081), (22.032, 19.211, 14.106)),
    "jak2": Box((114.758, 65.496, 11.345), (19.033, 17.929, 20.283)),
}
DOCKING_TARGETS = tuple(BOXES)


def docking_target(name: str, folder: Path) -> tuple[Path, Box]:
    """The receptor's file in `folder` (`JAK2_target.pdbqt`, or `jak2.pdbqt`) and the box.

    Raises:
        ValueError: no such target, or its receptor is not there.
    """
    if name not in BOXES:
        raise ValueError(f"unknown docking target {name!r}; known are {', '.join(BOXES)}")
    candidates = [folder / f"{name.upper()}_target.pdbqt", folder / f"{name}.pdbqt"]
    for path in candidates:
        if path.is_file():
            return path, BOXES[name]
    raise ValueError(f"docking target {name!r}: no receptor {candidates[0]} or {candidates[1]}")


class VinaEngine:
    """Docks a ligand and returns its best score in kcal/mol, NaN where docking failed.

    The ligand is laid out by RDKit (ETKDG with a fixed seed, MMFF) and prepared by meeko. Results
    are kept in `cache`, which belongs to one receptor, box, exhaustiveness, seed and version.

    Args:
        cache: a file that is made if it does not exist.
        binary: an executable with Vina's command line (Vina 1.1.2, QuickVina 2).

    Raises:
        ValueError: receptor or binary missing, binary not executable, or a cache that was made with
            other settings or by another version.
    """

    def __init__(
        self,
        receptor: Path,
        box: Box,
        *,
        cache: Path,
        binary: Path,
        exhaustiveness: int = 1,
        seed: int = 1,
    ):
        if not receptor.is_file():
            raise ValueError(f"receptor {receptor} does not exist")
        if not binary.is_file() or not os.access(binary, os.X_OK):
            raise ValueError(f"docking engine {binary} is not an executable file")
        self._receptor, self._box, self._binary, self._cache = receptor, box, binary, cache
        self._options = {"exhaustiveness": exhaustiveness, "seed": seed, "cpu": 1}
        self._key = {
            "version": self._version(),
            "receptor": hashlib.sha256(receptor.read_bytes()).hexdigest(),
            "box": json.loads(json.dumps(asdict(box))),
            "exhaustiveness": exhaustiveness,
            "seed": seed,
        }
        self._known = self._read_cache()

    def _version(self) -> str:
        done = subprocess.run(
            [self._binary, "--version"], capture_output=True, text=True, check=False
        )
        text = done.stdout.strip()
        if done.returncode or not text:
            raise ValueError(f"docking engine {self._binary} does not tell its version")
        return text.splitlines()[0]

    def _read_cache(self) -> dict[str, float]:
        if not self._cache.exists():
            self._cache.parent.mkdir(parents=True, exist_ok=True)
            self._cache.write_text(json.dumps(self._key) + "\n", encoding="utf-8")
            return {}
        text = self._cache.read_text(encoding="utf-8")
        # A killed job may leave half a line at the end: the next one must not be joined to it.
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            self._cache.write_text(whole, encoding="utf-8")
        first, *lines = whole.splitlines() or [""]
        try:
            found = dict(json.loads(first))
        except ValueError:
            raise ValueError(
                f"cache {self._cache}: its first line tells no settings: {first!r} (remove the "
                "file or name another)"
            ) from None
        for name, expected in self._key.items():
            if found.get(name) != expected:
                raise ValueError(
                    f"cache {self._cache}: {name} is {found.get(name)!r}; this run has "
                    f"{expected!r} (remove the file or name another)"
                )
        pairs = [line.split("\t") for line in lines]
        return {smiles: float(score) for smiles, score in pairs}

    def __call__(self, smiles: str) -> float:
        """The best score of the ligand in kcal/mol; NaN where preparation or docking failed."""
        key = Chem.MolToSmiles(parse_smiles(smiles))
        if key not in self._known:
            self._known[key] = self._dock(key)
            with self._cache.open("a", encoding="utf-8") as file:
                file.write(f"{key}\t{self._known[key]}\n")
        return self._known[key]

    def _dock(self, smiles: str) -> float:
        ligand = _prepare(smiles)
        if ligand is None:
            logger.warning("%s: no conformation or no preparation; it is not docked", smiles)
            return math.nan
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "ligand.pdbqt"
            path.write_text(ligand, encoding="utf-8")
            command = [self._binary, "--receptor", self._receptor, "--ligand", path]
            command += ["--out", Path(folder) / "out.pdbqt"]
            for axis, centre, size in zip("xyz", self._box.centre, self._box.size, strict=True):
                command += [f"--center_{axis}", str(centre), f"--size_{axis}", str(size)]
            for name, value in self._options.items():
                command += [f"--{name}", str(value)]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, check=False, timeout=_TIME_LIMIT
                )
            except subprocess.TimeoutExpired:
                logger.warning("%s: docking took more than %g s", smiles, _TIME_LIMIT)
                return math.nan
        mode = _MODE.search(done.stdout)
        if done.returncode or mode is None:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            logger.warning("%s: docking failed (exit %d): %s", smiles, done.returncode, said)
            return math.nan
        return float(mode.group(1))


def _prepare(smiles: str) -> str | None:
    """The ligand in PDBQT format; None where no conformation or no preparation is found."""
    from meeko import MoleculePreparation, PDBQTWriterLegacy

    mol = parse_smiles(smiles)
    # Neither salts nor bare hydrogen can be prepared.
    if len(Chem.GetMolFrags(mol)) != 1 or not mol.GetNumHeavyAtoms():
        return None
    mol = Chem.AddHs(mol)
    parameters = rdDistGeom.ETKDGv3()
    parameters.randomSeed = _LIGAND_SEED
    with quiet_rdkit():
        if rdDistGeom.EmbedMolecule(mol, parameters) != 0:
            return None
        rdForceFieldHelpers.MMFFOptimizeMolecule(mol)
        setup = MoleculePreparation().prepare(mol)[0]
        text, good, _ = PDBQTWriterLegacy.write_string(setup)
    return text if good else None


class DockingProperty:
    """Y = clip(-DS, 0, 20)/20 * QED * (10 - SA)/9 of a molecule; NaN where docking failed."""

    def __init__(self, engine: VinaEngine):
        self._engine = engine

    def __call__(self, mol: Chem.Mol) -> float:
        score = self._engine(Chem.MolToSmiles(mol))
        return score if math.isnan(score) else docking_property(score, qed(mol), sa_score(mol))
