"""Which colors, where in an image, a model's decision depends on."""

from .archive import load
from .auditing.runner import AuditResult, audit
from .brief import Brief
from .errors import InputError, McriseError, ModelError, PluginError, RecordError
from .fills import Blur, Fill, Gray, Hue, Mean, Noise, Picture, Solid
from .fills import parse as parse_fills
from .images import Geometry
from .loop import explain, grow, steps
from .maps import Maps
from .masks import Plan
from .matching import Gallery, Match, match, open_gallery
from .metrics import Curve, measure
from .model import Model
from .reading import Reading, read_maps
from .record import Record, merge
from .runtimes import load_model
from .study.runner import StudyResult, run_study
from .trials import Comparison, Trial, Tried, compare, repaint, smallest_flip, try_reading
from .version import VERSION

__version__ = VERSION

__all__ = [
    "AuditResult",
    "Blur",
    "Brief",
    "Comparison",
    "Curve",
    "Fill",
    "Gallery",
    "Geometry",
    "Gray",
    "Hue",
    "InputError",
    "Maps",
    "Match",
    "McriseError",
    "Mean",
    "Model",
    "ModelError",
    "Noise",
    "Picture",
    "Plan",
    "PluginError",
    "Reading",
    "Record",
    "RecordError",
    "Solid",
    "StudyResult",
    "Trial",
    "Tried",
    "audit",
    "compare",
    "explain",
    "grow",
    "load",
    "load_model",
    "match",
    "measure",
    "merge",
    "open_gallery",
    "parse_fills",
    "read_maps",
    "repaint",
    "run_study",
    "smallest_flip",
    "steps",
    "try_reading",
]
