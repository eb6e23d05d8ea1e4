"""What a Python user meets: names, signatures, types, and values that behave as values."""

import dataclasses
import importlib
import inspect
import os
import pickle
import pkgutil
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Unpack, get_origin

import numpy as np
import pytest
from PIL import Image

import mcrise
import typed_user
from mcrise._util.array_eq import ArrayEq
from mcrise.config import RunConfig
from mcrise.estimators import ESTIMATORS
from mcrise.images import View
from mcrise.interpretation.regions import interpret
from mcrise.masks import Masks
from planted import photo

SOURCE = Path(mcrise.__file__).parent
TESTS = Path(__file__).parent
MODULES = [info.name for info in pkgutil.walk_packages(mcrise.__path__, "mcrise.")
           if info.name != "mcrise.__main__"]  # fmt: skip


@pytest.fixture(scope="module")
def explanation():
    model = mcrise.Model(thirds, labels=("red", "green", "blue"), identity="thirds")
    return mcrise.explain(photo(32, 32), model, n_masks=512)


def thirds(images):
    """How much of the middle is red, green and blue: scores (N, 3)."""
    middle = images[:, 8:24, 8:24].mean(axis=(1, 2)) / 255 + 0.01
    return middle / middle.sum(axis=1, keepdims=True)


def embed(images):
    """The mean color, as an embedding (N, 3)."""
    return images.mean(axis=(1, 2))


# ---- names and signatures


def test_no_public_name_is_that_of_a_module():
    modules = {name.split(".")[1] for name in MODULES}
    assert {"sampling", "fills", "studies"} <= modules  # it looks at the right place
    assert modules.isdisjoint(mcrise.__all__)


def test_every_public_name_says_what_it_is():
    undocumented = [name for name in mcrise.__all__ if not inspect.getdoc(getattr(mcrise, name))]
    assert undocumented == []


FUNCTIONS = [name for name in mcrise.__all__ if inspect.isfunction(getattr(mcrise, name))]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_show_every_parameter_with_its_type(name):
    signature = inspect.signature(getattr(mcrise, name))
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.kind is not parameter.VAR_POSITIONAL
        assert parameter.annotation is not parameter.empty
        if parameter.kind is parameter.VAR_KEYWORD:  # typed once, and forwarded
            assert get_origin(parameter.annotation) is Unpack


def test_defaults_are_those_of_a_run():
    config, shown = RunConfig(), inspect.signature(mcrise.grow).parameters
    shared = [one.name for one in dataclasses.fields(RunConfig) if one.name in shown]
    assert len(shared) >= 4
    assert {n: shown[n].default for n in shared} == {n: getattr(config, n) for n in shared}


def test_explain_takes_what_iter_explain_takes():
    def parameters(function):
        shown = inspect.signature(function).parameters.items()
        return {name: (one.annotation, one.default) for name, one in shown}

    explain, chunks = parameters(mcrise.explain), parameters(mcrise.iter_explain)
    assert chunks.pop("resume")
    for name in ("trials", "truth", "save", "progress"):
        assert explain.pop(name)
    assert explain == chunks


def test_tab_shows_the_api_and_no_modules():
    """Also after modules were imported, which become attributes of the package."""
    importlib.import_module("mcrise.testing")
    assert sorted(dir(mcrise)) == sorted([*mcrise.__all__, "__version__"])
    assert not any(inspect.ismodule(getattr(mcrise, name)) for name in mcrise.__all__)
    assert not any(name.startswith("test") for name in mcrise.__all__)  # pytest would collect it
    with pytest.raises(AttributeError, match="has no attribute 'expalin'"):
        _ = mcrise.expalin


def test_import_mcrise_imports_no_library():
    code = "import sys, mcrise; print([m for m in ('numpy', 'PIL', 'click') if m in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (printed.stdout.strip(), printed.stderr) == ("[]", "")


# ---- types


def mypy(script):
    """What mypy --strict says of a script that uses this very mcrise."""
    root = TESTS.parent
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", root / ".mypy_cache", script],
        cwd=root,
        env={**os.environ, "MYPYPATH": str(SOURCE.parent)},
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_the_script_of_a_user_passes_mypy_strict():
    assert (SOURCE / "py.typed").exists()
    assert mypy(TESTS / "typed_user.py").startswith("Success")


def test_mistakes_are_refused_by_mypy_each_at_its_line():
    script = TESTS / "typed_mistakes.py"
    lines = script.read_text().splitlines()
    expected = {n for n, line in enumerate(lines, 1) if "# expect error" in line}
    found = re.findall(r"typed_mistakes\.py:(\d+): error", mypy(script))
    assert {int(number) for number in found} == expected


def test_the_script_of_a_user_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    typed_user.main(tmp_path)
    assert (tmp_path / "maps.png").exists()


# ---- values


def test_explanations_and_maps_show_themselves_in_one_short_line(explanation):
    for shown in (
        repr(explanation),
        repr(explanation.maps()),
        repr(explanation.maps("red", against="blue")),
    ):
        assert "512 masks" in shown


def held_by_a_user(explanation, folder):
    """One of each class that the API gives to a user."""
    region = np.zeros((32, 32), bool)
    region[8:24, 8:24] = True
    model = mcrise.Model(thirds, labels=("red", "green", "blue"), identity="thirds")
    (finding, *_) = explanation.findings
    Image.fromarray(photo(32, 32)).save(folder / "one.png")
    Image.fromarray(photo(32, 32, seed=1)).save(folder / "two.png")
    gallery = mcrise.open_gallery(folder, embed)
    match = mcrise.match(folder / "one.png", gallery, embed)
    study = mcrise.run_study(folder, model, out=folder / "study", methods="mcrise", n_masks=64,
                             step=0.5)  # fmt: skip
    return [
        explanation,
        explanation.prediction,
        explanation.n_calls,
        explanation.maps(),
        explanation.masks(),
        explanation.view,
        explanation.findings,
        finding,
        finding.trial,
        finding.trial.repaint,
        finding.control,
        *finding.claims,
        mcrise.intervene(explanation, model, region, mcrise.Solid((0, 0, 0))),
        mcrise.compare(explanation, "blue", "red"),
        *mcrise.measure(explanation, model, step=0.25).values(),
        model,
        gallery,
        match,
        study,
    ]


def test_whatever_a_user_holds_shows_itself_in_a_short_line_and_prints(explanation, tmp_path):
    held = held_by_a_user(explanation, tmp_path)
    missing = {type(one).__name__ for one in held}
    assert missing >= {"Findings", "Finding", "Trial", "Control", "Intervention", "StudyResult"}
    for one in held:
        assert "\n" not in repr(one)
        assert len(repr(one)) < 200
        assert "array(" not in str(one)


def test_a_prediction_says_what_comes_next_and_whether_it_is_decided(explanation):
    scores = np.array([0.38, 0.37, 0.25], np.float32)
    close = dataclasses.replace(explanation, untouched=scores, trial_logs={})
    assert str(close.prediction) == "Prediction: red 0.38, next green 0.37: undecided"
    far = dataclasses.replace(close, untouched=np.array([0.04, 0.89, 0.07], np.float32))
    assert str(far.prediction) == "Prediction: green 0.89, next blue 0.07"
    assert (far.prediction.label, far.prediction.runner_up.label) == ("green", "blue")
    assert str(far).startswith("Prediction: green 0.89, next blue 0.07.")


def test_maps_are_an_array_and_know_their_colors_by_any_spelling(explanation):
    maps = explanation.maps("red")
    np.testing.assert_array_equal(np.asarray(maps), maps.values)
    assert np.asarray(maps, np.float64).dtype == np.float64
    np.testing.assert_array_equal(maps["Red"], maps.values[maps.names.index("red")])
    with pytest.raises(mcrise.InputError, match="There is no map of 'mauve': there are red"):
        maps["mauve"]


def holds_array(field):
    written = str(field.type)
    return field.compare and "Callable" not in written and "ndarray" in written.lower()


def test_no_dataclass_with_arrays_raises_when_compared():
    """The equality that dataclasses get by themselves raises where a field is an array."""
    classes = [
        one
        for name in MODULES
        for one in vars(importlib.import_module(name)).values()
        if dataclasses.is_dataclass(one) and one.__module__ == name
    ]
    assert mcrise.Maps in classes
    compared = [one for one in classes if one.__dataclass_params__.eq]
    assert [one for one in compared if any(map(holds_array, dataclasses.fields(one)))] == []


def test_values_with_arrays_are_equal_by_content(explanation):
    again = pickle.loads(pickle.dumps(explanation))
    pairs = [
        (explanation.view, again.view),
        (explanation.maps(), again.maps()),
        (explanation.masks(), again.masks()),
        (interpret(explanation), interpret(again)),
    ]
    for one, other in pairs:
        assert isinstance(one, ArrayEq)
        assert one is not other
        assert (one == other) is True
        assert (one != other) is False
    assert (explanation.maps("red") == explanation.maps("blue")) is False
    assert (explanation.view == explanation.maps()) is False
    assert View(photo(8, 8), (8, 8), (0, 0, 8, 8)) != View(photo(8, 8, 1), (8, 8), (0, 0, 8, 8))
    masks = explanation.masks()
    assert masks != Masks(masks.cells, masks.shifts + 1)


def test_a_record_pickles_also_after_its_maps_were_made(explanation):
    explanation.maps()
    again = pickle.loads(pickle.dumps(explanation))
    assert (again.n_masks, again.model, again.labels) == (
        512,
        explanation.model,
        explanation.labels,
    )
    for estimator in ESTIMATORS:
        assert again.maps("green", estimator) == explanation.maps("green", estimator)


def test_several_threads_may_read_one_record(explanation):
    wanted = [(target, estimator) for target in range(3) for estimator in ESTIMATORS]
    alone = {
        case: pickle.loads(pickle.dumps(explanation)).maps(*case).values.tobytes()
        for case in wanted
    }
    for _ in range(3):
        shared = pickle.loads(pickle.dumps(explanation))  # nothing of it is prepared yet
        with ThreadPoolExecutor(8) as pool:
            maps = pool.map(lambda case, read=shared: read.maps(*case), wanted)
            assert {c: m.values.tobytes() for c, m in zip(wanted, maps, strict=True)} == alone


def test_a_thread_reads_while_another_adds(explanation):
    """What is read is of the masks before or of those after, never of some of both."""
    parts = {n: explanation.first(n).maps("red").values.tobytes() for n in range(64, 513, 64)}
    growing = dataclasses.replace(explanation, scores={0: explanation.scores[0]})

    def grow():
        for chunk in range(1, 8):
            growing.add(chunk, explanation.scores[chunk])

    with ThreadPoolExecutor(4) as pool:
        adding = pool.submit(grow)
        reading = [pool.submit(growing.maps, "red") for _ in range(20)]
        adding.result()
        seen = {one.result().values.tobytes() for one in reading}
    assert seen <= set(parts.values())
    assert np.array_equal(growing.maps("red").values, explanation.maps("red").values)
