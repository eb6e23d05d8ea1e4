"""Which colors, where in an image, a model's decision depends on."""

from .errors import InputError, McriseError, ModelError, RecordError
from .loop import explain, grow, steps
from .maps import Maps
from .masks import Plan
from .model import Model
from .record import Record, load, merge
from .runtimes import load_model
from .version import VERSION

__version__ = VERSION

__all__ = [
    "InputError",
    "Maps",
    "McriseError",
    "Model",
    "ModelError",
    "Plan",
    "Record",
    "RecordError",
    "explain",
    "grow",
    "load",
    "load_model",
    "merge",
    "steps",
]
