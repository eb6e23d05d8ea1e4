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
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODULES = {  # what is changed, and its own tests
    "masks.py": "test_masks.py",
    "blend.py": "test_blend.py",
    "estimate.py": "test_estimate.py",
    "record.py": "test_record.py",
    "page/guard.py": "test_guard.py",
}
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.RShift: ast.LShift,
    ast.LShift: ast.RShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.MatMult: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And, ast.USub: ast.UAdd, ast.Not: None,
}  # fmt: skip
LIMIT = 20.0  # times as long as the unchanged module takes


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


def run(source, tests, seconds):
    """Whether the tests pass on a copy of the package."""
    env = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1",
           "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider",
               f"tests/{tests}"]  # fmt: skip
    try:
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


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
            started = time.monotonic()
            assert run(source, tests, None), f"{tests} fails as it is"
            limits[name] = LIMIT * (time.monotonic() - started)
        chosen = chance.sample(found, min(n_mutants, len(found)))
        print(f"{len(found):,} possible changes, {len(chosen)} tried", flush=True)
        killed, survivors, tried = Counter(), [], Counter()
        for n, (name, number, kind, line) in enumerate(chosen, start=1):
            place = source / "mcrise" / name
            before = place.read_text()
            place.write_text(mutant(trees[name], number))
            alive = run(source, MODULES[name], limits[name])
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
    print(f"| all | {tried.total()} | {killed.total()} ({100 * share:.0f} %) |")
    sys.exit(0 if share >= 0.85 else 1)


if __name__ == "__main__":
    main()
