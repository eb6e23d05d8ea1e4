"""How much time and memory an explanation adds to the bare calls of the model.

    python benchmarks/overhead.py

For each model: the time of `explain` over the time of as many bare calls on ready-made batches of
the same size, alternating in one run, best of five. Beside it, in the same run, at the same number
of calls: xaitk-saliency's MC-RISE, RISE as its reference code has it (NumPy, all masks in memory),
and lime. And a function of a user's own, with `explain` as it is without any options: one that only
sleeps, and the networks with one thread and with all; median of seven alternating rounds. And a
file that fixes the batch to one: in parallel, against one session of one thread and of all.
"""

import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from skimage import data

import mcrise
from mcrise import Model, load_model
from mcrise.demo import MODEL as DEMO
from mcrise.demo.signs import stop
from mcrise.estimators import FittedEstimator, Sample
from mcrise.masks import CHUNK, Plan, draw
from mcrise.painting.canvas import paint
from networks import efficientnet, embedded
from table import report

N_MASKS = 1024
BATCH = 32
N_CALLS = N_MASKS + BATCH  # one batch is asked twice
ROUNDS = 5
FUNCTION_ROUNDS = 7


def main() -> None:
    photograph = data.chelsea()  # a cat, CC0, shipped with scikit-image
    rows = [
        *compare("embedded 96 x 96", embedded(), stop()),
        # xaitk-saliency needs 50 MB a mask there, so it gets fewer.
        *compare("EfficientNet-lite0 224 x 224", efficientnet(), photograph, n_xaitk=64),
    ]
    report("overhead", rows, n_masks=N_MASKS, batch_size=BATCH, rounds=ROUNDS)
    report("functions", functions(photograph), rounds=FUNCTION_ROUNDS)
    report("batch_of_one", [batch_of_one(embedded(), stop())], rounds=FUNCTION_ROUNDS)
    report("smooth", [all_classes(embedded(), stop())], n_masks=N_MASKS, rounds=ROUNDS)
    report("blending", [blending(size) for size in (96, 224)], masks=CHUNK)


def compare(name: str, model: Model, picture: Any, n_xaitk: int = N_MASKS) -> list[dict[str, Any]]:
    image = model.view(picture).pixels
    batch = np.repeat(model.canvas(image, ()).untouched(), BATCH, axis=0)
    spent: dict[str, list[float]] = {"bare": [], "mcrise": [], "mcrise with a map": []}
    for _ in range(ROUNDS):
        spent["bare"].append(timed(bare, model, batch)[0])
        explained, explanation = timed(mcrise.explain, image, model, n_masks=N_MASKS)
        mapped, _ = timed(explanation.maps, estimator="centered")
        spent["mcrise"].append(explained)
        spent["mcrise with a map"].append(explained + mapped)
    best = {what: min(times) for what, times in spent.items()}
    rows = [
        {
            "model": name,
            "what": what,
            "calls": N_CALLS,
            "seconds": best[what],
            "best / bare": best[what] / best["bare"],
            "median ratio": float(np.median(np.divide(times, spent["bare"]))),
        }
        for what, times in spent.items()
    ]
    for what, peer, n_calls in (
        ("RISE reference (NumPy)", reference_rise, N_MASKS),
        ("lime", lime, N_MASKS),
        ("xaitk-saliency MC-RISE", xaitk, n_xaitk),
    ):
        seconds, _ = timed(peer, image, model, n_calls)
        rows.append({"model": name, "what": what, "calls": n_calls, "seconds": seconds,
                     "best / bare": seconds / (best["bare"] * n_calls / N_CALLS)})  # fmt: skip
    return rows


def functions(photograph: Any) -> list[dict[str, Any]]:
    """`explain` with a function of the user's own, over the bare calls that it made."""
    rows = [own_function("sleeps 1 ms an image, 224 x 224", sleeping, photograph, 224)]
    for threads in (1, None):
        cores = "one thread" if threads else "all cores"
        for name, model, picture in (
            ("embedded 96 x 96", embedded(threads), stop()),
            ("EfficientNet-lite0 224 x 224", efficientnet(threads=threads), photograph),
        ):
            size = model.geometry.size[0]
            rows.append(own_function(f"{name}, {cores}", model.__call__, picture, size))
    return rows


def sleeping(images: np.ndarray) -> np.ndarray:
    time.sleep(0.001 * len(images))
    red = images[..., 0].mean(axis=(1, 2)) / 255
    return np.stack([red, 1 - red], axis=1)


def own_function(name: str, function: Any, picture: Any, size: int) -> dict[str, Any]:
    """Default settings but for the trials, which are calls of another kind."""
    batches: list[np.ndarray] = []

    def counted(images: np.ndarray) -> Any:
        batches.append(np.empty(len(images)))
        return function(images)

    def again() -> None:
        for batch in asked:
            function(images[: len(batch)])

    image = np.asarray(mcrise.Geometry((size, size)).view(picture).pixels)
    images = np.repeat(image[None], 64, axis=0)
    ratios = []
    for _ in range(FUNCTION_ROUNDS + 1):
        batches.clear()
        explained, explanation = timed(mcrise.explain, image, counted, trials=False)
        asked = list(batches)
        called, _ = timed(again)
        ratios.append(explained / called)
    return {
        "function": name,
        "calls": explanation.n_calls.total,
        "median ratio": float(np.median(ratios[1:])),  # the first round compiles
        "lowest": min(ratios[1:]),
    }


def batch_of_one(model: Model, picture: Any) -> dict[str, Any]:
    """A copy of the embedded network whose batch is fixed to one, on a chunk of images."""
    import onnx

    network = onnx.load(DEMO)
    network.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.onnx"
        onnx.save(network, path)
        single, several = (load_model(path, scale=255, threads=n) for n in (1, None))
    batch = np.repeat(model.canvas(model.view(picture).pixels, ()).untouched(), CHUNK, axis=0)
    several.predict(batch)  # opens its sessions
    spent: dict[str, list[float]] = {"single": [], "all": [], "parallel": []}
    for _ in range(FUNCTION_ROUNDS):
        for what, call in (("single", single.predict.call), ("all", several.predict.call)):
            spent[what].append(timed(lambda call=call: [call(one[None]) for one in batch])[0])
        spent["parallel"].append(timed(several.predict, batch)[0])
    against = {what: np.median(np.divide(spent[what], spent["parallel"])) for what in spent}
    return {
        "images": CHUNK,
        "one thread / parallel": float(against["single"]),
        "all threads / parallel": float(against["all"]),
    }


def all_classes(model: Model, picture: Any) -> dict[str, Any]:
    """The smooth maps of every class, in units of bare calls of the model."""
    image = model.view(picture).pixels
    batch = np.repeat(model.canvas(image, ()).untouched(), BATCH, axis=0)
    explanation = mcrise.explain(image, model, n_masks=N_MASKS)
    fits, maps, calls = [], [], []
    for _ in range(ROUNDS):
        calls.append(timed(bare, model, batch)[0] / N_CALLS)
        explanation.prepared = {}
        seconds, _ = timed(explanation.prepare, "smooth")
        fits.append(seconds)
        maps.append(timed(all_maps, *explanation.prepare("smooth"))[0])
    return {
        "classes": explanation.n_classes,
        "fit ms": 1000 * min(fits),
        "maps ms": 1000 * min(maps),
        "bare call ms": 1000 * min(calls),
        "worth in calls": (min(fits) + min(maps)) / min(calls),
    }


def all_maps(fit: FittedEstimator, sample: Sample) -> None:
    for target in range(sample.chunks[0].shape[1]):
        fit.maps(sample.column(target))


def bare(model: Model, batch: np.ndarray) -> None:
    for _ in range(N_CALLS // BATCH):
        model.predict(batch)


def timed(work: Callable[..., Any], *given: Any, **named: Any) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work(*given, **named)
    return time.perf_counter() - started, result


def fastest(work: Callable[..., Any], *given: Any) -> float:
    return min(timed(work, *given)[0] for _ in range(20))


def xaitk(image: np.ndarray, model: Model, n_masks: int) -> None:
    """Its MC-RISE at the same number of masks; it calls the model one image at a time."""
    from smqtk_classifier import ClassifyImage
    from xaitk_saliency.impls.gen_image_classifier_blackbox_sal.mc_rise import MCRISEStack

    class Shim(ClassifyImage):
        def get_labels(self) -> list[int]:
            return list(range(len(model(image[None])[0])))

        def classify_images(self, images: Any) -> Any:
            for one in images:
                yield dict(enumerate(model(np.asarray(one)[None])[0]))

        def get_config(self) -> dict[str, Any]:
            return {}

    colors = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255], [0, 0, 0]]
    MCRISEStack(n=n_masks, s=8, p1=0.5, fill_colors=colors, seed=0)(image, Shim())


def reference_rise(image: np.ndarray, model: Model, n_masks: int) -> None:
    """RISE as its authors wrote it, in NumPy: one black fill, all masks at full size in memory."""
    from skimage.transform import resize

    rng = np.random.default_rng(0)
    rows, cols = image.shape[:2]
    cell = np.ceil(np.array([rows, cols]) / 8).astype(int)
    masks = np.empty((n_masks, rows, cols), np.float32)
    for n, grid in enumerate((rng.random((n_masks, 8, 8)) < 0.5).astype(np.float32)):
        y, x = rng.integers(0, cell)
        large = resize(grid, 9 * cell, order=1, mode="reflect", anti_aliasing=False)
        masks[n] = large[y : y + rows, x : x + cols]
    scores = [
        model((image * masks[start : start + BATCH, :, :, None]).astype(np.uint8))
        for start in range(0, n_masks, BATCH)
    ]
    (np.concatenate(scores).T @ masks.reshape(n_masks, -1)).reshape(-1, rows, cols)


def lime(image: np.ndarray, model: Model, n_masks: int) -> None:
    from lime.lime_image import LimeImageExplainer

    LimeImageExplainer(random_state=0).explain_instance(
        image, lambda batch: model(batch.astype(np.uint8)), hide_color=0, num_samples=n_masks,
        batch_size=BATCH,
    )  # fmt: skip


def blending(size: int) -> dict[str, Any]:
    """A model that costs nothing: how fast masks are painted, against copying as many bytes."""
    plan = Plan((size, size))
    pixels = np.random.default_rng(0).integers(0, 256, (size, size, 3), np.uint8)
    model = Model(None, dtype="float32", layout="NCHW", gain=(0.01,) * 3)
    canvas = model.canvas(pixels, plan.fills)
    masks, out = draw(plan, 0), canvas.batch(CHUNK)
    paint(plan, canvas, masks, out)
    painting = fastest(paint, plan, canvas, masks, out)
    drawing = fastest(draw, plan, 0)
    source = out.copy()
    copying = fastest(copy_in_threads, out, source)
    return {
        "size": size,
        "paint ms/mask": 1e3 * painting / CHUNK,
        "draw ms/mask": 1e3 * drawing / CHUNK,
        "images/s": CHUNK / painting,
        "paint GB/s": out.nbytes / painting / 1e9,
        "copy GB/s": out.nbytes / copying / 1e9,
        "share of copy": copying / painting,
    }


def copy_in_threads(out: np.ndarray, source: np.ndarray) -> None:
    """A plain copy with as many threads as painting uses: two, here."""
    half = len(out) // 2
    parts = [slice(0, half), slice(half, None)]
    threads = [threading.Thread(target=lambda p=p: np.copyto(out[p], source[p])) for p in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
