"""Runs one step of the library as a job: the script of every rule with real work.

A rule's params say what to run (`runs`, for example `retable.hstu.steps.train:train`), with which
settings, and on how many threads. Threads are set before anything heavy is imported. A job with
several GPUs has several processes: `accelerate launch` runs this file in each, with `runs` and the
file that describes the job as its arguments.
"""

import os
import sys
from pathlib import Path

CODE = Path(__file__).resolve().parents[2]
job = globals().get("snakemake")
if job is not None:
    threads = job.params.get("threads", job.threads)
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = str(threads)
sys.path.insert(0, str(CODE / "src"))

from importlib import import_module  # noqa: E402

from retable.common.files import hold_folder  # noqa: E402
from retable.common.jobs import Job, named, run, run_share  # noqa: E402

hold_folder(CODE)
runs = job.params.runs if job is not None else sys.argv[1]
module, function = runs.split(":")


def load():
    return getattr(import_module(module), function)


if job is None:
    sys.exit(run_share(Path(sys.argv[2]), load))
sys.exit(
    run(
        Job(
            inputs=named(job.input),
            outputs=named(job.output),
            wildcards=dict(job.wildcards.items()),
            settings=job.params.get("settings", "{}"),
            code=job.params.code,
            log=Path(job.log[0]),
            step=module,
            threads=threads,
            reserved=job.threads,
            processes=job.resources.get("gpu", 1),
            others=job.params.get("arguments", {}),
        ),
        load,
        command=[str(CODE / "workflow" / "scripts" / "step.py"), runs],
    )
)
