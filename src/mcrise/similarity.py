"""Matching instead of classifying: embedding models, and similarity as a score.

A query is matched with the gallery image whose embedding is nearest. What is explained is the
similarity `exp(-d / d0)` to one gallery image: d is the distance of the painted query to it and
d0 that of the untouched query, so that the score starts at exp(-1) = 0.37 and no outlier with a
large distance dominates. Paper: appendix D.
"""

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Unpack, get_args

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ._util.array_eq import ArrayEq
from ._util.files import outside_results
from .errors import InputError, ModelError
from .explanation_file import write_arrays
from .models import ModelSettings, load_model
from .models.model import Model
from .models.provenance import Origin

Distance = Literal["euclidean", "cosine"]
DISTANCES: tuple[str, ...] = get_args(Distance)
MASK_PROB = 0.1  # as in the paper: with half of the query painted, no person is left to match
BATCH = 32


@dataclass(frozen=True, eq=False)
class Gallery(ArrayEq):
    """The images of a folder that could be read, and their embeddings."""

    paths: tuple[Path, ...]
    digests: tuple[str, ...]  # of the files' bytes
    embeddings: NDArray[np.float32]  # (n, D)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        n, size = self.embeddings.shape
        return f"<Gallery: {n:,} images, embeddings of {size:,} numbers>"

    def index(self, path: Path) -> int:
        """Where an image of the gallery stands, by its path, its name or its content."""
        if path in self.paths:
            return self.paths.index(path)
        named = [n for n, own in enumerate(self.paths) if own.name == str(path)]
        if len(named) > 1:
            first, second = (self.paths[n] for n in named[:2])
            others = f"{first}, {second} and others" if named[2:] else f"{first} and {second}"
            raise InputError(
                f"{path} is the name of {len(named)} images of the gallery ({others}): give the "
                "path of one of them."
            )
        if named:
            return named[0]
        if path.is_file() and (digest := digest_of(path)) in self.digests:
            return self.digests.index(digest)
        raise InputError(
            f"{path} is not an image of the gallery: give one of its {len(self.paths)} files."
        )


@dataclass(frozen=True)
class Match:
    """A query and the gallery image it is compared with."""

    model: Model  # images -> similarity (N, 1), ready to be explained
    path: Path
    distance: float
    rank: int  # 1: the nearest in the gallery

    def __repr__(self) -> str:
        return f"<Match: {self.path}, rank {self.rank}, distance {self.distance:.3g}>"


def open_gallery(
    folder: Path | str,
    model: Any,
    cache: Path | str | None = None,
    **settings: Unpack[ModelSettings],
) -> Gallery:
    """Embed the images of a folder; with the folder `cache`, those seen before are not asked again.

    Pictures that mcrise has drawn there, in folders of runs, studies and audits, are left out.
    `model` and `settings` are what `load_model` takes, from images (N, H, W, 3) to embeddings
    (N, D).
    """
    folder, embed = Path(folder), embedding(model, settings)
    if not folder.is_dir():
        raise InputError(f"The gallery {folder} is not a folder: give one that holds images.")
    known = {ext for ext, kind in Image.registered_extensions().items() if kind in Image.OPEN}
    inside = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*")}
    given = sorted(inside[name] for name in outside_results(inside))
    files = [file for file in given if file.suffix.lower() in known]
    digests = {file: digest_of(file) for file in files}
    if ":" in embed.origin.name or not embed.origin.digest:
        cache = None  # weights that nothing has looked at may be others by now
    store = None if cache is None else Path(cache) / f"{sha256(embed.identity.encode())[:16]}.npz"
    known_embeddings = {} if store is None else read_cache(store)
    fresh: dict[Path, NDArray[Any]] = {}
    unreadable = []
    for file in files:
        if digests[file] not in known_embeddings:
            try:
                fresh[file] = embed.view(file).pixels
            except InputError:
                unreadable.append(file)
    for start in range(0, len(fresh), BATCH):
        some = list(fresh)[start : start + BATCH]
        answers = embeddings_of(embed, [fresh[file] for file in some])
        known_embeddings |= {digests[f]: a for f, a in zip(some, answers, strict=True)}
    if store is not None and fresh:
        write_cache(store, known_embeddings)
    paths = tuple(file for file in files if file not in unreadable)
    if not paths:
        raise InputError(f"The gallery {folder} holds no image that can be read: add some.")
    notes = tuple(f"{file} is not an image and was left out of the gallery" for file in unreadable)
    kept = tuple(digests[file] for file in paths)
    return Gallery(paths, kept, np.stack([known_embeddings[d] for d in kept]), notes)


def match(
    query: Path | str,
    gallery: Gallery,
    model: Any,
    distance: Distance | str = "euclidean",
    against: Path | str | None = None,
    **settings: Unpack[ModelSettings],
) -> Match:
    """Find what the query is nearest to, or compare it with `against`, an image of the gallery.

    `model` and `settings` are those that the gallery was opened with. The query's own file,
    recognized by its content, is never a match. The `model` of the match is what to explain.
    """
    query, embed = Path(query), embedding(model, settings)
    if distance not in DISTANCES:
        raise InputError(
            f"The distance is {distance!r}, but it must be one of {', '.join(DISTANCES)}."
        )
    own = embeddings_of(embed, [embed.view(query).pixels])[0]
    distances = distances_to(gallery.embeddings, own, distance)
    digest = digest_of(query)
    others = np.array([other != digest for other in gallery.digests])
    if not others.any():
        raise InputError("The gallery holds nothing but the query itself: add other images.")
    order = [int(i) for i in np.argsort(distances, kind="stable") if others[i]]
    chosen = order[0] if against is None else gallery.index(Path(against))
    path, d0 = gallery.paths[chosen], float(distances[chosen])
    if d0 <= 1e-6 * max(float(np.linalg.norm(own)), 1.0):
        raise InputError(
            f"The query and {path} have the same embedding (distance 0), so similarity has no "
            "scale: remove this copy of the query from the gallery, or give another --against."
        )
    model = similar_to(embed, gallery.embeddings[chosen], d0, distance, path.name)
    to = f"{distance} to {gallery.digests[chosen][:16]}"
    own = embed.origin
    digest = sha256(f"{own.digest} {to}".encode()) if own.digest else ""
    model = replace(
        model,
        identity=f"{embed.identity} {to}",
        origin=Origin(f"{own.name} {to}", digest, own.settings) if digest else Origin(),
    )
    return Match(model, path, d0, order.index(chosen) + 1 if chosen in order else 1)


def embedding(model: Any, settings: ModelSettings) -> Model:
    """A model whose scores may be anything, in any form that `load_model` takes."""
    if isinstance(model, Model) and model.kind == "any" and not settings:
        return model
    settings = {**settings, "score_kind": "any"}
    return load_model(model, **settings)


def similar_to(
    embed: Model, embedding: NDArray[np.float32], d0: float, distance: str, name: str
) -> Model:
    """The model whose score is the similarity to one embedding."""

    def predict(batch: NDArray[Any]) -> NDArray[Any]:
        return np.exp(-distances_to(embed.scores(batch), embedding, distance) / d0)[:, None]

    label = f"similarity to {name}"
    return replace(embed, predict=predict, kind="similarity", softmax=False, labels=(label,))


def embeddings_of(embed: Model, images: list[NDArray[Any]]) -> NDArray[np.float32]:
    """(n, D)."""
    if len({image.shape for image in images}) > 1:
        raise InputError(
            "The images of the gallery have different sizes and the model takes any: give one, as "
            "in size=(224, 224)."
        )
    try:
        return embed(np.stack(images))
    except ModelError as error:
        raise ModelError(f"Failed at an image to match: {error}.") from error


def distances_to(
    embeddings: NDArray[np.float32], one: NDArray[np.float32], distance: str
) -> NDArray[np.float64]:
    """(n,)."""
    many, single = embeddings.astype(np.float64), one.astype(np.float64)
    if distance == "euclidean":
        return np.asarray(np.linalg.norm(many - single, axis=1))
    norms = np.linalg.norm(many, axis=1) * np.linalg.norm(single)
    return np.asarray(1 - many @ single / np.maximum(norms, 1e-12))


# ---- the cache: per model, embeddings by the content of their file


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mcrise"


def read_cache(store: Path) -> dict[str, NDArray[np.float32]]:
    try:
        with np.load(store, allow_pickle=False) as arrays:
            return dict(zip(arrays["digests"].tolist(), arrays["embeddings"], strict=True))
    except Exception:  # absent, damaged or foreign: it is only a cache
        return {}


def write_cache(store: Path, embeddings: dict[str, NDArray[np.float32]]) -> None:
    arrays = {"digests": np.array([*embeddings]), "embeddings": np.stack([*embeddings.values()])}
    with suppress(InputError):  # nowhere to keep it: the next run embeds the gallery again
        write_arrays(store, arrays)


def digest_of(path: Path) -> str:
    try:
        return sha256(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): give an image.") from None


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
