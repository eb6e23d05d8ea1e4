"""Masks painted into batches of images.

A mask is a grid of small integers: 0 keeps the image, k paints fill k. A `Canvas` holds the image
and its fills as the model wants them (size, dtype, layout); `paint` blends a chunk of masks into a
buffer that is used again for the next batch, so that pixels exist only here and memory does not
grow with the number of masks.

- `canvas`: `Canvas`, `paint`, and `paint_reference`, the same in plain NumPy, which tests compare.
- `kernels`: the compiled loops, imported when something is first painted.
- `prefetch`: the next chunk is painted while the model is asked about this one.

Read `masks` first for what a mask is, then `canvas`; `kernels` is the same arithmetic per pixel.
"""
