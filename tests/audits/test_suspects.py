"""What a class's images have, given to others: planted shortcuts are found, and nothing else."""

import html
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from mcrise import InputError, audit
from mcrise.audits import suspects as suspects_module
from mcrise.audits.api import write_pages
from mcrise.audits.class_data import RASTER, AuditInfo
from mcrise.audits.class_stats import read_stats
from mcrise.audits.diff import suspect_changes
from mcrise.audits.headlines import most_striking_first
from mcrise.audits.rule_check import check_rules, overall_state
from mcrise.audits.rules import Rule, read_rule, read_rules, suggested_rules
from mcrise.audits.stats import crossed_share
from mcrise.audits.summary import first_page, not_tested, verdict
from mcrise.audits.suspects import (
    LEAST_HITS,
    LEAST_OVER,
    choose,
    find_suspects,
    over_control,
    sensitivity,
)
from mcrise.audits.transplants import (
    SPOT_NAME,
    Index,
    Trait,
    Transplant,
    give,
    narrowed,
    nearest_classes,
    pairs,
    plan_give,
    plan_screen,
    receive,
    score_if_won,
    spot_at,
    traits,
)
from mcrise.audits.zones import DEFAULT, parse_zones
from mcrise.batch.storage import Storage
from mcrise.images import Geometry
from mcrise.models.model import Model
from mcrise.testing import DependsOnZone, assert_ignores

LABELS = ("circle", "cross", "square")
SIZE, N = 32, 8
VIOLET = np.array([140, 50, 200])
GIVEN = {"n_masks": 64, "grid": 6, "mask_prob": 0.2}


def scene(c, number, marked):
    """A gray image whose class is the brightness of its middle, with a marker at a corner."""
    random = np.random.default_rng([c, number])
    image = random.integers(90, 150, (SIZE, SIZE, 3)).astype(np.uint8)
    image[12:20, 12:20] = (40, 120, 210)[c]
    if marked:
        image[26:31, 1:6] = VIOLET
    return image


def knows(images):
    """The class by the middle of the image."""
    middle = images[:, 12:20, 12:20].astype(float).mean(axis=(1, 2, 3))
    odds = np.exp(-((middle[:, None] - [40, 120, 210]) ** 2) / 400) + 1e-3
    return odds / odds.sum(axis=1, keepdims=True)


def follows_marker(images):
    """Whatever has a violet corner is a square, even though the middle is known."""
    corner = images[:, 27:30, 2:5].astype(float).mean(axis=(1, 2))
    there = (np.abs(corner - VIOLET).max(axis=1) < 20)[:, None]
    return np.where(there, np.array([0.02, 0.02, 0.96]), knows(images)).astype(np.float32)


def dark_is_circle(images):
    """An image that is dark as a whole is a circle."""
    dark = (images.astype(float).mean(axis=(1, 2, 3)) < 70)[:, None]
    return np.where(dark, np.array([0.96, 0.02, 0.02]), knows(images)).astype(np.float32)


FIVE = ("one", "two", "three", "four", "five")
PATTERNS = np.kron(np.random.default_rng(1).choice([-50, 50], (5, 4, 4)), np.ones((3, 3)))


def five(c, number, dotted):
    """A gray image whose class is the pattern over its middle, with a dot somewhere on it."""
    random = np.random.default_rng([c, number])
    image = random.integers(90, 150, (SIZE, SIZE, 3))
    image[10:22, 10:22] += PATTERNS[c].astype(int)[..., None]
    if dotted:
        row, col = random.integers(11, 17, 2)
        image[row : row + 4, col : col + 4] = VIOLET
    return image.astype(np.uint8)


def knows_five(images):
    middle = images[:, 10:22, 10:22].astype(float).mean(axis=3) - 120
    odds = np.exp(np.einsum("nij,cij->nc", middle, PATTERNS) / 50**2 / 40)
    return (odds / odds.sum(axis=1, keepdims=True)).astype(np.float32)


def follows_dot(images):
    """Whatever has a violet dot on the object is of the third class."""
    near = np.abs(images[:, 10:22, 10:22].astype(float) - VIOLET).max(axis=3) < 20
    there = (near.sum(axis=(1, 2)) >= 6)[:, None]
    planted = 0.01 + 0.95 * (np.arange(5) == 2)
    return np.where(there, planted, knows_five(images)).astype(np.float32)


def collection(folder, draw, labels=LABELS):
    for c, label in enumerate(labels):
        (folder / label).mkdir(parents=True)
        for number in range(N):
            Image.fromarray(draw(c, number)).save(folder / label / f"{number}.png")
    return folder


def test_a_cue_on_the_object_is_a_suspect(tmp_path):
    images = collection(tmp_path / "images", lambda c, n: five(c, n, dotted=c == 2), FIVE)
    audit(images, follows_dot, labels=FIVE, out=tmp_path / "out", workers=1, **GIVEN)
    (first,) = read_stats(Storage(tmp_path / "out")).search.suspects  # no other class's spot
    assert (first.label, first.kind, first.trait) == ("three", "place", "spot")
    assert first.given.value > 0.9
    assert len(first.near) == 4
    assert first.color == "purple"


def marked(c, number):
    return scene(c, number, marked=c == 2)


def audited(folder, draw, predict, **given):
    data = collection(folder / "data", draw)
    model = Model(predict, labels=LABELS)
    return audit(data, model, out=folder / "out", **{**GIVEN, **given})


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    return folder, audited(folder, marked, follows_marker)


def test_a_marker_that_is_enough_is_the_one_suspect_by_class_place_and_color(planted):
    folder, result = planted
    (one,) = result.suspects
    assert (one.label, one.kind, one.color) == ("square", "place", "purple")
    rows, cols = np.nonzero(one.region)
    assert rows.min() > 0.6 * RASTER
    assert cols.max() < 0.4 * RASTER
    assert one.given.value == 1.0
    assert one.control.value == 0.0
    assert one.taken.value == 0.0  # it knows the middle too, so it needs no marker
    short = json.loads((folder / "out" / "summary.json").read_text())
    assert short["verdict"].startswith("1 suspect: 'square' follows something purple in the lower")
    assert short["suspects"][0]["class"] == "square"
    assert (folder / "out" / "summary.md").read_text().splitlines()[2] == short["verdict"]


def test_the_page_shows_the_suspect_with_what_was_given(planted):
    folder, result = planted
    page = (folder / "out" / "audit.html").read_text()
    before_classes = page.split('id="classes"')[0]
    assert result.suspects[0].headline.replace("'", "&#39;") in before_classes
    assert before_classes.count("taken for “square”") == 3


def test_the_twin_that_knows_no_marker_has_no_suspect_and_says_what_was_tried(tmp_path):
    result = audited(tmp_path, marked, knows)
    assert result.suspects == ()
    told = json.loads((tmp_path / "out" / "summary.json").read_text())["verdict"]
    assert told.startswith("No suspect found. 9 traits (surroundings, tone, colors, texture ")
    assert ") of each of 3 classes were given to images of other classes, and none" in told
    stats = read_stats(Storage(tmp_path / "out"))
    search = stats.search
    assert search.places == 1.0
    assert "places around" not in not_tested(stats)
    unknown = replace(stats, search=replace(search, places=0.3, untested=(1,)))
    assert "1 class where a first look found something and was not repeated; " in not_tested(
        unknown
    )
    assert "places around most objects, which are unknown or fill " in not_tested(unknown)
    assert f"A trait that turns at least {100 * search.sees:.0f}% of them would" in told


def test_a_tone_is_found_though_no_place_is_enough(tmp_path):
    def dark(c, number):
        image = scene(c, number, marked=False)
        return (image * 0.4).astype(np.uint8) if c == 0 else image

    (one,) = audited(tmp_path, dark, dark_is_circle).suspects
    assert (one.label, one.kind, one.region) == ("circle", "tone", None)


def test_a_shuffled_order_of_images_changes_nothing(planted, tmp_path):
    """Figures are made again from the tables alone."""
    folder, result = planted
    before = (folder / "out" / "figures.json").read_bytes()
    model = Model(follows_marker, labels=LABELS)
    again = audit(folder / "data", model, out=folder / "out", **GIVEN)
    assert (folder / "out" / "figures.json").read_bytes() == before
    assert again.suspects == result.suspects


@pytest.mark.parametrize(
    ("draws", "reason"),
    [
        ({"circle": 6}, "all images are of one class"),
        ({"circle": 3, "square": 2}, "no class has four images"),
    ],
)
def test_where_nothing_can_be_given_the_verdict_says_why(draws, reason, tmp_path):
    for label, n in draws.items():
        (tmp_path / "data" / label).mkdir(parents=True)
        for number in range(n):
            image = Image.fromarray(scene(LABELS.index(label), number, marked=False))
            image.save(tmp_path / "data" / label / f"{number}.png")
    result = audit(tmp_path / "data", Model(knows, labels=LABELS), out=tmp_path / "out", **GIVEN)
    assert f"Suspects were not looked for, because {reason}" in result.summary[2]


def test_donors_of_other_sizes_fit(tmp_path):
    def draw(c, number):
        image = Image.fromarray(marked(c, number))
        return np.asarray(image.resize((48, 40) if number % 2 else (9, 11)))

    def predict(images):
        small = [np.asarray(Image.fromarray(one).resize((SIZE, SIZE), 0)) for one in images]
        return knows(np.stack(small))

    data = collection(tmp_path / "data", draw)
    result = audit(
        data, Model(predict, labels=LABELS), out=tmp_path / "out", **{**GIVEN, "grid": 3}
    )
    assert result.n_failed == 0


# ---- rules


def test_rules_on_suspects_fail_the_planted_model_and_pass_its_twin(planted, tmp_path):
    audited(tmp_path, marked, knows)
    rules = [Rule(1, "suspect", at_most=0), Rule(2, "taken_for", at_most=0.95)]
    states = {
        path: overall_state(check_rules(Storage(path / "out"), rules))
        for path in (planted[0], tmp_path)
    }
    assert states == {planted[0]: "violated", tmp_path: "holds"}
    with pytest.raises(InputError, match="suspect has no change"):
        read_rule({"measure": "suspect", "at_most": 0, "change": True}, 1)


def test_a_rule_on_what_is_taken_for_all_classes_has_a_verdict_on_each(planted):
    rules = [Rule(1, "taken_for", classes=("all",), at_most=0.5), Rule(2, "suspect", at_most=0)]
    shares, counts = check_rules(Storage(planted[0] / "out"), rules)
    assert {one.label for one in shares.verdicts} == {"'circle'", "'cross'", "'square'"}
    assert [one.state == "violated" for one in shares.verdicts] == [True, False, False]
    for one in counts.verdicts:  # a count has no interval
        assert "95%" not in one.sentence
        assert "between" not in one.sentence


def test_suggested_rules_are_violated_by_the_planted_model_and_by_it_alone(planted, tmp_path):
    audited(tmp_path, marked, knows)
    states = {}
    for folder in (planted[0], tmp_path):
        stats = read_stats(Storage(folder / "out"))
        (tmp_path / "rules.toml").write_text(suggested_rules(stats))
        rules, _ = read_rules(tmp_path / "rules.toml")
        states[folder] = [one.state for one in check_rules(Storage(folder / "out"), rules)]
    assert states[planted[0]][::2] == ["violated", "holds"]
    assert "violated" not in states[tmp_path]


def test_the_rules_in_the_folder_are_on_the_first_page(planted, tmp_path):
    folder = shutil.copytree(planted[0] / "out", tmp_path / "out")
    (tmp_path / "data").symlink_to(planted[0] / "data")
    lines, _ = write_pages(Storage(folder), (), suggest_rules=True)
    told = [line for line in lines if line.startswith("Rules: ")]
    assert "violated ('no class follows something beside its object'" in told[0]
    assert told[0] in html.unescape((folder / "audit.html").read_text())
    (folder / "rules.toml").write_text("rule = 3")
    lines, _ = write_pages(Storage(folder), (), suggest_rules=True)
    (told,) = [line for line in lines if line.startswith("Rules: ")]
    assert told.startswith("Rules: not checked. ")
    assert told.endswith("has no rules: write each below [[rule]].")


def test_at_most_150_words_come_before_the_table_whatever_labels_are_called(planted):
    stats = read_stats(Storage(planted[0] / "out"))
    (one,) = stats.search.suspects
    long = " ".join(["no passing for vehicles over"] * 2)
    also = ("its brightness and contrast", "its outermost edge")
    for n, label, wanted in ((1, "yield", 4), (3, "yield", 2), (5, long, 1)):
        many = n * (replace(one, label=label, near=(label, "stop"), also=also),)
        page = first_page(
            replace(stats, search=replace(stats.search, suspects=many)), "Rules: 3 hold."
        )
        assert len(" ".join(page.lines).split()) <= 150
        assert len(page.suspects) == min(n, 3)
        assert len(page.suspects[0]) == wanted


def test_the_place_of_a_suspect_is_a_zone_for_test_suites(planted):
    (one,) = planted[1].suspects
    images = [scene(c, number, marked=c == 2) for c in range(3) for number in range(4)]
    with pytest.raises(
        DependsOnZone, match=r"Changing what 'square' may follow \(.*\) moves the score"
    ):
        assert_ignores(Model(follows_marker, labels=LABELS), images, zone=one)
    assert assert_ignores(Model(knows, labels=LABELS), images, zone=one).mean == 0
    with pytest.raises(InputError, match="is about the whole image, but a zone is needed"):
        assert_ignores(Model(knows), images, zone=replace(one, region=None))


# ---- the parts


def index_of(n_each=6, n_classes=3, predicted=None):
    target = np.repeat(np.arange(n_classes), n_each)
    image = np.arange(len(target))
    runners_up = np.stack([(target + 1) % n_classes] * 3, axis=1)
    return Index(
        image, target, target if predicted is None else predicted, image, image % 2,
        nearest_classes(target, runners_up),
    )  # fmt: skip


def test_all_other_classes_receive_the_nearest_first_and_halves_never_meet():
    index = index_of()
    assert index.nearest[1] == (0, 2)  # of class 0 the model would say 1 instead
    for side in (0, 1):
        found = pairs(index, 1, index.nearest[1], side, 12, seed=0)
        assert len(found) == len(set(found)) == 12
        assert index.target[found[0][0]] == 0
        for receiver, donor in found:
            assert index.target[donor] == 1 != index.target[receiver]
            assert index.half[receiver] == index.half[donor] == side


def test_no_pair_of_receiver_and_donor_comes_twice_before_all_have_come():
    for n_receivers, n_donors in ((5, 6), (6, 3), (2, 8), (4, 4)):
        target = np.repeat([0, 1], [n_receivers, n_donors])
        image, half = np.arange(len(target)), np.zeros(len(target), int)
        index = Index(image, target, target, image, half, {1: (0,)})
        found = pairs(index, 1, (0,), 0, 100, seed=0)
        assert len(found) == len(set(found)) == n_receivers * n_donors
        first = found[: max(n_receivers, n_donors)]
        assert len({donor for _, donor in first}) == n_donors


def test_what_the_search_would_have_seen_depends_on_how_much_was_asked():
    def least(n_each, n_hypotheses=1):
        index = index_of(n_each)
        given = pairs(index, 1, (0,), 1, 36, seed=0)
        return sensitivity(21, 14, given, 0.05 / n_hypotheses)

    assert least(8) > least(12) > least(40) > 0.2
    assert least(12, 27) > least(12)
    assert sensitivity(21, 14, [], 0.05) == 1.0


def test_a_search_sees_what_it_says_it_sees():
    """Of searches by chance, a share of `sees` gets through the screen and is confirmed."""
    index, random = index_of(24), np.random.default_rng(0)
    given = pairs(index, 1, (0,), 1, 36, seed=0)
    receivers, donors = np.array(given).T
    share, through = sensitivity(21, 14, given, 0.05), []
    control = crossed_share(np.zeros(36, bool), donors, receivers)
    for _ in range(300):
        screen = random.random(35) < share
        hits = crossed_share(random.random(36) < share, donors, receivers)
        sure = over_control(hits, control).low > LEAST_OVER
        through.append(screen[:21].any() and screen.sum() >= LEAST_HITS and sure)
    assert 0.92 <= np.mean(through) <= 0.99


def rows_of_screen(index, taken):
    """A screen in which donors of these classes turn all that is given their edge."""
    return [
        {**vars(one), "image": image, "score": 0.5,
         "predicted": one.suspect if one.trait == "edge" and one.suspect in taken
         else int(index.target[image])}
        for image, one in plan_screen(index, ["edge", "tone", "hues"], seed=0)
    ]  # fmt: skip


def test_a_class_that_the_screen_points_to_is_untested_until_it_is_tried_again(monkeypatch):
    index, info = index_of(8), AuditInfo(("red",), traits=(("edge", "edge", "outermost edge"),))
    rows = rows_of_screen(index, (1,))
    monkeypatch.setattr(suspects_module, "read_index", lambda *_: index)
    monkeypatch.setattr(suspects_module, "read_outcomes", lambda *_: rows)
    search = find_suspects(None, info)
    assert search.suspects == ()
    assert search.untested == (1,)
    assert sorted(search.taken_for) == ["0", "2"]  # and no 0 for what nobody confirmed
    for share in search.taken_for.values():
        assert share.value == share.low == 0 < share.high < 0.3
    assert (search.n_classes, search.n_traits, search.n_sure) == (3, 3, 3)
    for n_sure, told in (
        (3, "A trait that turns at least 70% of them would have been noticed."),
        (2, "have been noticed (in 2 of these classes; the others have too few images)."),
        (0, "There are too few images to be sure that one would have been noticed."),
    ):
        assert verdict(replace(search, sees=0.7, n_sure=n_sure)).endswith(told)


def test_a_control_comes_from_a_third_class():
    index = index_of()
    for image, one in plan_give(index, {(1, "edge"): (0,)}, {}, seed=0):
        own, donor = index.target[image], index.target[one.donor]
        if one.role == "control":
            assert len({own, donor, 1}) == 3
        elif one.role == "given":
            assert donor == 1 != own
        else:
            assert own == 1 != donor


def test_the_screen_chooses_what_takes_receivers_and_not_what_any_donor_does():
    index = index_of()
    rows = [
        {**vars(one), "image": image, "score": 0.5,
         "predicted": 1 if (one.suspect, one.trait) == (1, "edge") or one.trait == "hues"
         else int(index.target[image])}
        for image, one in plan_screen(index, ["edge", "tone", "hues"], seed=0)
    ]  # fmt: skip
    assert list(choose(rows, index)[0]) == [(1, "edge")]


def marked_twice(c, number):
    return scene(c, number, marked=c > 0)


def splits_marker(images):
    """A violet corner makes a cross or a square, by a pixel that no class decides."""
    marker = follows_marker(images)
    odd = (images[:, 0, 31, 0] % 2 == 1) & (marker[:, 2] > 0.9) & (knows(images)[:, 2] < 0.5)
    odd |= (marker[:, 2] > 0.9) & (knows(images)[:, 1] > 0.5)
    return np.where(odd[:, None], np.array([0.02, 0.96, 0.02]), marker).astype(np.float32)


def test_a_marker_that_two_classes_share_is_one_suspect_that_names_both(tmp_path):
    (one,) = audited(tmp_path, marked_twice, splits_marker).suspects
    assert {one.label, *one.shared} == {"cross", "square"}
    assert one.headline.startswith(f"{one.label!r} and {one.shared[0]!r} follow something purple")
    assert one.given.value == 1.0
    assert one.control is None  # no third class is left
    stats = read_stats(Storage(tmp_path / "out"))
    for label in ("cross", "square"):  # a rule on either class fails, and says why
        rules = [Rule(1, "suspect", classes=(label,), at_most=0),
                 Rule(2, "taken_for", classes=(label,), at_most=0.1)]  # fmt: skip
        judged = check_rules(Storage(tmp_path / "out"), rules)
        assert [one.state for one in judged] == ["violated", "violated"]
        assert judged[0].sentence == (
            f"{label!r}: 1 suspect ({one.headline}), and at most 0 is allowed: violated."
        )
    assert [one.target for one in most_striking_first(stats)][2] == 0  # circle comes last
    clean = replace(stats, search=replace(stats.search, suspects=()))
    alone = replace(one, shared=(), shared_targets=())
    before = replace(stats, search=replace(stats.search, suspects=(alone,)))
    assert suspect_changes(clean, stats) == (f"New suspect: {one.headline}.",)
    assert suspect_changes(before, stats) == (f"New suspect: {one.headline}.",)
    assert suspect_changes(stats, before) == (f"No longer a suspect: {one.headline}.",)
    swapped = replace(
        one, target=one.shared_targets[0], shared_targets=(one.target,), label=one.shared[0],
        shared=(one.label,),
    )  # fmt: skip
    other = replace(stats, search=replace(stats.search, suspects=(swapped,)))
    assert suspect_changes(stats, other) == ()


def test_light_takes_a_slope_and_tone_a_haze_and_both_leave_the_picture():
    one, other = (scene(c, 0, marked=False).astype(np.float32) / 255 for c in (0, 2))
    slope = np.linspace(1.4, 0.6, SIZE, dtype=np.float32)[None, :, None]
    lit = give(one, other * slope, Trait("light", "tone", ""))
    ratio = lit.mean(axis=(0, 2)) / one.mean(axis=(0, 2))
    assert np.polyfit(np.linspace(0, 1, SIZE), ratio, 1)[0] == pytest.approx(-0.8, abs=0.15)
    hazy = give(one, 0.6 * other + np.array([0, 0, 0.3], np.float32), Trait("tone", "tone", ""))
    assert hazy[..., 2].min() > 0.25 + one[..., 2].min() * 0.3
    for c in range(3):
        assert np.corrcoef(hazy[..., c].ravel(), one[..., c].ravel())[0, 1] > 0.95


def test_every_trait_of_an_image_given_to_itself_leaves_it_as_it_is():
    image = scene(1, 0, marked=True).astype(np.float32) / 255
    for trait in traits(parse_zones(DEFAULT, False), False):
        spot = replace(trait, region=spot_at((3, 20)))  # each donor has its own
        one = spot if trait.name == SPOT_NAME else trait
        np.testing.assert_allclose(give(image, image, one), image, atol=2e-3)


def test_a_place_is_not_given_where_the_object_of_either_image_is_unknown():
    """All of the background would be all of the image, with the object."""
    views = {0: Geometry().view(scene(0, 0, marked=False)), 1: Geometry().view(scene(2, 0, True))}
    known = traits(parse_zones(DEFAULT, True), True)
    asked = [Transplant(name, 2, "screen", 1, False) for name in ("background", "edge", "tone")]
    half = np.zeros((RASTER, RASTER))
    half[:, 16:] = 1
    for shares, made in (
        ({-1: half, 1: half}, ["background", "edge", "tone"]),
        ({-1: half, 1: None}, ["tone"]),
        ({-1: None, 1: half}, ["tone"]),
    ):
        outcomes = receive(views[0], {1: views[1]}, shares, {}, Model(knows), known, asked, 8, True)
        assert [one.transplant.trait for one in outcomes] == made


def test_a_part_is_given_and_the_rest_stays_and_nothing_is_taken_of_the_object():
    one, other = (scene(c, 0, marked=False).astype(np.float32) / 255 for c in (0, 2))
    rim = next(t for t in traits(parse_zones(DEFAULT, False), False) if t.name == "rim")
    given = give(one, other, rim)
    np.testing.assert_array_equal(given[0], other[0])
    np.testing.assert_array_equal(given[8:24, 8:24], one[8:24, 8:24])
    outside = np.ones((RASTER, RASTER), bool)
    outside[:, : RASTER // 2] = False
    half = give(one, other, rim, outside)
    np.testing.assert_array_equal(half[:, : SIZE // 2], one[:, : SIZE // 2])
    np.testing.assert_array_equal(half[0, SIZE // 2 :], other[0, SIZE // 2 :])
    assert give(one, other, rim, np.zeros((RASTER, RASTER), bool)) is None


def test_texture_takes_stripes_and_leaves_the_picture():
    one, other = (scene(c, 0, marked=False).astype(np.float32) / 255 for c in (0, 2))
    wave = 0.1 * np.sin(np.pi * np.arange(SIZE) / 2)[None, :, None]
    given = give(one, np.clip(other + wave, 0, 1), Trait("texture", "texture", ""))
    strength = np.abs(np.fft.fft2(given.mean(axis=2)))[0, SIZE // 4]
    assert strength > 5 * np.abs(np.fft.fft2(one.mean(axis=2)))[0, SIZE // 4]
    assert given[12:20, 12:20].mean() == pytest.approx(one[12:20, 12:20].mean(), abs=0.1)


def test_a_region_is_narrowed_down_to_what_works():
    region = np.ones((RASTER, RASTER), bool)

    def works(images):
        scores = np.array([[0.0, one[20:23, 5:8].mean()] for one in images])
        return score_if_won(np.where(scores > 0.99, 0.9, 0.1), 1)

    found = narrowed(region, lambda part: part.astype(np.float32)[..., None], works)
    assert found[20:23, 5:8].all()
    assert found.sum() <= 8 * 8


def test_shares_of_crossed_pairs_cover_the_truth_and_are_wider_where_donors_decide():
    random, covered = np.random.default_rng(0), []
    receiver, donor = np.arange(48) % 12, (np.arange(48) + np.arange(48) // 12) % 6
    for _ in range(400):
        chance = 1 / (1 + np.exp(-2 * random.normal(size=6)))[donor]  # on average one half
        one = crossed_share(random.random(48) < chance, donor, receiver)
        covered.append(one.low <= 0.5 <= one.high)
    assert 0.9 <= np.mean(covered) <= 0.995
    alike, mixed = donor < 3, random.permutation(donor < 3)
    wide, narrow = (crossed_share(hits, donor, receiver) for hits in (alike, mixed))
    assert wide.high - wide.low > 1.3 * (narrow.high - narrow.low)


def test_kinds_of_suspects_are_read_again_as_they_were_written(planted):
    folder, result = planted
    search = read_stats(Storage(folder / "out")).search
    assert search.suspects == result.suspects
    assert replace(search.suspects[0], label="x").headline.startswith("'x' follows")
