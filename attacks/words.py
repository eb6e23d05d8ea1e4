"""Damaged words: settings, labels, tables of images, rules, stored orders, fills and status."""

import copy
import json
import random
import sys
import tempfile
from pathlib import Path

import numpy as np

import mcrise
from mcrise.audits.class_data import AuditInfo
from mcrise.audits.rule_check import decide
from mcrise.audits.rules import read_rules, refuse_unknown
from mcrise.audits.stats import Estimate
from mcrise.batch.datasets import open_dataset, truth_of
from mcrise.batch.folder import read_status
from mcrise.batch.storage import Storage
from mcrise.images import unit_float
from mcrise.models.settings import read_labels, read_settings
from mcrise.server.schemas import parse_request
from records import ODD, places

TOML = (
    b'[input]\nsize = [48, 48]\nshort_side = 64\nfilter = "bicubic"\nscale = 255\n'
    b"mean = [0.485, 0.456, 0.406]\nstd = 0.2\nlayout = \"NCHW\"\nchannels = \"bgr\"\n"
    b'[output]\nname = "scores"\nscore_kind = "any"\nsoftmax = true\nlabels = ["a", "b"]\n'
)  # fmt: skip
LABELS = "stop\nyield\nTempo 50\nä ö\n\n".encode()
CSV = b"path,label\na.png,stop\nb.png,1\n"
GTSRB = b"Filename;Width;Height;ClassId\n00000.ppm;53;54;16\n00001.ppm;42;45;1\n"
FILLS = b"red,#0f0,rgb(1,2,3),blur:8,gray,hue:90,noise:3,mean,auto:3,cube8"
BOXES = b"path,label,group,x1,y1,x2,y2,mask\na.png,stop,t1,1,2,3,4,b.png\nb.png,1,,,,,,\n"
RULES = (
    b'against = "../before"\n[[rule]]\nname = "the corner"\nclass = ["stop", 1]\n'
    b'measure = "zone_effect"\nzone = "rim"\nfill = "red"\nat_most = 0.05\nat_least = -1\n'
    b'change = true\n[[rule]]\nmeasure = "accuracy"\nclass = "all"\nat_least = 0.9\n'
)
ORDER = {"model": "m", "name": "a.png", "fills": "red,blur:4", "grid": [4, 6], "mask_prob": 0.3,
         "seed": 3, "n_masks": 64, "tolerance": 0.5, "max_masks": 640, "target": "1",
         "batch_size": 16}  # fmt: skip
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


def settings(content, folder):
    model = folder / "model.onnx"
    model.with_suffix(".toml").write_bytes(content)
    found = read_settings(model, {})
    found.geometry(None)
    found.affine()
    json.dumps(found.to_json())


def labels(content, folder):
    (folder / "labels.txt").write_bytes(content)
    for label in read_labels(folder / "labels.txt"):
        label.encode()


def table(content, folder):
    for name in ("a.png", "b.png"):
        (folder / name).touch()
    (folder / "images.csv").write_bytes(content)
    for example in open_dataset(folder / "images.csv"):
        truth_of(example, ["stop", "yield"])


def rules(content, folder):
    (folder / "rules.toml").write_bytes(content)
    listed, _ = read_rules(folder / "rules.toml")
    asked = AuditInfo(fills=("red", "blue"), labels=("stop", "yield"), zones=("rim", "top"))
    for rule in listed:
        refuse_unknown(rule, asked)
        state, more = decide(rule, Estimate(0.1, 0.05, 0.2, 20), 3)
        json.dumps([rule.title, rule.allowed, state, more])


def gtsrb(content, folder):
    (folder / "Final_Test" / "Images").mkdir(parents=True)
    (folder / "GT-final_test.csv").write_bytes(content)
    for example in open_dataset(folder):
        truth_of(example, None)


def fills(content, folder):
    image = np.zeros((16, 16, 3), np.uint8)
    for fill in mcrise.parse_fills(content.decode(errors="replace"), image):
        fill.name.encode()
        fill.render(unit_float(image))


def order(content, folder):
    told = json.loads(content)
    parse_request(told)


def status(content, folder):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "status.json").write_bytes(content)
        read_status(Storage(folder))


KINDS = (
    (settings, TOML), (labels, LABELS), (table, CSV), (table, BOXES), (gtsrb, GTSRB),
    (rules, RULES), (fills, FILLS),
)  # fmt: skip
STATUS = {"images": 3, "done": 1, "failed": 0, "images_per_second": 0.1, "seconds_left": 2.0,
          "written": 1e9}  # fmt: skip


def variant(number):
    chance = random.Random(number)
    if number < 0:
        return settings, TOML
    if chance.random() < 0.3:
        use_it, told = chance.choice([(order, ORDER), (status, STATUS)])
        told = copy.deepcopy(told)
        for _ in range(chance.choice([1, 1, 2])):
            place, key = chance.choice(list(places(told)))
            if chance.random() < 0.2:
                del place[key]
            else:
                place[key] = copy.deepcopy(chance.choice(ODD))
        return use_it, json.dumps(told).encode()
    use_it, content = chance.choice(KINDS)
    return use_it, damaged(chance, content)


def damaged(chance, content):
    out = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 4])):
        at = chance.randrange(len(out) + 1)
        end = min(len(out), at + chance.choice([0, 1, 1, 8]))
        words = [b"", b"\x00", b"\xff\xfe", b"9" * 30, b"[" * 3000, b'"', b"\r", b";", b",", b":",
                 b"nan", b"-1", b"1e999", b"true", "ä".encode(), b"x" * 200_000, b"\n" * 50,
                 bytes([chance.randrange(256)]), b"{}", b"=", b"picture:/etc/passwd",
                 b"0x" + b"f" * 5000,
                 b"inf", b"1979-05-27", b"[[rule]]\n"]  # fmt: skip
        out[at:end] = chance.choice(words)
    return bytes(out)


def use(given):
    use_it, content = given
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        use_it(content, Path(folder))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    from fuzzing import main

    main("words")
