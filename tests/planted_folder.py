"""Folders of audits with known figures: written as an audit writes them, without any model."""

import io
import json

import numpy as np
from PIL import Image

from mcrise.audits import tables
from mcrise.audits.class_data import RASTER, STORED, ClassData
from mcrise.audits.class_stats import make_stats, write_stats
from mcrise.batch.storage import Storage, parquet
from mcrise.colors import BASICS

FILLS = ("red", "green", "yellow")
ZONES = ("lower right", "rim")
LABELS = ("stop", "yield", "keep left")
CORNER = np.zeros((RASTER, RASTER), bool)  # where something may be planted
CORNER[22:30, 22:30] = True


def planted_looks(target=0, n=24, corner=0.0, fill=2, right=1.0, noise=0.02, seed=0):
    """Images of a class whose score one fill moves in the corner, and all of them in the middle."""
    random = np.random.default_rng([seed, target])
    truth = np.zeros((len(FILLS), RASTER, RASTER))
    truth[:, 12:20, 12:20] = -0.2
    truth[fill, CORNER] += corner
    cells = random.normal(0, noise, (n, len(FILLS), 8, 8))
    maps = (truth + np.kron(cells, np.ones((4, 4)))).astype(np.float32)
    energy = np.square(truth).mean(axis=0) + random.normal(0, 1e-4, (n, RASTER, RASTER))
    common = np.square(truth.mean(axis=0)).mean()
    inside = np.stack([CORNER, zone_rim()])
    wrong = np.arange(n) >= round(right * n)
    return ClassData(
        target=target,
        image=np.arange(n) + 1000 * target,
        names=tuple(f"{LABELS[target]}/{i:03}.png" for i in range(n)),
        group=np.arange(n) + 1000 * target,
        truth=np.full(n, target),
        predicted=np.where(wrong, (target + 1) % 3, target),
        score=np.full(n, 0.9),
        maps=maps,
        errors=np.full(maps.shape, noise, np.float32),
        presence_energy=np.full(n, common) * random.uniform(0.9, 1.1, n),
        color_energy=(np.square(truth).mean() - common) * random.uniform(0.9, 1.1, n),
        zone_energy=np.stack([(energy * zone).mean(axis=(1, 2)) for zone in inside], axis=1),
        zone_effect=np.stack([maps[:, :, zone].mean(axis=2) for zone in inside], axis=1),
        color_area=np.full((n, len(BASICS)), 1 / len(BASICS)),
        color_area_effect=np.zeros((n, len(BASICS), len(FILLS))),
        gray=np.where(np.arange(n) < n // 2, target, (target + 1) % 3),
        hue120=np.full(n, target),
        hue240=np.full(n, target),
        counterfactual_kind=(None,) * n,
        corrected_by=(None,) * n,
        pixels=np.full((n, RASTER, RASTER, 3), 100 + target, np.uint8),
        background_zone=("rim",) * n,
        background_score=np.full((n, len(FILLS) + 2), 0.9),
        background_prediction=np.where(wrong, (target + 1) % 3, target)[:, None].repeat(
            len(FILLS) + 2, 1
        ),
        background_region=np.broadcast_to(zone_rim(), (n, RASTER, RASTER)),
    )


def zone_rim():
    rim = np.ones((RASTER, RASTER), bool)
    rim[4:-4, 4:-4] = False
    return rim


def write_audit(path, classes, labels=LABELS, figures=True, answers=None, **changed):
    """The folder of an audit; `changed` are entries of its settings."""
    folder = Storage(path)
    settings = {"grid": [8, 8], "n_masks": 64, "seed": 0, "raster": RASTER, "fills": "x",
                "zones": [[zone, None, True] for zone in ZONES], **changed}  # fmt: skip
    note = {
        "format": tables.FORMAT,
        "mcrise": "0",
        "data": "planted",
        "model": f"model of {path}",
        "name": path.name,
        "labels": labels and list(labels),
        "kind": "probability",
        "settings": settings,
        "collection": "",
        "images": [name for looks in classes for name in looks.names],
        "fills": list(FILLS),
        "basics": list(BASICS),
        "traits": [["edge", "edge", "outermost edge"]],
        "group": "",
        "chosen": {"mask_prob": settings.pop("mask_prob", 0.2), "sentence": ""},
    }
    (folder / tables.NOTE).write(json.dumps(note).encode())
    for looks in classes:
        place = f"class={looks.target}/part-00000.parquet"
        rows, maps = [], []
        for i in range(len(looks)):
            own = {column.name: getattr(looks, name)[i] for name, column in STORED.items()
                   if column.table == "images" and name != "group"}  # fmt: skip
            rows.append(
                tables.stored_row(
                    {
                        **own,
                        "background_region": np.packbits(looks.background_region[i]),
                        "predicted_label": labels[looks.predicted[i]] if labels else None,
                        "thumbnail": thumbnail(looks.pixels[i]),
                        "runners_up": [-1, -1, -1],
                    }
                )
            )
            maps.append(
                {
                    "image": int(looks.image[i]),
                    "target": looks.target,
                    "values": looks.maps[i].ravel(),
                    "errors": looks.errors[i].ravel(),
                    "ranks": (looks.maps if looks.ranks is None else looks.ranks)[i].ravel(),
                }
            )
        (folder / f"images/{place}").write(parquet(rows, tables.IMAGES))
        (folder / f"maps/{place}").write(parquet(maps, tables.MAPS))
        (folder / f"findings/{place}").write(parquet([], tables.FINDINGS))
    if figures:
        asked = tables.read_asked(folder)
        write_stats(folder, make_stats(asked, tables.read_classes(folder), answers))
    return folder


def thumbnail(pixels):
    out = io.BytesIO()
    Image.fromarray(pixels).resize((48, 48)).save(out, "WEBP")
    return out.getvalue()
