"""Rankings to compare with: LIME, and no explanation at all.

RISE and debiased RISE need nothing here: they are estimates on a run with a black fill.
"""

import os
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..images import unit_float, whole_pixels
from ..metrics import Ranking, rank_importance
from ..models.model import Model

LIME_SAMPLES = 1000


def lime_importance(
    pixels: NDArray[Any],
    model: Model,
    target: int,
    seed: int,
    n_samples: int = LIME_SAMPLES,
    batch_size: int = 32,
) -> NDArray[np.float64]:
    """The signed weight of each pixel's superpixel (quickshift) for the target: (H, W).

    A hidden superpixel is black, the fill that LIME is then scored with.
    """
    os.environ.setdefault("TQDM_DISABLE", "1")  # its bar cannot be turned off otherwise
    try:
        from lime.lime_image import LimeImageExplainer
    except ImportError:
        raise InputError("LIME needs its package: pip install lime.") from None
    floats = pixels.dtype != np.uint8  # which LIME's superpixels are not made for
    if floats:
        pixels = whole_pixels(pixels)

    def ask(images: NDArray[Any]) -> NDArray[np.float32]:
        shown = np.asarray(images, np.uint8)
        return model(unit_float(shown) if floats else shown)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own libraries
        explained: Any = LimeImageExplainer(random_state=seed).explain_instance(
            pixels,
            ask,
            labels=(target,),
            top_labels=None,
            hide_color=0,
            num_samples=n_samples,
            batch_size=batch_size,
            random_seed=seed,
        )
    weights = np.zeros(explained.segments.max() + 1)
    for superpixel, weight in explained.local_exp[target]:
        weights[superpixel] = weight
    return np.asarray(weights[explained.segments])


def random_ranking(size: tuple[int, int], seed: int) -> Ranking:
    """Pixels in an order drawn from the seed: the floor."""
    raw = np.random.Philox(key=[seed, 0]).random_raw(size[0] * size[1])
    return rank_importance((raw >> 11).astype(np.float64).reshape(size))
