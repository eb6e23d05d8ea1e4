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
import typing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

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
    def model(images):
        red = images[:, 8:24, 8:24].mean(axis=(1, 2)) / 255
        return red / red.sum(axis=1, keepdims=True)

    return mcrise.explain(photo(32, 32), model, n_masks=512, labels=["red", "green", "blue"])


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
        if parameter.kind is parameter.VAR_KEYWORD:  # each of them with its type all the same
            assert typing.get_origin(parameter.annotation) is typing.Unpack
            assert typing.is_typeddict(typing.get_args(parameter.annotation)[0])


def test_defaults_are_those_of_a_run_configuration():
    shown = inspect.signature(mcrise.grow).parameters.items()
    defaults = {name: one.default for name, one in shown}
    shared = [one.name for one in dataclasses.fields(RunConfig) if one.name in defaults]
    assert len(shared) >= 4
    assert {n: defaults[n] for n in shared} == {n: getattr(RunConfig(), n) for n in shared}
    assert RunConfig.of() == RunConfig()  # what explain makes of no keywords


def test_explain_takes_what_iter_explain_takes():
    explain, steps = (
        inspect.signature(one).parameters for one in (mcrise.explain, mcrise.iter_explain)
    )
    assert set(steps) - set(explain) == {"resume"}
    assert all(explain[name] == one for name, one in steps.items() if name != "resume")


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


def test_records_and_maps_show_themselves_in_one_short_line(explanation):
    for shown in (
        repr(explanation),
        repr(explanation.maps()),
        repr(explanation.maps("red", against="blue")),
    ):
        assert "\n" not in shown
        assert len(shown) < 160
        assert "512 masks" in shown


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
