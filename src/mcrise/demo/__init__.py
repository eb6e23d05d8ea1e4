"""The embedded traffic-sign model and the signs it is shown on."""

from pathlib import Path

MODEL = Path(__file__).with_name("gtsrb.onnx")
