"""Snapshots: text files under data/ that say what others rely on, and how one is held to them."""

import difflib
from pathlib import Path

DATA = Path(__file__).parent / "data"
REMEDY = "If that is intended: python tests/contract/update.py, and commit what it wrote."


def compare(name, text):
    """Fail with what was added and removed, unless a snapshot says just this."""
    path = DATA / name
    known = path.read_text(encoding="utf-8") if path.exists() else ""
    if known != text:
        names = f"{name} (as agreed)", f"{name} (now)"
        lines = difflib.unified_diff(
            known.splitlines(), text.splitlines(), *names, n=2, lineterm=""
        )
        raise AssertionError("\n".join(["The contract is broken.", *lines, REMEDY]))


def write(name, text):
    path = DATA / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
