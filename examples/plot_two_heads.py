"""
A network with two heads
========================

One head says the color of a car, the other says whether it is a car or a truck. The color head
should depend on the color of the body, the type head on its outline.
"""

import numpy as np
from PIL import Image, ImageDraw

import mcrise
from mcrise.output.plots import plot_maps

truck = Image.new("RGB", (96, 96), "#9aa4ad")
pen = ImageDraw.Draw(truck)
pen.rectangle((10, 28, 62, 66), fill="#c03030")  # the load
pen.rectangle((64, 42, 86, 66), fill="#c03030")  # the cab
pen.ellipse((18, 60, 34, 76), fill="black")
pen.ellipse((64, 60, 80, 76), fill="black")


def predict(images):
    pixels = images.astype(float) / 255
    body = pixels[:, 45:60, 12:84].mean(axis=(1, 2))
    red = 1 / (1 + np.exp(-10 * (body[:, 0] - body[:, 2])))
    sky = np.array([0x9A, 0xA4, 0xAD]) / 255
    high = np.abs(pixels[:, 28:40, 10:62] - sky).mean(axis=(1, 2, 3))  # is there a load?
    is_truck = 1 / (1 + np.exp(-25 * (high - 0.15)))
    return np.stack([red, is_truck], axis=1)


model = mcrise.load_model(predict, labels=["red", "truck"], score_kind="independent")
explanation = mcrise.explain(truck, model, n_masks=512, mask_prob=0.3, trials=False)

# %%
# *red* falls with every color but red, along the whole body. *truck* hardly cares about the color
# of the load, as long as it is not that of the sky.

figure = plot_maps([explanation.maps("red"), explanation.maps("truck")])
