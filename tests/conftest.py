"""Settings that must stand before NumPy is imported."""

import os

# On a busy machine the threads of BLAS wait for each other: a hundred times slower, seen here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
