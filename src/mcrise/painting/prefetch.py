"""Painting ahead: the next chunk is painted while the model is asked about this one."""

from concurrent.futures import Future
from typing import Any

from numpy.typing import NDArray

from .._util.threads import n_cores, shared_pool
from ..masks import CHUNK, Plan, draw
from .canvas import Canvas, paint

MOST_SPARE = 2**28  # bytes of a second buffer; of larger images one is enough


class Painter:
    """Two buffers for whole chunks: one that the model reads, one that is painted meanwhile.

    Where a chunk does not fit into the buffer, or there is one core, all is left to the caller.
    """

    def __init__(self, plan: Plan, canvas: Canvas, buffer: NDArray[Any]) -> None:
        self.plan, self.canvas, self.buffer = plan, canvas, buffer
        self.ahead = len(buffer) == CHUNK and buffer.nbytes <= MOST_SPARE and n_cores() > 1
        self.spare = canvas.batch(CHUNK) if self.ahead else buffer
        self.chunk: int | None = None  # that is being painted into the spare one
        self.job: Future[NDArray[Any]] | None = None

    def turn_to(self, chunk: int, following: int | None) -> bool:
        """Have a chunk in `buffer` and begin the following one; False where `buffer` is empty."""
        if not self.ahead:
            return False
        if self.job is not None:
            self.job.result()
        if self.chunk == chunk:
            self.buffer, self.spare = self.spare, self.buffer
        else:
            paint(self.plan, self.canvas, draw(self.plan, chunk), self.buffer)
        self.chunk, self.job = following, None
        if following is not None:
            self.job = shared_pool().submit(self.paint_spare, self.spare, following)
        return True

    def paint_spare(self, spare: NDArray[Any], chunk: int) -> NDArray[Any]:
        """In one thread: the others belong to the model."""
        return paint(self.plan, self.canvas, draw(self.plan, chunk), spare, n_threads=1)
