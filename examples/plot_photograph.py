"""
A photograph, and any function as the model
===========================================

The model is a function of one line: how orange the image is. The map of a function that is known
is a check of the map. The photograph comes with scikit-image and is in the public domain.
"""

import numpy as np
from PIL import Image
from skimage import data

import mcrise

cat = Image.fromarray(data.chelsea()).resize((224, 150))


def predict(images):
    red, green, blue = np.moveaxis(images.astype(float).mean(axis=(1, 2)) / 255, -1, 0)
    orange = 1 / (1 + np.exp(-20 * ((red + green) / 2 - blue - 0.1)))
    return np.stack([orange, 1 - orange], axis=1)


model = mcrise.load_model(predict, labels=["orange", "not orange"])
explanation = mcrise.explain(cat, model, n_masks=512, trials=False)
figure = explanation.maps("orange").plot()
