"""The public names and where they are defined; `__init__.py` imports each when it is used."""

from .audits.api import AuditResult, audit
from .config import RunConfig
from .errors import ExplanationError, InputError, McriseError, ModelError, PluginError
from .explanation import CallCounts, Explanation, Prediction, merge
from .explanation_file import load
from .fills import Blur, Fill, Gray, Hue, Mean, Noise, Picture, Solid
from .fills import parse as parse_fills
from .images import Geometry
from .inspection import Inspection, ModelWarning, inspect_model
from .interpretation.findings import Control, Finding, Findings, Trial
from .interpretation.trials import (
    Comparison,
    Intervention,
    compare,
    find_counterfactual,
    intervene,
)
from .maps import Maps
from .masks import Plan
from .metrics import Curve, measure
from .models import load_model
from .models.model import Model
from .sampling import Explanations, explain, grow, iter_explain
from .similarity import Gallery, Match, match, open_gallery
from .studies.api import StudyResult, run_study

__version__: str

__all__ = [
    "AuditResult",
    "Blur",
    "CallCounts",
    "Comparison",
    "Control",
    "Curve",
    "Explanation",
    "ExplanationError",
    "Explanations",
    "Fill",
    "Finding",
    "Findings",
    "Gallery",
    "Geometry",
    "Gray",
    "Hue",
    "InputError",
    "Inspection",
    "Intervention",
    "Maps",
    "Match",
    "McriseError",
    "Mean",
    "Model",
    "ModelError",
    "ModelWarning",
    "Noise",
    "Picture",
    "Plan",
    "PluginError",
    "Prediction",
    "RunConfig",
    "Solid",
    "StudyResult",
    "Trial",
    "audit",
    "compare",
    "explain",
    "find_counterfactual",
    "grow",
    "inspect_model",
    "intervene",
    "iter_explain",
    "load",
    "load_model",
    "match",
    "measure",
    "merge",
    "open_gallery",
    "parse_fills",
    "run_study",
]
