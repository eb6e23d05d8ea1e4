"""The public names and where they are defined; `__init__.py` imports each when it is used."""

from .audits.api import AuditResult, audit
from .config import RunConfig
from .errors import ExplanationError, InputError, McriseError, ModelError, PluginError
from .explanation import Explanation, merge
from .explanation_file import load
from .fills import Blur, Fill, Gray, Hue, Mean, Noise, Picture, Solid
from .fills import parse as parse_fills
from .images import Geometry
from .interpretation.regions import Interpretation, interpret
from .interpretation.trials import (
    Comparison,
    Intervention,
    TriedInterpretation,
    compare,
    find_counterfactual,
    intervene,
    try_findings,
)
from .maps import Maps
from .masks import Plan
from .metrics import Curve, measure
from .models import load_model
from .models.model import Model
from .sampling import explain, grow, iter_explain
from .similarity import Gallery, Match, match, open_gallery
from .studies.api import StudyResult, run_study

__version__: str

__all__ = [
    "AuditResult",
    "Blur",
    "Comparison",
    "Curve",
    "Explanation",
    "ExplanationError",
    "Fill",
    "Gallery",
    "Geometry",
    "Gray",
    "Hue",
    "InputError",
    "Interpretation",
    "Intervention",
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
    "RunConfig",
    "Solid",
    "StudyResult",
    "TriedInterpretation",
    "audit",
    "compare",
    "explain",
    "find_counterfactual",
    "grow",
    "interpret",
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
    "try_findings",
]
