"""Settings that must stand before NumPy is imported, and what many tests ask for."""

import os

import pytest

# On a busy machine the threads of BLAS wait for each other: a hundred times slower, seen here.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
if "PYTEST_XDIST_WORKER" in os.environ:  # each has a core; runtimes that spin take it from others
    os.environ.setdefault("MCRISE_THREADS", "1")


@pytest.fixture
def undrawn(monkeypatch):
    """Pictures of runs are one pixel; `monkeypatch.undo()` has them drawn."""
    from undrawn import leave_undrawn

    leave_undrawn(monkeypatch)
