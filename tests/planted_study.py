"""Models for studies, named as `planted_study:NAME` so that worker processes can load them.

A plain callable sees images at their own size, which masks do not change: so the size of an image
can say what is to happen to it.
"""

import os
import signal
import time

import numpy as np

from mcrise import Model

N_CALLS = {"images": 0}
RAISES, HANGS, KILLS = 17, 18, 19  # columns of images that do so


def tint(images):
    """Two classes: how red the left half is, and the rest."""
    N_CALLS["images"] += len(images)
    half = images.shape[2] // 2
    red = images[:, :, :half, 0].mean(axis=(1, 2), dtype=np.float64) / 255
    return np.stack([red, 1 - red], axis=1)


model = Model(tint, labels=("red", "other"))


def slow_tint(images):
    time.sleep(0.002)
    return tint(images)


def counted_tint(images):
    """Says in a file how many images it was asked about, over all processes."""
    with open(os.environ["MCRISE_TEST_CALLS"], "a") as calls:
        calls.write("x" * len(images))
    return slow_tint(images)


def poisoned(images):
    columns = images.shape[2]
    if columns == RAISES:
        raise ValueError("no images like this one")
    if columns == HANGS:
        time.sleep(3600)
    if columns == KILLS:
        os.kill(os.getpid(), signal.SIGKILL)
    return tint(images)
