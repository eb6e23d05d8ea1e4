"""What others rely on: public names, help, routes, and the keys of all that is written.

Each is a snapshot under data/. One that changed on purpose is written by update.py.
"""

import pytest
from outputs import all_outputs
from snapshots import DATA, REMEDY, compare
from surfaces import SURFACES

MADE = ("csv", "files", "http", "json", "parquet")  # folders of data/ that runs fill
KEPT = sorted(
    path.relative_to(DATA).as_posix() for kind in MADE for path in (DATA / kind).glob("*.txt")
)


@pytest.mark.parametrize("name", SURFACES)
def test_names_signatures_and_help(name):
    compare(name, SURFACES[name]())


def test_keys_and_types_and_every_snapshot_is_made(undrawn, tmp_path):
    """A command or a file that is new is kept too, and one that is gone is removed."""
    made = all_outputs(tmp_path)
    for name in KEPT:
        compare(name, made.get(name, ""))
    surfaces = {
        path.relative_to(DATA).as_posix()
        for kind in ("help", "python")
        for path in (DATA / kind).glob("*.txt")
    }
    assert set(KEPT) == set(made), REMEDY
    assert surfaces == set(SURFACES), REMEDY


def test_a_broken_contract_says_what_and_what_to_do():
    with pytest.raises(AssertionError) as caught:
        compare("python/mcrise.testing.txt", "class Other\n")
    said = str(caught.value)
    assert "\n+class Other" in said
    assert "\n-class DependsOnZone(AssertionError)" in said
    assert said.endswith(REMEDY)
