"""A fixed number of images per call: any number goes in, several at once where cores are free."""

import threading

import numpy as np
import openvino
import pytest

from mcrise import load_model
from mcrise.models.batches import FixedBatch
from planted import photo
from small_net import KERNEL, WEIGHTS, onnx_file
from tflite_files import tflite_file

NUMBERS = np.arange(7.0)[:, None]


def test_images_of_a_batch_of_one_are_asked_about_at_the_same_time():
    together = threading.Barrier(2, timeout=30)  # passed only by two at once

    def copy(batch):
        if batch[0, 0] < 6:  # the seventh comes alone
            together.wait()
        return 2 * batch

    predict = FixedBatch(lambda batch: 2 * batch, 1, lambda n: [copy] * n, threads=2)
    np.testing.assert_array_equal(predict(NUMBERS), 2 * NUMBERS)


def test_a_failure_of_one_is_a_failure_of_all_and_the_others_have_ended():
    running = []

    def copy(batch):
        running.append(1)
        if batch[0, 0] == 3:
            raise ValueError("three")
        running.pop()
        return batch

    predict = FixedBatch(copy, 1, lambda n: [copy] * n, threads=2)
    with pytest.raises(ValueError, match="three"):
        predict(NUMBERS)
    assert running == [1]


@pytest.mark.parametrize(("size", "threads"), [(1, 1), (4, 2), (4, None)])
def test_one_core_or_a_larger_batch_needs_no_copies(size, threads):
    sizes = []

    def call(batch):
        sizes.append(len(batch))
        return batch

    predict = FixedBatch(call, size, lambda n: pytest.fail("opened"), threads)
    np.testing.assert_array_equal(predict(NUMBERS), NUMBERS)
    assert set(sizes) == {size}


def openvino_file(folder):
    path = folder / "one.xml"
    net = openvino.convert_model(onnx_file(folder / "source.onnx", batch=1, size=(16, 24)))
    openvino.save_model(net, path, compress_to_fp16=False)
    return path


def files(folder):
    return {
        "onnx": onnx_file(folder / "one.onnx", batch=1, size=(16, 24)),
        "openvino": openvino_file(folder),
        "litert": tflite_file(folder / "one.tflite", KERNEL, WEIGHTS, (16, 24), batch=1),
    }


@pytest.mark.parametrize("runtime", ["onnx", "openvino", "litert"])
def test_two_at_once_answer_as_one_after_the_other(runtime, tmp_path):
    path = files(tmp_path)[runtime]
    images = np.stack([photo(16, 24, seed) for seed in range(9)])
    alone, both = load_model(path, threads=1), load_model(path, threads=2)
    np.testing.assert_allclose(both(images), alone(images), atol=1e-6)
    assert (len(alone.predict.workers), len(both.predict.workers)) == (1, 2)
