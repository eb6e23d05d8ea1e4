"""The long description, for package indexes; all else is in pyproject.toml.

It is the README, but an index has neither its pictures nor the pages it links to, and the project
has no public address to link to instead. So pictures are left out, and pages are named by where
they lie in the sources.
"""

import re
from pathlib import Path

from setuptools import setup


def without_relative_links(page: str) -> str:
    page = re.sub(r"!\[[^]]*\]\((?!https?:)[^)]*\)\n*", "", page)
    page = re.sub(r"\[([^]]+)\]\(\1\)", r"`\1`", page)
    page = re.sub(r"\[([^]]+)\]\((?!https?:)([^)]+)\)", r"\1 (`\2`)", page)
    return page + "\nThe pages named here come with the source distribution.\n"


readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
setup(
    long_description=without_relative_links(readme),
    long_description_content_type="text/markdown",
)
