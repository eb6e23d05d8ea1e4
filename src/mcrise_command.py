"""The first step of the command: Ctrl-C before the rest is imported is no traceback either.

Outside the package, since `import mcrise` is what takes the time.
"""

import os
import signal


def stop(number: int, frame: object) -> None:
    os.write(2, b"Stopped.\n")
    os._exit(128 + number)


def main() -> None:
    before = signal.signal(signal.SIGINT, stop)
    from mcrise.cli import main as run

    signal.signal(signal.SIGINT, before)
    run()
