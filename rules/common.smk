# What all rules share. Names of this file are seen by every file that is included after it.
import sys

from retable.common.errors import InputError
from retable.common.project import Project
from retable.common.seeds import PATTERN as SEEDS_PATTERN

# Snakemake tells the targets only after this file: the command line is looked at instead, so that
# a misspelt scale or paper is one clear line.
try:
    project = Project(
        CODE,
        config,
        sys.argv[1:] if workflow.is_main_process else (),
        fingerprints=CODE / "fingerprints.json",
    )
except InputError as error:
    sys.exit(f"retable: {error}")
if workflow.is_main_process:
    project.announce()

STEP = project.script
step = project.step
compute = project.compute
# Tables beyond `table_<paper>.csv`, by paper: each paper's rules add their own.
EXTRA_TABLES = {}
SUMMARY = ("claims.csv", "claims_checks.csv", "costs.csv")


wildcard_constraints:
    scale="smoke|laptop|paper",
    seeds=SEEDS_PATTERN,
    seed=r"\d+",
    dataset=r"[A-Za-z0-9.\-_]+",
    method=r"[A-Za-z0-9.\-_]+",


def dataset_file(name):
    """The prepared arrays of a shared data set, as an input of a rule."""
    return f"results/data/{name}.npz"


def all_cores(wildcards):
    """For jobs that measure time: nothing runs beside them (at smoke scale no time counts)."""
    return 1 if wildcards.scale == "smoke" else workflow.cores or 1


def scale_files(scale):
    """All tables and figures of one scale."""
    return project.scale_files(scale, EXTRA_TABLES)


def top_level_files():
    """What a plain `snakemake` makes: tables and figures of all papers, claims and costs."""
    names = [Path(file).name for file in scale_files(project.config.scale)]
    return [f"results/{name}" for name in (*names, *SUMMARY)]
