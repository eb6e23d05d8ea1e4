"""The compiled loop behind `blend.paint`. Importing this file imports numba.

Inside a cell the blend changes linearly along a row, so a row of the batch is a few straight
segments: two products and two sums a pixel, whatever the number of solid fills.
"""

import numba
import numpy as np


@numba.njit(nogil=True, cache=True, error_model="numpy")
def paint_rows(small, shifts, cell_rows, cell_cols, pictures, half, out):  # type: ignore[no-untyped-def]
    """Paint masks into `out` (N, 3, H, W), a view of the batch in any layout.

    `small` (N, h + 2, w + 2, 3 + Q) has the solid paint of each cell (its color, or black) and the
    weights of the Q pictures there; `pictures` (Q, 3, H, W) starts with the image itself; `half`
    rounds where `out` holds whole numbers.
    """
    n_masks, _, height, width = out.shape
    n_across = small.shape[2]
    row = np.empty(width, np.float32)
    step = np.float32(1) / np.float32(cell_cols)
    for n in range(n_masks):
        for y in range(height):
            upper = (y + shifts[n, 0]) // cell_rows
            part = np.float32((y + shifts[n, 0]) % cell_rows) / np.float32(cell_rows)
            above, below = small[n, upper], small[n, upper + 1]
            for channel in range(3):
                for q in range(-1, pictures.shape[0]):  # -1: the solid paint
                    source = channel if q < 0 else 3 + q
                    right = above[0, source] + (below[0, source] - above[0, source]) * part
                    for j in range(n_across - 1):
                        left = right
                        right = above[j + 1, source]
                        right += (below[j + 1, source] - right) * part
                        start = j * cell_cols - shifts[n, 1]
                        first, last = max(start, 0), min(start + cell_cols, width)
                        slope = (right - left) * step
                        if q < 0:
                            for x in range(first, last):
                                row[x] = left + slope * np.float32(x - start)
                        else:
                            for x in range(first, last):
                                weight = left + slope * np.float32(x - start)
                                row[x] += weight * pictures[q, channel, y, x]
                for x in range(width):
                    out[n, channel, y, x] = row[x] + half
