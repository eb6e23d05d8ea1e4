"""How many cores there are to work with, and one at a time where bits depend on it."""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

from ..errors import InputError

THREADS = "MCRISE_THREADS"  # environment variable: how many to use, if not all


def n_cores() -> int:
    """As many as the user says, or as this process may use."""
    given = os.environ.get(THREADS, "").strip()
    if given:
        if not given.isdecimal() or int(given) < 1:
            raise InputError(
                f"{THREADS} is {given!r}, but a whole number above 0 is needed: set the number of "
                "cores to use, or unset it to use all."
            )
        return int(given)
    if hasattr(os, "sched_getaffinity"):  # only Linux can tell fewer than there are
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def shared_pool() -> ThreadPoolExecutor:
    """The threads of this process that work beside the one that asks; made once."""
    return ThreadPoolExecutor(n_cores(), "mcrise")


if hasattr(os, "register_at_fork"):  # a child has none of its parent's threads
    os.register_at_fork(after_in_child=shared_pool.cache_clear)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS work with one thread: it adds up in another order with each number of them.

    The limit is the whole process's. So the first who comes in sets it and the last who goes
    lifts it, lest one thread's exit lift it for another.
    """
    with Limit.lock:
        Limit.n_inside += 1
        if Limit.n_inside == 1:
            Limit.held = _blas().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with Limit.lock:
            Limit.n_inside -= 1
            if Limit.n_inside == 0:
                Limit.held.restore_original_limits()


class Limit:
    """Who is inside `one_thread`, for all threads."""

    lock = threading.Lock()
    n_inside = 0
    held: Any = None


@cache
def _blas() -> Any:
    """The libraries of this process that work with threads; finding them takes a while."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
