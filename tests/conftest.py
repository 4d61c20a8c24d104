"""What all tests share: one thread, as the jobs compute with, and a fixture."""

import os

# Bytes are promised for one thread alone: with two, scattered sums add up in another order. Set
# before torch or numpy are imported.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

from tests.workflow.conftest import running  # noqa: E402, F401
