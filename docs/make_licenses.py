"""Make docs/licenses.md: what is installed with mcrise, and under which license.

    python docs/make_licenses.py

Run it where mcrise[all] is installed.
"""

import re
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path

PAGE = Path(__file__).with_name("licenses.md")
HEAD = """# Licenses

`mcrise` is under Apache-2.0. It installs these packages and what they need; the list has the licenses that the
packages themselves state. Made by `python docs/make_licenses.py`.
"""
EXTRAS = {"": "always", "torch": "extra `torch`", "web": "extra `web`", "study": "extra `study`",
          "cluster": "extra `cluster`"}  # fmt: skip


def main() -> None:
    parts = [HEAD]
    seen: set[str] = set()
    for extra, when in EXTRAS.items():
        rows = sorted(
            row for name in closure(names("mcrise", extra), seen) for row in [license_of(name)]
        )
        parts += [f"## Installed {when if not extra else 'with the ' + when}\n",
                  "| package | license |", "|---|---|", *rows, ""]  # fmt: skip
    PAGE.write_text("\n".join(parts).rstrip() + "\n", encoding="utf-8")


def names(package: str, extra: str = "") -> list[str]:
    """What a package needs, on this machine."""
    found = []
    for line in requires(package) or []:
        need, _, condition = line.partition(";")
        wanted = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", condition)
        if (wanted[1] if wanted else "") == extra:
            found.append(re.split(r"[\s\[<>=!~(]", need.strip())[0])
    return found


def closure(todo: list[str], seen: set[str]) -> list[str]:
    """Packages with all that they need, each once."""
    found = []
    while todo:
        name = todo.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in seen or key == "mcrise":
            continue
        seen.add(key)
        try:
            todo += names(name)
        except PackageNotFoundError:
            continue  # not needed on this machine
        found.append(name)
    return found


def license_of(name: str) -> str:
    about = metadata(name)
    words = about.get("License-Expression") or ""
    if not words:
        kinds = [line for line in about.get_all("Classifier") or [] if line.startswith("License")]
        words = ", ".join(line.split(" :: ")[-1] for line in kinds)
    if not words:
        words = (about.get("License") or "not stated").splitlines()[0]
    return f"| {about['Name']} | {words} |"


if __name__ == "__main__":
    main()
