"""Runs one step of the library as a job: the script of every rule with real work.

A rule's params say what to run (`runs`, for example `retable.hstu.steps.train:train`), with which
settings, and on how many threads. Threads are set before anything heavy is imported.
"""

import os
import sys
from pathlib import Path

CODE = Path(__file__).resolve().parents[2]
job = snakemake
threads = job.params.get("threads", job.threads)
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = str(threads)
sys.path.insert(0, str(CODE / "src"))

from importlib import import_module  # noqa: E402

from retable.common.files import hold_folder  # noqa: E402
from retable.common.jobs import Job, named, run  # noqa: E402

hold_folder(CODE)
module, function = job.params.runs.split(":")
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
            others=job.params.get("arguments", {}),
        ),
        lambda: getattr(import_module(module), function),
    )
)
