"""Which colors, where in an image, a model's decision depends on.

Each name is imported from its module when it is first used, so that `import mcrise` is quick.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ._version import VERSION

if TYPE_CHECKING:
    from .audits.api import AuditResult, audit
    from .config import RunConfig
    from .errors import ExplanationError, InputError, McriseError, ModelError, PluginError
    from .explanation import CallCounts, Explanation, Prediction, merge
    from .explanation_file import load
    from .fills import Blur, Fill, Gray, Hue, Mean, Noise, Picture, Solid
    from .fills import parse as parse_fills
    from .images import Geometry
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
    from .sampling import explain, grow, iter_explain
    from .similarity import Gallery, Match, match, open_gallery
    from .studies.api import StudyResult, run_study

__version__ = VERSION

_MODULES = {  # where each public name is
    "audits.api": ("AuditResult", "audit"),
    "config": ("RunConfig",),
    "errors": ("ExplanationError", "InputError", "McriseError", "ModelError", "PluginError"),
    "explanation": ("CallCounts", "Explanation", "Prediction", "merge"),
    "explanation_file": ("load",),
    "fills": ("Blur", "Fill", "Gray", "Hue", "Mean", "Noise", "Picture", "Solid", "parse_fills"),
    "images": ("Geometry",),
    "interpretation.findings": ("Control", "Finding", "Findings", "Trial"),
    "interpretation.trials": (
        "Comparison",
        "Intervention",
        "compare",
        "find_counterfactual",
        "intervene",
    ),
    "maps": ("Maps",),
    "masks": ("Plan",),
    "metrics": ("Curve", "measure"),
    "models": ("load_model",),
    "models.model": ("Model",),
    "sampling": ("explain", "grow", "iter_explain"),
    "similarity": ("Gallery", "Match", "match", "open_gallery"),
    "studies.api": ("StudyResult", "run_study"),
}

__all__ = [
    "AuditResult",
    "Blur",
    "CallCounts",
    "Comparison",
    "Control",
    "Curve",
    "Explanation",
    "ExplanationError",
    "Fill",
    "Finding",
    "Findings",
    "Gallery",
    "Geometry",
    "Gray",
    "Hue",
    "InputError",
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


if not TYPE_CHECKING:  # or any name would do for a type checker

    def __getattr__(name: str) -> Any:
        module = next((module for module, names in _MODULES.items() if name in names), None)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        own_name = "parse" if name == "parse_fills" else name
        found = getattr(importlib.import_module(f".{module}", __name__), own_name)
        globals()[name] = found  # from now on it is found without this
        return found


def __dir__() -> list[str]:
    """The API, and no modules."""
    return [*__all__, "__version__"]
