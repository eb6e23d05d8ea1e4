"""Painting: from cells to the batch a model is called on. The only place with full-size batches.

Enlarging is linear, so the small grid is painted first and three solid-color channels plus one
weight per picture are enlarged, rather than K masks: a batch costs the same for five solid fills
as for fifty. Normalisation commutes with blending because the weights add to one, so the image
and the fills are normalised once and blended in the model's own space.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._util.threads import n_cores, shared_pool
from ..masks import Masks, Plan, enlargement


@dataclass(frozen=True, eq=False)
class Canvas:
    """The image and the fills as the model sees them: normalised, in its channel order."""

    palette: NDArray[np.float32]  # (K + 1, 3 + Q): what a cell painted k adds; row 0 keeps
    pictures: NDArray[np.float32]  # (Q, 3, H, W): the image, then the fills that are not solid
    layout: str  # "NCHW" or "NHWC"
    dtype: np.dtype[Any]

    def batch(self, n: int) -> NDArray[Any]:
        """An empty batch of n images."""
        height, width = self.pictures.shape[2:]
        shape = (n, 3, height, width) if self.layout == "NCHW" else (n, height, width, 3)
        return np.empty(shape, self.dtype)

    def untouched(self) -> NDArray[Any]:
        """A batch of one: the image with nothing painted."""
        out = self.batch(1)
        channels_first(out, self.layout)[...] = self.pictures[:1] + half(out)
        return out


def make_canvas(
    image: NDArray[np.float32],
    colors: list[NDArray[np.float32] | None],
    renders: list[NDArray[np.float32] | None],
    layout: str,
    dtype: np.dtype[Any],
) -> Canvas:
    """Arrange an image (H, W, 3) and its fills, each a color (3,) or a render (H, W, 3)."""
    n_pictures = 1 + sum(render is not None for render in renders)
    palette = np.zeros((len(colors) + 1, 3 + n_pictures), np.float32)
    palette[0, 3] = 1  # keep: the image
    pictures = [image]
    for k, (color, render) in enumerate(zip(colors, renders, strict=True), start=1):
        if color is not None:
            palette[k, :3] = color
        else:
            assert render is not None
            palette[k, 3 + len(pictures)] = 1
            pictures.append(render)
    planes = np.stack([picture.transpose(2, 0, 1) for picture in pictures])
    return Canvas(palette, np.ascontiguousarray(planes, np.float32), layout, dtype)


def paint(
    plan: Plan, canvas: Canvas, masks: Masks, out: NDArray[Any], n_threads: int | None = None
) -> NDArray[Any]:
    """Paint `masks` over the image into `out`, a batch of the same length, with all cores."""
    from .kernels import paint_rows  # numba, on first use

    small = canvas.palette[masks.cells]  # (N, h + 2, w + 2, 3 + Q)
    target = channels_first(out, canvas.layout)
    if out.dtype == np.float16:  # numba has none on the CPU: the kernel writes its bits
        target = target.view(np.uint16)

    def work(part: slice) -> None:
        paint_rows(
            small[part], masks.shifts[part], *plan.cell, canvas.pictures, half(out), target[part]
        )

    n_threads = min(n_threads or n_cores(), len(masks))
    bounds = np.linspace(0, len(masks), n_threads + 1).astype(int)
    first, *others = [slice(a, b) for a, b in pairwise(bounds)]
    # The kernel lets go of the interpreter lock.
    jobs = [shared_pool().submit(work, part) for part in others]
    work(first)
    for job in jobs:
        job.result()
    return out


def paint_reference(plan: Plan, canvas: Canvas, masks: Masks) -> NDArray[Any]:
    """The same as `paint`, as the formula says it: what the tests hold the kernel to."""
    rows, cols = (enlargement(*axis) for axis in zip(plan.size, plan.grid, plan.cell, strict=True))
    small = canvas.palette[masks.cells].astype(np.float64)  # (N, h + 2, w + 2, 3 + Q)
    row_weights, col_weights = rows[:, masks.shifts[:, 0]], cols[:, masks.shifts[:, 1]]
    large = np.einsum("yni,nijc,xnj->ncyx", row_weights, small, col_weights, optimize=True)
    blend = large[:, :3] + np.einsum("nqyx,qcyx->ncyx", large[:, 3:], canvas.pictures)
    out = canvas.batch(len(masks))
    channels_first(out, canvas.layout)[...] = blend + half(out)
    return out


def channels_first(batch: NDArray[Any], layout: str) -> NDArray[Any]:
    """A batch in either layout, seen as (N, 3, H, W)."""
    return batch if layout == "NCHW" else batch.transpose(0, 3, 1, 2)


def half(batch: NDArray[Any]) -> np.float32:
    """What to add before storing: whole numbers are cut off, so this rounds them."""
    return np.float32(0.5 if batch.dtype == np.uint8 else 0)
