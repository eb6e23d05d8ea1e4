"""What mypy must refuse in a user's script, line by line: `test_api.py` has it checked, not run."""

import mcrise
from mcrise import Explanation, Solid, explain, load_model
from mcrise.output.plots import overlay, scale_for


def predict(images: object) -> list[list[float]]:
    return [[0.5, 0.5]]


explanation: Explanation = explain("photo.png", predict)

explain("photo.png", predict, n_masks="plenty")  # expect error
explain("photo.png", predict, n_mask=64)  # expect error
explain("photo.png", predict, fills=[1, 2])  # expect error
explain("photo.png", predict, grid=(4, 4, 4))  # expect error
explain("photo.png", predict, score_kind="logits")  # expect error
explain("photo.png", predict, save=3)  # expect error
explain(["a.png", "b.png"], predict).maps()  # expect error
mcrise.iter_explain("photo.png", predict, batch_size="fast")  # expect error
mcrise.iter_explain("photo.png", predict, mask_prob="half")  # expect error
mcrise.grow(explanation, predict, target=[1])  # expect error
load_model("m.onnx", layout="NWHC")  # expect error
load_model("m.onnx", filter="sinc")  # expect error
load_model("m.onnx", softmax="yes")  # expect error
load_model("m.onnx", shortside=256)  # expect error
explanation.maps(estimator=3)  # expect error
explanation.maps(against=[1])  # expect error
explanation.maps([0, 1]).plot()  # expect error
explanation.maps()[0]  # expect error
explanation.maps().plot(vmax="large")  # expect error
mcrise.measure(explanation, predict, metrics=3)  # expect error
mcrise.run_study("images", predict)  # expect error
mcrise.merge(explanation)  # expect error
Solid("red")  # expect error
maps = explanation.maps()
overlay(maps.image, maps.values, maps.se, 0, scale_for([maps]))  # expect error
