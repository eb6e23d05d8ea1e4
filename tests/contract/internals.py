"""All that the contracts import of mcrise beyond its public names: one place to adapt."""

from mcrise.cli import cli
from mcrise.demo.signs import SIGNS
from mcrise.estimators import ESTIMATORS
from mcrise.loop import last
from mcrise.masks import CHUNK, draw
from mcrise.page.app import create_app
from mcrise.page.jobs import Jobs
from mcrise.study.storage import Storage

__all__ = ["CHUNK", "ESTIMATORS", "SIGNS", "Jobs", "Storage", "cli", "create_app", "draw", "last"]
