"""The image decoder: pictures of strangers are unpacked in another process, on a budget.

A few kilobytes may unpack to a gigabyte or take minutes, and a decoder may have a fault that nobody
knows of yet. So the bytes go to a helper process, one picture at a time, which has so much memory
and so many seconds; when it exceeds them it is ended, and the next picture gets a new one. What
comes back is text and pixels: nothing that it sends is run.
"""

import atexit
import contextlib
import io
import json
import os
import subprocess
import sys
import threading
import warnings
from dataclasses import asdict
from typing import IO, Any

import numpy as np
from PIL import Image

from ..errors import InputError
from ..images import Geometry, View

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "PPM")  # by content, not by name
MOST_PIXELS = 40_000_000  # unpacked
LONGEST_SIDE = 1024  # of what a model is shown
MOST_SECONDS = 10.0  # for one picture
MOST_MEMORY = 800 * 2**20  # bytes, on top of what Python and its libraries take
MOST_WAITING = 8  # pictures
CHILD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from mcrise.server.image_decoder import serve; serve()"
)


class UploadRefused(InputError):
    """A picture that is not taken, and the status to say it with."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class ClientHandle:
    """Somebody who waits for a picture, and may leave before it is unpacked."""

    def __init__(self) -> None:
        self.over = False
        self.process: subprocess.Popen[bytes] | None = None  # at work for this one
        self.lock = threading.Lock()

    def begin(self, process: subprocess.Popen[bytes]) -> None:
        with self.lock:
            if self.over:
                raise UploadRefused(408, "Whoever sent the picture has left.")
            self.process = process

    def end(self) -> None:
        with self.lock:
            self.process = None

    def leave(self) -> None:
        with self.lock:
            self.over = True
            if self.process is not None:
                self.process.kill()


class Decoder:
    """The helper process, started when it is needed and again when it has died."""

    def __init__(self, seconds: float = MOST_SECONDS, memory: int = MOST_MEMORY) -> None:
        self.seconds, self.memory = seconds, memory
        self.process: subprocess.Popen[bytes] | None = None
        self.turn = threading.Lock()
        self.places = threading.Semaphore(MOST_WAITING)

    def view(self, content: bytes, geometry: Geometry, visit: ClientHandle | None = None) -> View:
        """What a model is shown of the picture in some bytes."""
        visit = visit or ClientHandle()
        if not self.places.acquire(blocking=False):
            raise UploadRefused(429, "Too many pictures are being unpacked: try again in a moment.")
        try:
            with self.turn:
                return self.unpack(content, geometry, visit)
        finally:
            self.places.release()

    def unpack(self, content: bytes, geometry: Geometry, visit: ClientHandle) -> View:
        if self.process is not None and self.process.poll() is not None:  # ended by others
            self.close()
        process = self.process = self.process or self.start()
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Timer(self.seconds, process.kill)
        visit.begin(process)
        late.start()
        try:
            _send(process.stdin, {**asdict(geometry), "length": len(content)}, content)
            answer = json.loads(process.stdout.readline())
            if "status" in answer:
                raise UploadRefused(answer["status"], answer["reason"])
            pixels = np.frombuffer(process.stdout.read(answer["length"]), np.uint8)
            pixels = pixels.reshape(answer["shape"])
        except (OSError, ValueError):  # it is no more
            self.close()
            raise UploadRefused(413, self.beyond()) from None
        finally:
            late.cancel()
            visit.end()
        rows, cols = answer["original_size"]
        top, left, bottom, right = answer["box"]
        return View(pixels, (rows, cols), (top, left, bottom, right), tuple(answer["notes"]))

    def beyond(self) -> str:
        return (
            f"The picture takes more than {self.seconds:g} seconds or {self.memory // 2**20} MB to "
            "unpack: make it smaller, or save it again as a plain PNG."
        )

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", CHILD, json.dumps(sys.path), str(self.memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C is for the server
        )

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            with contextlib.suppress(OSError):
                self.process.communicate()
            self.process = None


DECODER = Decoder()  # of this process: one picture at a time, whoever asks
atexit.register(DECODER.close)


# ---- in the helper process


def serve() -> None:
    """Unpack picture after picture until nobody is there any more."""
    _hold_memory(int(sys.argv[2]))
    warnings.simplefilter("ignore")
    while line := sys.stdin.buffer.readline():
        asked = json.loads(line)
        content = sys.stdin.buffer.read(asked.pop("length"))
        size = asked.pop("size")
        geometry = Geometry(None if size is None else tuple(size), **asked)
        try:
            view = decode(content, geometry)
        except MemoryError:  # ends it: its memory is in pieces
            return
        except UploadRefused as error:
            _send(sys.stdout.buffer, {"status": error.status, "reason": str(error)})
        except InputError as error:
            _send(sys.stdout.buffer, {"status": 400, "reason": str(error)})
        else:
            about = {
                "shape": view.pixels.shape,
                "original_size": view.original_size,
                "box": view.box,
                "notes": view.notes,
                "length": view.pixels.nbytes,
            }
            _send(sys.stdout.buffer, about, np.ascontiguousarray(view.pixels).tobytes())


def _hold_memory(most: int) -> None:
    """Let allocations fail beyond so many bytes; where the system does not tell how many, not."""
    with contextlib.suppress(ImportError, OSError):
        import resource

        with open("/proc/self/statm") as file:
            now = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (now + most, now + most))


def decode(content: bytes, geometry: Geometry) -> View:
    """Look at the head of a picture, and unpack it if it is one that the page takes."""
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as opened:
            rows, cols = opened.height, opened.width
    except Image.DecompressionBombError:  # Pillow's own limit is above ours
        raise UploadRefused(
            413, f"The picture has more than {MOST_PIXELS:,} pixels: make it smaller."
        ) from None
    except MemoryError:
        raise
    except Exception:  # Pillow's parsers raise many kinds
        raise UploadRefused(
            415, f"The upload is not a picture of a kind read here: {', '.join(FORMATS)}."
        ) from None
    if rows * cols > MOST_PIXELS:
        raise UploadRefused(
            413,
            f"The picture has {rows * cols:,} pixels, more than {MOST_PIXELS:,}: make it smaller.",
        )
    if geometry.size is None and max(rows, cols) > LONGEST_SIDE:
        raise UploadRefused(
            400,
            f"The picture is {rows} x {cols}, but the page works with sides up to {LONGEST_SIDE}: "
            "make it smaller, or serve a model of one size.",
        )
    return geometry.view(content)


def _send(stream: IO[bytes], header: dict[str, Any], content: bytes = b"") -> None:
    stream.write(json.dumps(header).encode() + b"\n")
    stream.write(content)
    stream.flush()
