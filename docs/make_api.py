"""Make docs/api.md from the docstrings of the public names: `make api`.

Signatures and fields are shown as the source has them, so that the page is the same whichever
Python makes it.
"""

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcrise

PAGE = Path(__file__).with_name("api.md")
HEAD = """# The Python API

All of it is in `import mcrise`; the [tutorial](tutorial.md) shows how the pieces go together. Made
from the docstrings by `make api`.

`IntOrAuto` is a whole number or `"auto"`; a `Target` a class by index, by label, or None for the
one with the highest score; `Numbers` are one for all channels or red, green and blue; a
`ScoreKind` is `"probability"`, `"independent"`, `"similarity"` or `"any"`. Letters: N masks or
images, K fills, C classes, H x W pixels.
"""
SECTIONS = {
    "Explaining": ("explain", "iter_explain", "grow", "RunConfig", "Plan"),
    "Models": ("load_model", "Model", "Geometry", "inspect_model", "Inspection", "ModelWarning"),
    "Explanations and maps": (
        "Explanation",
        "Explanations",
        "Prediction",
        "CallCounts",
        "load",
        "merge",
        "Maps",
    ),
    "Findings": ("Findings", "Finding", "Trial", "Control"),
    "Comparing and repainting": (
        "compare",
        "Comparison",
        "intervene",
        "Intervention",
        "find_counterfactual",
    ),
    "Measuring": ("measure", "Curve", "run_study", "StudyResult"),
    "Auditing": ("audit", "AuditResult"),
    "Matching": ("open_gallery", "Gallery", "match", "Match"),
    "Fills": ("parse_fills", "Fill", "Solid", "Mean", "Blur", "Gray", "Hue", "Noise", "Picture"),
    "Errors": ("McriseError", "InputError", "ExplanationError", "PluginError", "ModelError"),
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def page() -> str:
    """All sections, each name with its signature or fields, its docstring and its methods."""
    parts = [HEAD]
    for section, names in SECTIONS.items():
        parts += [f"## {section}\n", *(part for name in names for part in entry(name))]
    return "\n".join(parts)


def entry(name: str) -> Iterator[str]:
    thing = getattr(mcrise, name)
    source = textwrap.dedent(inspect.getsource(thing))
    (tree,) = ast.parse(source).body
    yield f"### `{name}`\n"
    if isinstance(tree, ast.ClassDef):
        yield words(thing)
        yield from of_class(thing, tree, source)
    else:
        assert isinstance(tree, Function)
        rows = "".join(f"    {one},\n" for one in parameters(thing, tree))
        yield code(f"{name}(\n{rows}) -> {written(tree.returns)}")
        yield words(thing)


def of_class(thing: type, tree: ast.ClassDef, source: str) -> Iterator[str]:
    """Its fields with their comments, and its methods."""
    fields = [node for node in tree.body if isinstance(node, ast.AnnAssign) and is_given(node)]
    lines = source.splitlines()
    rows = [with_value(thing, node, lines[node.lineno - 1]) for node in fields]
    if rows:
        yield code("\n".join([f"class {thing.__name__}:", *rows]))
    for node in tree.body:
        if isinstance(node, Function) and is_shown(node):
            said = " ".join((ast.get_docstring(node) or "").split())
            yield f"**`{used(getattr(thing, node.name), node)}`** {said}\n"


def is_given(node: ast.AnnAssign) -> bool:
    """Whether a field is one that is given, and not worked out."""
    return not any(word in ast.unparse(node) for word in ("ClassVar", "init=False"))


def is_shown(node: Function) -> bool:
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    public = not node.name.startswith("_") or node.name == "__getitem__"
    return public and "overload" not in decorators and ast.get_docstring(node) is not None


def used(thing: Any, node: Function) -> str:
    """A method as it is used, `maps(target=None, ...)`; a property by its name."""
    if not inspect.isroutine(thing):
        return node.name
    given = [
        name if one.default is one.empty else f"{name}={show(one.default)}"
        for name, one in inspect.signature(thing).parameters.items()
        if name != "self"
    ]
    return (
        f"[{', '.join(given)}]"
        if node.name == "__getitem__"
        else f"{node.name}({', '.join(given)})"
    )


def parameters(thing: Any, node: Function) -> list[str]:
    """Each with its type and default; `*` where those by name begin."""
    types = {one.arg: written(one.annotation) for one in [*node.args.args, *node.args.kwonlyargs]}
    rows = []
    for name, one in inspect.signature(thing).parameters.items():
        if one.kind is one.KEYWORD_ONLY and "*" not in rows:
            rows.append("*")
        if one.kind is one.VAR_KEYWORD:
            rows.append(f"**{name}: {written(node.args.kwarg.annotation)}")
        else:
            rows.append(f"{name}: {types[name]}" + default(one.default))
    return rows


def default(value: Any) -> str:
    return "" if value is inspect.Parameter.empty else f" = {show(value)}"


def with_value(thing: type, node: ast.AnnAssign, line: str) -> str:
    """The line of a field, a constant by its value."""
    if isinstance(node.value, ast.Name) and isinstance(node.target, ast.Name):
        value = getattr(thing, node.target.id)
        if isinstance(value, int | float | str):
            return line.replace(f"= {node.value.id}", f"= {show(value)}", 1)
    return line


def show(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value).replace("'", '"')


def written(annotation: ast.expr | None) -> str:
    return "" if annotation is None else ast.unparse(annotation).replace("'", '"')


def code(text: str) -> str:
    return f"```python\n{text}\n```\n"


def words(thing: Any) -> str:
    return (inspect.getdoc(thing) or "") + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
