"""Fuzzing: many damaged variants of something, each tried, and what must not happen counted.

An attack is a module with `variant(number) -> content` and `use(content)`, which may raise nothing
but mcrise's own errors, and may take neither 2 seconds nor 300 MB. A number is all that is needed
to make a variant again.
"""

import multiprocessing
import re
import resource
import sys
import time
import traceback
import warnings
from collections import Counter
from contextlib import suppress
from importlib import import_module

MOST_SECONDS = 2.0
MOST_MEMORY = 300 * 2**20


def peak_memory():
    """The most memory that this process has had since `forget_peak`, where that is possible."""
    with suppress(OSError), open("/proc/self/status") as file:
        return 1024 * int(re.search(r"VmHWM:\s+(\d+)", file.read()).group(1))
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def forget_peak():
    """From here on, so that what one variant takes does not hide what the next one does."""
    with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def try_one(attack, number):
    """What came of a variant: `accepted`, `refused`, or what must not be."""
    from mcrise.errors import McriseError

    content = attack.variant(number)
    # Processor time: how long one waits depends on what else this machine does.
    forget_peak()
    started, before = time.process_time(), peak_memory()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", DeprecationWarning)
            attack.use(content)
        outcome = "accepted"
    except McriseError:
        outcome = "refused"
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        outcome = f"escaped: {type(error).__name__} {str(error)[:80]} ({where.name})"
    seconds, grown = time.process_time() - started, peak_memory() - before
    if seconds > MOST_SECONDS:
        outcome = f"slow: {seconds:.1f} s"
    if grown > MOST_MEMORY:
        outcome = f"large: {grown / 2**20:.0f} MB"
    return outcome, seconds, grown


def try_some(given):
    name, numbers = given
    attack = import_module(name)
    try_one(attack, -1)  # warm: imports and compiled code are not the variant's
    return [(number, *try_one(attack, number)) for number in numbers]


def attack(name, n_variants, n_processes=1, first=0):
    """Try so many variants; returns counts of outcomes, and an example of each that is bad."""
    outcomes, bad, slowest, largest = Counter(), {}, (0.0, -1), (0, -1)
    numbers = range(first, first + n_variants)
    parts = [(name, numbers[i : i + 250]) for i in range(0, n_variants, 250)]
    if n_processes == 1:
        found = map(try_some, parts)
    else:
        pool = multiprocessing.get_context("spawn").Pool(n_processes, maxtasksperchild=8)
        found = pool.imap_unordered(try_some, parts)
    for some in found:
        for number, outcome, seconds, grown in some:
            kind = outcome.partition(" ")[0].strip(":")
            outcomes[kind] += 1
            if kind not in ("accepted", "refused"):
                bad.setdefault(outcome, number)
            slowest, largest = max(slowest, (seconds, number)), max(largest, (grown, number))
    if n_processes > 1:
        pool.close()
        pool.join()
    return outcomes, bad, slowest, largest


def main(name):
    """`python attacks/records.py [COUNT] [PROCESSES] [FIRST]`."""
    given = [int(word) for word in sys.argv[1:]]
    outcomes, bad, slowest, largest = attack(name, *(given or [1000]))
    print(f"{name}: {outcomes.total():,} variants: {dict(outcomes)}")
    print(f"  slowest {slowest[0]:.2f} s (variant {slowest[1]}), "
          f"largest {largest[0] / 2**20:.0f} MB (variant {largest[1]})")  # fmt: skip
    for outcome, number in bad.items():
        print(f"  variant {number}: {outcome}")
    sys.exit(1 if bad else 0)
