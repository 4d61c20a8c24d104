"""Docking with AutoDock Vina as an oracle, its results kept on disk."""

import contextlib
import fcntl
import hashlib
import importlib.metadata
import json
import logging
import math
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from rdkit import Chem
from rdkit.Chem import rdDistGeom, rdForceFieldHelpers

from retable.common.molecules import parse_smiles, quiet_rdkit
from retable.geam.oracles import OracleStopped, docking_property, qed, sa_score

logger = logging.getLogger("retable")

# Thresholds of a hit in -kcal/mol (section 4.1 of the paper).
HIT_THRESHOLDS = {"parp1": 10.0, "fa7": 8.5, "5ht1b": 8.7845, "braf": 10.3, "jak2": 9.1}
_MODE = re.compile(r"^\s*1\s+(-?\d+\.?\d*)\s", re.MULTILINE)
_LIGAND_SEED = 1
_TIME_LIMIT = 600.0
# An engine that was ended by one of these was stopped from outside: it says nothing of the ligand.
_STOPPED = {-signal.SIGTERM, -signal.SIGKILL, -signal.SIGINT, -signal.SIGHUP}


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


class DockingScores:
    """Docking scores on disk, shared by jobs: one file for one receptor, engine and settings.

    Each score is appended as one line under a lock, so that jobs may write side by side and a job
    that is killed loses nothing but the ligand it was at.

    Args:
        path: a file that is made if it does not exist.
        settings: what the scores depend on; the file's first line.

    Raises:
        ValueError: a file of other settings, or a line that is no score.
    """

    def __init__(self, path: Path, settings: dict[str, Any]):
        self._path = path
        self._settings = settings
        self._end = 0  # up to where the file was read
        self._known: dict[str, float] = {}
        self._threads = threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)
        self.refresh()

    def __contains__(self, smiles: str) -> bool:
        return smiles in self._known

    def __getitem__(self, smiles: str) -> float:
        return self._known[smiles]

    def refresh(self) -> None:
        """Read what other jobs have added."""
        with self._locked():
            pass

    def add(self, smiles: str, score: float) -> None:
        """Keep a score, unless another job was faster."""
        with self._locked() as file:
            if smiles not in self._known:
                line = f"{smiles}\t{score}\n".encode()
                file.write(line)
                self._known[smiles] = score
                self._end += len(line)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[IO[bytes]]:
        # The lock on the file tells processes apart, not the threads of one.
        with self._threads, self._path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._read(file)
            yield file
            file.flush()

    def _read(self, file: IO[bytes]) -> None:
        if file.seek(0, os.SEEK_END) < self._end:  # replaced by a shorter file
            self._end = 0
        file.seek(self._end)
        content = file.read()
        # A killed job may have left half a line at the end: the next must not be joined to it.
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            file.truncate(self._end + len(whole))
        lines = whole.decode("utf-8").splitlines()
        if self._end == 0:
            if not lines:
                whole = (json.dumps(self._settings) + "\n").encode()
                file.write(whole)
            else:
                self._check(lines.pop(0))
        for line in lines:
            smiles, _, score = line.partition("\t")
            try:
                self._known.setdefault(smiles, float(score))
            except ValueError:
                raise ValueError(f"cache {self._path}: no SMILES and score: {line!r}") from None
        self._end += len(whole)

    def _check(self, first: str) -> None:
        try:
            found = dict(json.loads(first))
        except ValueError:
            raise ValueError(
                f"cache {self._path}: its first line tells no settings: {first!r} (remove the "
                "file or name another)"
            ) from None
        for name, expected in self._settings.items():
            if found.get(name) != expected:
                raise ValueError(
                    f"cache {self._path}: {name} is {found.get(name)!r}; this run has "
                    f"{expected!r} (remove the file or name another)"
                )


class VinaEngine:
    """Docks a ligand and returns its best score in kcal/mol, NaN where docking failed.

    The ligand is laid out by RDKit (ETKDG with a fixed seed, MMFF) and prepared by meeko; the
    engine computes on one thread. Several ligands are docked side by side; neither their scores
    nor their order depend on how many.

    Args:
        cache: where scores are kept (`DockingScores`): a file, or a folder in which the file is
            named by what the scores depend on (receptor, box, engine, exhaustiveness, seed, and
            the versions of the libraries that prepare the ligand).
        binary: an executable with Vina's command line (Vina 1.1.2, QuickVina 2).
        threads: ligands that are docked at the same time.

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
        threads: int = 1,
    ):
        if not receptor.is_file():
            raise ValueError(f"receptor {receptor} does not exist")
        if not binary.is_file() or not os.access(binary, os.X_OK):
            raise ValueError(f"docking engine {binary} is not an executable file")
        if threads < 1:
            raise ValueError(f"threads is {threads}; it must be at least 1")
        self._receptor, self._box, self._binary = receptor, box, binary
        self._threads = threads
        self._options = {"exhaustiveness": exhaustiveness, "seed": seed, "cpu": 1}
        settings = {
            "version": self._version(),
            "receptor": hashlib.sha256(receptor.read_bytes()).hexdigest(),
            "box": json.loads(json.dumps(asdict(box))),
            "exhaustiveness": exhaustiveness,
            "seed": seed,
            "ligand_seed": _LIGAND_SEED,
            "rdkit": importlib.metadata.version("rdkit"),
            "meeko": importlib.metadata.version("meeko"),
        }
        if cache.is_dir():
            digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
            cache = cache / f"{receptor.stem}-{digest[:16]}.tsv"
        self._scores = DockingScores(cache, settings)

    def _version(self) -> str:
        done = subprocess.run(
            [self._binary, "--version"], capture_output=True, text=True, check=False
        )
        text = done.stdout.strip()
        if done.returncode or not text:
            raise ValueError(f"docking engine {self._binary} does not tell its version")
        return text.splitlines()[0]

    def __call__(self, smiles: str) -> float:
        """The best score of the ligand in kcal/mol; NaN where preparation or docking failed."""
        (score,) = self.many([smiles])
        return score

    def many(self, smiles: Sequence[str]) -> Iterator[float]:
        """The scores of ligands in their order, each as soon as it and those before it are there.

        Raises:
            OracleStopped: the engine was ended by a signal from outside.
        """
        keys = [Chem.MolToSmiles(parse_smiles(text)) for text in smiles]
        self._scores.refresh()
        missing = [key for key in dict.fromkeys(keys) if key not in self._scores]
        with ThreadPoolExecutor(self._threads) as pool:
            docked = {key: pool.submit(self._dock_and_keep, key) for key in missing}
            try:
                for key in keys:
                    if key in docked:
                        docked[key].result()
                    yield self._scores[key]
            finally:
                # Whoever stops listening waits for the ligands that are being docked alone.
                pool.shutdown(wait=False, cancel_futures=True)

    def _dock_and_keep(self, smiles: str) -> None:
        self._scores.add(smiles, self._dock(smiles))

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
        if done.returncode in _STOPPED:
            raise OracleStopped(
                f"the docking engine was ended by signal {-done.returncode} at {smiles!r}"
            )
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
        (value,) = self.many([mol])
        return value

    def many(self, mols: Sequence[Chem.Mol]) -> Iterator[float]:
        """The properties of molecules in their order; they are docked side by side."""
        scores = self._engine.many([Chem.MolToSmiles(mol) for mol in mols])
        with contextlib.closing(scores):
            for mol, score in zip(mols, scores, strict=True):
                failed = math.isnan(score)
                yield score if failed else docking_property(score, qed(mol), sa_score(mol))
