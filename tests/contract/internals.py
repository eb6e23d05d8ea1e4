"""All that the contracts import of mcrise beyond its public names: one place to adapt."""

from mcrise.batch.storage import Storage
from mcrise.cli import cli
from mcrise.demo.signs import SIGNS
from mcrise.estimators import ESTIMATORS
from mcrise.masks import CHUNK, draw
from mcrise.sampling import last
from mcrise.server.app import create_app
from mcrise.server.job_queue import JobQueue

__all__ = [
    "CHUNK",
    "ESTIMATORS",
    "SIGNS",
    "JobQueue",
    "Storage",
    "cli",
    "create_app",
    "draw",
    "last",
]
