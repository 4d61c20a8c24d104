"""What a run cost: CPU time, wall time and peak memory per paper and step, all attempts added."""

import json
from pathlib import Path

import pandas as pd

COLUMNS = ("paper", "step", "jobs", "attempts", "cpu_s", "wall_s", "peak_mib", "reserved_cores")


def sum_costs(folders: dict[str, Path]) -> pd.DataFrame:
    """Add up the notes that the jobs left, paper by paper (`folders`: paper -> its costs/)."""
    notes = []
    for paper, folder in folders.items():
        for path in sorted(folder.glob("*.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    note = json.loads(line)
                except json.JSONDecodeError:
                    continue  # a job was killed, or the disk was full, while it was written
                notes.append(note | {"paper": paper, "step": note["step"].rpartition(".")[2]})
    if not notes:
        return pd.DataFrame(columns=list(COLUMNS))
    grouped = pd.DataFrame(notes).groupby(["paper", "step"], sort=False)
    return grouped.agg(
        jobs=("job", "nunique"),
        attempts=("job", "size"),
        cpu_s=("cpu_s", "sum"),
        wall_s=("wall_s", "sum"),
        peak_mib=("peak_mib", "max"),
        reserved_cores=("reserved_cores", "max"),
    ).reset_index()
