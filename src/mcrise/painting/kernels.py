"""The compiled loops behind `canvas.paint` and the estimates. Importing this file imports numba.

Enlarging is linear in rows and in columns. So to paint, the few rows of cells of a mask are
enlarged across once, and every row of pixels is a mix of two of them: long plain loops that the
compiler turns into vector instructions, whatever the number of solid fills. And to enlarge the sum
of many masks, sums run along: what enters is added, what leaves is taken off.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit`, kept on disk for the next process where there is a place to write."""

    def compile(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # neither the package's folder nor the user's: a container, often
            return numba.njit(nogil=True, **options)(function)

    return compile


@compiled(error_model="numpy")
def paint_rows(small, shifts, cell_rows, cell_cols, pictures, half, out):  # type: ignore[no-untyped-def]
    """Paint masks into `out` (N, 3, H, W), a view of the batch in any layout.

    `small` (N, h + 2, w + 2, 3 + Q) has the solid paint of each cell (its color, or black) and the
    weights of the Q pictures there; `pictures` (Q, 3, H, W) starts with the image itself; `half`
    rounds where `out` holds whole numbers. A float16 batch comes as its bits, uint16.
    """
    n_masks, _, height, width = out.shape
    n_down, n_sources = small.shape[1], small.shape[3]
    across = np.empty((n_down, n_sources, width), np.float32)  # a row of cells, enlarged
    below = np.empty((n_down, n_sources, width), np.float32)  # what the next row has more
    row = np.empty(width, np.float32)
    bits = row.view(np.uint32)
    for n in range(n_masks):
        enlarge_across(small[n], shifts[n, 1], cell_cols, across)
        for i in range(n_down - 1):
            for source in range(n_sources):
                for x in range(width):
                    below[i, source, x] = across[i + 1, source, x] - across[i, source, x]
        for y in range(height):
            i = (y + shifts[n, 0]) // cell_rows
            part = np.float32((y + shifts[n, 0]) % cell_rows) / np.float32(cell_rows)
            for channel in range(3):
                paint, more_paint = across[i, channel], below[i, channel]
                keep, more_keep = across[i, 3], below[i, 3]
                image = pictures[0, channel, y]
                for x in range(width):
                    row[x] = (paint[x] + part * more_paint[x] + half) + (
                        keep[x] + part * more_keep[x]
                    ) * image[x]
                for q in range(1, len(pictures)):
                    weight, more_weight = across[i, 3 + q], below[i, 3 + q]
                    picture = pictures[q, channel, y]
                    for x in range(width):
                        row[x] += (weight[x] + part * more_weight[x]) * picture[x]
                if out.itemsize == 2:
                    for x in range(width):
                        out[n, channel, y, x] = half_precision(row[x], bits[x])
                else:
                    for x in range(width):
                        out[n, channel, y, x] = row[x]


@compiled(error_model="numpy")
def enlarge_across(cells, shift, cell_cols, out):  # type: ignore[no-untyped-def]
    """Enlarge the cells (h + 2, w + 2, S) of one mask along rows into `out` (h + 2, S, W)."""
    n_down, n_sources, width = out.shape
    for x in range(width):
        j = (x + shift) // cell_cols
        part = np.float32((x + shift) % cell_cols) / np.float32(cell_cols)
        for i in range(n_down):
            for source in range(n_sources):
                left = cells[i, j, source]
                out[i, source, x] = left + (cells[i, j + 1, source] - left) * part


@compiled(inline="always")
def half_precision(value, bits):  # type: ignore[no-untyped-def]
    """The bits of the float16 nearest to a float32, given as its value and its bits."""
    sign, size = (bits >> np.uint32(16)) & np.uint32(0x8000), bits & np.uint32(0x7FFFFFFF)
    if size >= np.uint32(0x477FF000):  # would round to infinity
        return np.uint16(sign | np.uint32(0x7C00))
    if size < np.uint32(0x38800000):  # so small that float16 counts in steps of 2**-24
        return np.uint16(sign | np.uint32(np.rint(abs(value) * np.float32(2**24))))
    even = (size >> np.uint32(13)) & np.uint32(1)  # ties go to the even neighbour
    shifted = (size + np.uint32(0xFFF) + even - np.uint32(0x38000000)) >> np.uint32(13)
    return np.uint16(sign | shifted)


@compiled(error_model="numpy")
def blur_by_triangle(drawn, cell_rows, cell_cols, out):  # type: ignore[no-untyped-def]
    """Sum `drawn` (K, rows, columns) under a cell's triangle around each pixel of `out` (K, H, W).

    A triangle is a box on a box, so two sums run along each axis. Pixel 0 is entry `cell - 1`.
    """
    n_maps, _, width = drawn.shape
    _, n_rows, n_cols = out.shape
    scale = 1 / (cell_rows * cell_cols)
    boxes = np.empty((n_rows + cell_rows, width))
    box, triangle = np.empty(width), np.empty(width)
    line = np.empty(n_cols + cell_cols)
    for k in range(n_maps):
        box[:] = 0
        for y in range(cell_rows):
            box += drawn[k, y]
        for y in range(n_rows + cell_rows - 1):
            boxes[y] = box
            box += drawn[k, y + cell_rows] - drawn[k, y]
        boxes[n_rows + cell_rows - 1] = box
        triangle[:] = 0
        for y in range(cell_rows):
            triangle += boxes[y]
        for y in range(n_rows):
            total = 0.0
            for x in range(cell_cols):
                total += triangle[x]
            for x in range(n_cols + cell_cols - 1):
                line[x] = total
                total += triangle[x + cell_cols] - triangle[x]
            line[n_cols + cell_cols - 1] = total
            total = 0.0
            for x in range(cell_cols):
                total += line[x]
            for x in range(n_cols):
                out[k, y, x] = scale * total
                total += line[x + cell_cols] - line[x]
            triangle += boxes[y + cell_rows] - boxes[y]


@compiled(error_model="numpy")
def enlarge_points(points, per_rows, per_cols, cell_rows, cell_cols, out):  # type: ignore[no-untyped-def]
    """Interpolate `points` (K, h, w), so many a cell from pixel 0 on, at the pixels of `out`."""
    n_maps, n_down, n_across = points.shape
    _, height, width = out.shape
    line = np.empty(n_across)
    left, right = np.empty(width, np.int32), np.empty(width, np.int32)
    share = np.empty(width)
    for x in range(width):  # once, since dividing takes longer than the rest
        left[x] = x * per_cols // cell_cols
        right[x] = min(left[x] + 1, n_across - 1)
        share[x] = (x * per_cols % cell_cols) / cell_cols
    for k in range(n_maps):
        for y in range(height):
            i, part = y * per_rows // cell_rows, (y * per_rows % cell_rows) / cell_rows
            above, below = points[k, i], points[k, min(i + 1, n_down - 1)]
            for j in range(n_across):
                line[j] = above[j] + part * (below[j] - above[j])
            for x in range(width):
                at = line[left[x]]
                out[k, y, x] = at + share[x] * (line[right[x]] - at)
