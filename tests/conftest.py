"""Settings that must stand before NumPy is imported."""

import os

# On a busy machine the threads of BLAS wait for each other: a hundred times slower, seen here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
if "PYTEST_XDIST_WORKER" in os.environ:  # each has a core; runtimes that spin take it from others
    os.environ.setdefault("MCRISE_THREADS", "1")
