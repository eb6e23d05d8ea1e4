"""Damaged pictures: bytes changed, cut and spliced, heads that lie, and files that unpack to much.

They are opened as the command does, and as the page's helper process does before it takes one.
"""

import functools
import io
import random
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

from attacking import many_scans
from mcrise.errors import InputError
from mcrise.images import Geometry
from mcrise.server.image_decoder import decode

KINDS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "TGA", "ICO", "PCX", "SGI", "JPEG2000")
MODES = ("RGB", "RGBA", "L", "P", "1", "I;16", "LA", "CMYK", "F")


@functools.cache
def seeds():
    found = []
    for kind in KINDS:
        for mode in MODES:
            for n, size in enumerate([(24, 18), (97, 61)]):
                pixels = np.random.default_rng(n).integers(0, 256, (*size, 3), np.uint8)
                try:
                    picture = Image.fromarray(pixels).convert("L" if mode == "I;16" else mode)
                    picture = picture.convert(mode) if mode == "I;16" else picture
                    out = io.BytesIO()
                    more = {"progressive": True} if kind == "JPEG" and n else {}
                    picture.save(out, kind, **more)
                except (OSError, ValueError, KeyError, SystemError):
                    continue  # that kind has no such mode
                found.append(out.getvalue())
    return found


def variant(number):
    chance = random.Random(number)
    content = chance.choice(seeds())
    if number < 0:
        return content
    damage = chance.choice([flip, flip, flip, cut, splice, lie, swell])
    return damage(chance, content)


def flip(chance, content):
    out = bytearray(content)
    near = chance.choice([64, 512, len(out)])  # heads say more than pixels do
    for _ in range(chance.choice([1, 1, 2, 4, 16])):
        out[chance.randrange(min(near, len(out)))] = chance.randrange(256)
    return bytes(out)


def cut(chance, content):
    at = chance.randrange(len(content))
    return chance.choice([content[:at], content[:at] + bytes(64), content[at:]])


def splice(chance, content):
    other = chance.choice(seeds())
    return content[: chance.randrange(len(content))] + other[chance.randrange(len(other)) :]


def lie(chance, content):
    """A PNG or JPEG that says it is of another size."""
    sides = [chance.choice([0, 1, 7, 8, 1000, 9999, 40_000, 65_500]) for _ in range(2)]
    if content.startswith(b"\x89PNG"):
        head = struct.pack(">II", *sides) + content[24:29]
        check = struct.pack(">I", zlib.crc32(b"IHDR" + head))
        return content[:16] + head + check + content[33:]
    at = max(content.find(b"\xff\xc0"), content.find(b"\xff\xc2"))
    if at < 0:
        return flip(chance, content)
    return content[: at + 5] + struct.pack(">HH", *sides) + content[at + 9 :]


def swell(chance, content):
    """A small file that is large or slow to unpack."""
    if chance.random() < 0.5:
        return many_scans(chance.choice([10, 50, 200]), side=chance.choice([64, 256]))
    side = chance.choice([500, 1500, 3000])
    out = io.BytesIO()
    mode = chance.choice(["1", "L", "P", "RGB", "RGBA", "LA"])
    Image.new(mode, (side, side)).save(out, "PNG", compress_level=1)
    return out.getvalue()


def use(content):
    refused = []
    for geometry in (Geometry(), Geometry((48, 48))):
        for look in (decode, lambda c, g: g.view(c)):
            try:
                view = look(content, geometry)
            except InputError as error:
                refused.append(error)
                continue
            assert view.pixels.dtype == np.uint8
            assert view.pixels.shape == (*(geometry.size or view.original_size), 3)
    if len(refused) == 4:
        raise refused[0]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    from fuzzing import main

    main("pictures")
