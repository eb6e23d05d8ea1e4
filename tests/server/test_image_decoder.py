"""Pictures of strangers are unpacked in a process that has so much time and memory, and no more."""

import io
import threading
import time

import numpy as np
import pytest
from PIL import Image

from attacking import many_scans
from mcrise.images import Geometry
from mcrise.server.image_decoder import DECODER, ClientHandle, Decoder, UploadRefused
from planted import photo

SLOW = many_scans(20_000, 64)


def packed(pixels, kind="PNG", **options):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind, **options)
    return out.getvalue()


@pytest.fixture
def decoder():
    made = []

    def make(**limits):
        made.append(Decoder(**limits))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("geometry", [Geometry(), Geometry((24, 24)), Geometry((16, 24), 48)])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF"])
def test_what_comes_back_is_what_the_command_would_be_shown(kind, geometry):
    content = packed(photo(48, 64), kind)
    found, expected = DECODER.view(content, geometry), geometry.view(content)
    np.testing.assert_array_equal(found.pixels, expected.pixels)
    assert (found.original_size, found.box) == (expected.original_size, expected.box)
    assert found.notes == expected.notes


def test_what_takes_too_long_is_ended_and_the_next_picture_is_unpacked(decoder):
    limited = decoder(seconds=60)
    limited.view(packed(photo(24, 32)), Geometry())  # starts it, which takes its time too
    limited.seconds = 0.02  # it takes ten times as long on a machine that has nothing else to do
    with pytest.raises(UploadRefused, match=r"more than 0\.02 seconds") as refused:
        limited.view(SLOW, Geometry())
    assert refused.value.status == 413
    limited.seconds = 60
    assert limited.view(packed(photo(24, 32)), Geometry()).pixels.shape == (24, 32, 3)


def test_a_helper_that_somebody_ended_is_replaced(decoder):
    usual = decoder(seconds=60)
    usual.view(packed(photo(24, 32)), Geometry())
    usual.process.kill()
    usual.process.wait()
    assert usual.view(packed(photo(24, 32)), Geometry()).pixels.shape == (24, 32, 3)


def test_what_takes_too_much_memory_is_ended(decoder):
    limited = decoder(seconds=60, memory=100 * 2**20)
    with pytest.raises(UploadRefused, match="100 MB"):
        limited.view(packed(np.zeros((6000, 6000, 3), np.uint8)), Geometry((24, 24)))
    assert limited.view(packed(photo(24, 32)), Geometry()).pixels.shape == (24, 32, 3)


def test_nothing_is_unpacked_for_somebody_who_has_left(decoder):
    patient, visit = decoder(seconds=60), ClientHandle()
    patient.view(packed(photo(24, 32)), Geometry())
    failed = []

    def ask():
        try:
            patient.view(SLOW, Geometry(), visit)
        except UploadRefused as error:
            failed.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    while visit.process is None:
        time.sleep(0.01)
    visit.leave()
    thread.join(10)
    assert len(failed) == 1
    with pytest.raises(UploadRefused, match="left"):
        patient.view(packed(photo(24, 32)), Geometry(), visit)


def test_those_who_wait_are_not_too_many(decoder):
    full = decoder()
    while full.places.acquire(blocking=False):
        pass
    with pytest.raises(UploadRefused, match="try again") as refused:
        full.view(packed(photo(24, 32)), Geometry())
    assert refused.value.status == 429
