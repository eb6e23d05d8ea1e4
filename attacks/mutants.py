"""Do the tests notice when the code is wrong? Small changes, each against the module's own tests.

    python attacks/mutants.py [COUNT] [SEED]

A mutant is one operator, number, comparison or condition changed. It is killed when a test fails
or takes far too long. Those that survive are listed: either a test is missing, or the change makes
no difference that anybody could see.
"""

import ast
import copy
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

os.environ.update(OPENBLAS_NUM_THREADS="1", MPLBACKEND="Agg", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
import numba  # noqa: F401  what the tests import, so that each run finds it there
import numpy  # noqa: F401
import PIL.Image  # noqa: F401
import pytest
import scipy.linalg  # noqa: F401
import starlette.responses  # noqa: F401

ROOT = Path(__file__).resolve().parents[1]
MODULES = {  # what is changed, and its own tests
    "masks.py": "test_masks.py",
    "painting/canvas.py": "painting/test_canvas.py",
    "estimators/averages.py": "estimators/test_averages.py",
    "explanation.py": "test_explanation.py",
    "server/security.py": "server/test_security.py",
}
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.RShift: ast.LShift,
    ast.LShift: ast.RShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.MatMult: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And, ast.USub: ast.UAdd, ast.Not: None,
}  # fmt: skip
SLOW = "killed_at_random"  # half a minute of the command; without it, less is noticed
LIMIT = 5.0  # times as much of the processor as the unchanged module takes
MOST_SECONDS = 120.0  # for what waits instead


def changes(tree):
    """All changes of a module, as functions that make one to the node of that number in a copy."""
    for number, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in OPERATORS:
            yield number, "operator", node.lineno
        elif isinstance(node, ast.UnaryOp) and type(node.op) in OPERATORS:
            yield number, "sign", node.lineno
        elif isinstance(node, ast.Compare):
            yield number, "comparison", node.lineno
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            yield number, "condition", node.lineno
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
            yield number, "constant", node.lineno
        elif isinstance(node, ast.Return) and node.value is not None:
            yield number, "answer", node.lineno


def mutant(tree, number):
    """A copy of a module with the node of that number changed."""
    tree = copy.deepcopy(tree)
    node = next(node for n, node in enumerate(ast.walk(tree)) if n == number)
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        node.op = OPERATORS[type(node.op)]()
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Not()
        if isinstance(node.op, ast.Not):
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, ast.Compare):
        node.ops[0] = OPERATORS.get(type(node.ops[0]), ast.NotEq)()
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.Return):
        node.value = ast.Constant(None)
    return ast.unparse(ast.fix_missing_locations(tree))


def is_told(tree):
    """The lines of messages: nobody tests these word by word."""
    raised = [node for node in ast.walk(tree) if isinstance(node, ast.Raise)]
    return {line for node in raised for line in range(node.lineno, node.end_lineno + 1)}


def run(source, tests, seconds=None):
    """Whether the tests pass on a copy of the package, in how many seconds of the processor.

    In a fork of this process, which has imported all that the tests need but the package: the
    tests take a second, their imports several.
    """
    child = os.fork()
    if child == 0:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
        os.setpgid(0, 0)
        if seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
        os.environ.update(PYTHONPATH=str(source), PYTHONDONTWRITEBYTECODE="1")
        sys.path.insert(0, str(source))
        os.chdir(ROOT)
        options = ["-x", "-p", "no:cacheprovider", "-k", f"not {SLOW}"]
        code = pytest.main([*options, f"tests/{tests}"])
        os._exit(int(code))
    late = threading.Timer(MOST_SECONDS, os.killpg, (child, signal.SIGKILL))
    late.daemon = True
    late.start()
    _, status, used = os.wait4(child, 0)
    late.cancel()
    return status == 0, used.ru_utime + used.ru_stime


def main():
    given = [int(word) for word in sys.argv[1:]]
    n_mutants, seed = (given + [400, 0][len(given) :])[:2]
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source)
        trees, found, limits = {}, [], {}
        for name, tests in MODULES.items():
            trees[name] = ast.parse((ROOT / "src" / "mcrise" / name).read_text())
            skipped = is_told(trees[name])
            found += [(name, *one) for one in changes(trees[name]) if one[2] not in skipped]
            passed, seconds = run(source, tests)
            assert passed, f"{tests} fails as it is"
            limits[name] = 2 + LIMIT * seconds
            print(f"{tests}: {seconds:.1f} s", flush=True)
        chosen = chance.sample(found, min(n_mutants, len(found)))
        print(f"{len(found):,} possible changes, {len(chosen)} tried", flush=True)
        killed, survivors, tried = Counter(), [], Counter()
        for n, (name, number, kind, line) in enumerate(chosen, start=1):
            place = source / "mcrise" / name
            before = place.read_text()
            place.write_text(mutant(trees[name], number))
            alive, _ = run(source, MODULES[name], limits[name])
            place.write_text(before)
            tried[name] += 1
            killed[name] += not alive
            if alive:
                text = before.splitlines()[line - 1].strip()
                survivors.append(f"{name}:{line} {kind}: {text}")
                print(f"survives: {survivors[-1]}", flush=True)
            if n % 20 == 0:
                print(f"{n} tried, {killed.total()} killed", flush=True)
    print("| module | tried | killed |\n|---|---|---|")
    for name in MODULES:
        print(f"| {name} | {tried[name]} | {killed[name]} |")
    share = killed.total() / max(1, tried.total())
    print(f"| all | {tried.total()} | {killed.total()} ({100 * share:.0f}%) |")
    sys.exit(0 if share >= 0.85 else 1)


if __name__ == "__main__":
    main()
