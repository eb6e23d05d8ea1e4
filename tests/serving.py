"""A server for tests: the application on a free port, in a thread of this process."""

import io
import threading
import time
from contextlib import contextmanager

import uvicorn

from mcrise.demo.signs import SIGNS
from mcrise.server.app import create_app
from mcrise.server.job_queue import JobQueue


@contextmanager
def serving(folder, models, **options):
    """Yields the address and the jobs."""
    jobs = JobQueue(folder, models)
    config = uvicorn.Config(create_app(jobs, **options), "127.0.0.1", 0, log_level="warning")
    server, socket = uvicorn.Server(config), config.bind_socket()
    socket.listen()
    thread = threading.Thread(target=server.run, args=([socket],))
    thread.start()
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}/", jobs
    finally:
        server.should_exit = server.force_exit = True
        thread.join()
        jobs.close()


def wait(condition, seconds=60):
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.01)


def sign_bytes(name="stop"):
    buffer = io.BytesIO()
    SIGNS[name]().save(buffer, "PNG")
    return buffer.getvalue()
