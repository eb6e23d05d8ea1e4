"""What Python, the command and HTTP offer, as text: names, signatures, help, routes."""

import ast
import inspect
import json
import sys
import textwrap
import typing

from click.testing import CliRunner
from internals import cli

import mcrise
import mcrise.testing

WIDTH = 100


# ---- Python


def python_names(module):
    """Every public name of a module with its signature, a class with its public members."""
    return "\n".join(line for name in sorted(module.__all__) for line in described(module, name))


def described(module, name):
    thing = getattr(module, name)
    if inspect.isclass(thing):
        yield from class_lines(name, thing)
    elif callable(thing):
        yield from signature(name, source_tree(thing))
        yield from keyword_lines(thing)
    else:
        yield f"{name}: {type(thing).__name__}"
    yield ""


def source_tree(thing):
    """As it is written, since how types are printed differs between versions of Python.

    But a default that goes by the name of a number or a word is that value.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
    return Values(vars(sys.modules[thing.__module__])).visit(tree)


class Values(ast.NodeTransformer):
    """Puts values where defaults go by a name."""

    def __init__(self, known):
        self.known = known

    def visit_arguments(self, node):
        node.defaults = [self.value(one) for one in node.defaults]
        node.kw_defaults = [one and self.value(one) for one in node.kw_defaults]
        return node

    def visit_AnnAssign(self, node):
        node.value = node.value and self.value(node.value)
        return node

    def value(self, default):
        if isinstance(default, ast.Name):
            found = self.known[default.id]
            if isinstance(found, int | float | str):
                return ast.Constant(found)
        return default


def signature(name, function, indent="", own=False):
    """`name(a: int, *, b: str = 'x') -> None`, with a line for each where it is long."""
    arguments = function.args
    if own:  # self or cls
        (arguments.posonlyargs or arguments.args).pop(0)
    result = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    whole = f"{indent}{name}({ast.unparse(arguments)}){result}"
    if len(whole) <= WIDTH:
        return [whole]
    parts = [f"{indent}    {part}," for part in parameters(arguments)]
    return [f"{indent}{name}(", *parts, f"{indent}){result}"]


def keyword_lines(function):
    """What a function takes by `**settings: Unpack[...]`, each with its type."""
    for one in function.__annotations__.values():
        if typing.get_origin(one) is typing.Unpack:
            yield from typed_dict_lines(typing.get_args(one)[0])


def typed_dict_lines(kind):
    for base in kind.__orig_bases__:
        if base is not typing.TypedDict:
            yield from typed_dict_lines(base)
    for node in source_tree(kind).body:
        yield from (line for _, lines in member_lines(node) for line in lines)


def parameters(arguments):
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + arguments.defaults
    yield from map(parameter, plain, defaults)
    if arguments.vararg:
        yield f"*{ast.unparse(arguments.vararg)}"
    elif arguments.kwonlyargs:
        yield "*"
    yield from map(parameter, arguments.kwonlyargs, arguments.kw_defaults)
    if arguments.kwarg:
        yield f"**{ast.unparse(arguments.kwarg)}"


def parameter(argument, default):
    text = ast.unparse(argument)
    if default is None:
        return text
    return f"{text} = {ast.unparse(default)}"


def class_lines(name, thing):
    """Fields, methods and properties, those of its bases in this package too."""
    bases = [base.__name__ for base in thing.__bases__ if base is not object]
    yield f"class {name}({', '.join(bases)})" if bases else f"class {name}"
    members = {}
    for one in reversed(thing.__mro__):
        if one.__module__.partition(".")[0] == "mcrise":
            for node in source_tree(one).body:
                for member, lines in member_lines(node):
                    members.pop(member, None)  # in the order of the class that says it last
                    members[member] = lines
    for lines in members.values():
        yield from lines


def member_lines(node):
    indent = "    "
    if isinstance(node, ast.AnnAssign):
        name = node.target.id
        if not name.startswith("_"):
            yield name, [indent + ast.unparse(node)]
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        shown = not node.name.startswith("_") or node.name in ("__init__", "__call__", "__len__")
        marks = [ast.unparse(one).partition("(")[0] for one in node.decorator_list]
        if not shown or "overload" in marks:
            return
        if {"property", "cached_property"} & set(marks):
            yield node.name, [f"{indent}{node.name}: {ast.unparse(node.returns)} (property)"]
        else:
            own = "staticmethod" not in marks
            yield node.name, signature(node.name, node, indent, own)


# ---- the command


def command_help(name):
    """What `mcrise NAME --help` prints, or of no name `mcrise --help`, in a wide terminal."""
    arguments = [name, "--help"] if name else ["--help"]
    done = CliRunner().invoke(cli, arguments, prog_name="mcrise", terminal_width=WIDTH)
    assert done.exit_code == 0, done.output
    return done.output


def commands():
    return sorted(cli.commands)


# ---- HTTP


def routes(schema):
    """The OpenAPI schema as lines: each route, what it takes and which answers it may give."""
    lines = []
    for path, methods in sorted(schema["paths"].items()):
        for method, about in sorted(methods.items()):
            lines.append(f"{method.upper()} {path}")
            for one in sorted(
                about.get("parameters", []), key=lambda one: (one["in"], one["name"])
            ):
                needed = "" if one.get("required") else ", optional"
                lines.append(f"    {one['in']} {one['name']}{needed}: {kind(one['schema'])}")
            if body := about.get("requestBody"):
                needed = "" if body.get("required") else ", optional"
                lines.append(f"    body{needed}: {', '.join(sorted(body['content']))}")
            for status, answer in sorted(about["responses"].items()):
                kinds = ", ".join(
                    f"{media} {kind(content.get('schema', {}))}".strip()
                    for media, content in sorted(answer.get("content", {}).items())
                )
                lines.append(f"    answer {status}: {kinds or 'nothing'}")
    for name, about in sorted(schema.get("components", {}).get("schemas", {}).items()):
        lines.append(f"SCHEMA {name}")
        needed = about.get("required", [])
        for field, content in sorted(about.get("properties", {}).items()):
            lines.append(f"    {field}{'' if field in needed else ', optional'}: {kind(content)}")
    return "\n".join(lines) + "\n"


def kind(schema):
    """A JSON schema in a line, without titles and descriptions."""
    return json.dumps(without_words(schema), sort_keys=True) if schema else ""


def without_words(schema):
    if isinstance(schema, list):
        return [without_words(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    hidden = ("title", "description")
    return {key: without_words(value) for key, value in schema.items() if key not in hidden}


# ---- all of them, by the file that keeps them


SURFACES = {
    "python/mcrise.txt": lambda: python_names(mcrise),
    "python/mcrise.testing.txt": lambda: python_names(mcrise.testing),
    "help/mcrise.txt": lambda: command_help(""),
    **{f"help/{name}.txt": (lambda name=name: command_help(name)) for name in commands()},
}
