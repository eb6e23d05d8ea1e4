"""Every link and picture of the site leads to a file and a place in it that exist: `make docs`.

Links to other sites are not followed, since the site is built offline.
"""

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the places that a link can lead to."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = {""}
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.places.add(value)


def lost(folder: Path) -> Iterator[str]:
    pages = {file.resolve(): Page(file) for file in folder.rglob("*.html")}
    for file, page in pages.items():
        for link in sorted(page.links):
            to = urlsplit(link)
            if to.scheme or to.netloc:
                continue
            other = (file.parent / unquote(to.path)).resolve() if to.path else file
            known = pages.get(other)
            if not other.exists() or (known and unquote(to.fragment) not in known.places):
                yield f"{file.relative_to(folder.resolve())}: {link}"


if __name__ == "__main__":
    found = list(lost(Path(sys.argv[1])))
    sys.exit("\n".join(["These links lead nowhere:", *found]) if found else 0)
