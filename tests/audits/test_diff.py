"""What changed between two audits or two runs of the same images is told, and only that."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import mcrise
from mcrise.audits.class_data import RASTER
from mcrise.audits.class_findings import candidates, describe
from mcrise.audits.diff import compare_audits, findings, plot_difference
from mcrise.audits.paired_stats import accuracy, paired_shares, rate
from mcrise.audits.rule_check import check_rules
from mcrise.audits.rules import Rule
from mcrise.audits.run_diff import compare_runs
from mcrise.audits.stats import Estimate, bonferroni
from mcrise.audits.tables import read_asked
from mcrise.cli.diff import diff
from planted import PatchModel, photo
from planted_audit import ASKED, make_looks
from planted_folder import CORNER, planted_looks, write_audit


@pytest.fixture(scope="module")
def audits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audits")
    return {
        "shortcut": write_audit(folder / "shortcut", looks(corner=0.3, right=0.75)),
        "twin": write_audit(folder / "twin", looks()),
        "again": write_audit(folder / "again", looks(seed=1)),
    }


def looks(corner=0.0, right=1.0, seed=0):
    return [planted_looks(0, corner=corner, right=right, seed=seed), planted_looks(1, seed=seed)]


def run(*words):
    return CliRunner().invoke(diff, [str(word) for word in words])


# ---- audits


def test_a_planted_change_is_found_in_its_class_at_its_place_by_its_color(audits):
    found = compare_audits(audits["twin"], audits["shortcut"])
    (one,) = found.changed()
    (finding,) = one.findings
    assert one.label == "stop"
    assert (finding.region & CORNER).sum() > 0.5 * finding.region.sum()
    assert (finding.fill, finding.sign) == (2, 1)
    effect = one.zone_effect["lower right"]["yellow"].by
    assert effect.low < 0.3 < effect.high
    assert effect.high - effect.low < 0.05
    text = "\n".join(found.lines(read_asked(audits["shortcut"])))
    assert "'stop', the lower right part" in text
    assert "painted yellow the score is 0.3 higher than before" in text
    assert "'yield'" not in text


def test_the_other_way_round_every_change_has_the_other_sign(audits):
    there = compare_audits(audits["twin"], audits["shortcut"]).classes[0]
    back = compare_audits(audits["shortcut"], audits["twin"]).classes[0]
    assert there.color_share.by.value == pytest.approx(-back.color_share.by.value)
    assert there.color_share.by.low == pytest.approx(-back.color_share.by.high)
    assert there.rates["accuracy"].by.value == -0.25
    assert back.rates["accuracy"].by.low == pytest.approx(-there.rates["accuracy"].by.high)
    assert back.findings[0].sign == -1


def test_effects_that_grow_without_changing_the_order_of_scores_are_a_change(tmp_path):
    """As when a model is calibrated anew: the ranks of scores, and so their maps, stay."""
    before = planted_looks(0, corner=0.1)
    ranks = before.maps.copy()
    grown = replace(before, maps=5 * before.maps, ranks=ranks)
    pair = [
        write_audit(tmp_path / name, [replace(one, ranks=ranks)])
        for name, one in (("before", before), ("after", grown))
    ]
    (one,) = compare_audits(*pair).changed()
    first = one.findings[0]
    known = before.maps[:, first.fill, first.region].mean()
    assert first.effect.value == pytest.approx(4 * known)


def test_rates_are_of_images_whose_truth_is_known_and_accuracy_needs_some():
    looks = planted_looks(0)
    truth = np.where(np.arange(len(looks)) < 12, 0, -1)
    right = replace(looks, truth=truth, predicted=np.zeros(len(looks), int))
    wrong = replace(right, predicted=np.ones(len(looks), int))
    change = accuracy(right, wrong)
    assert (change.before.value, change.after.value, change.by.value) == (1, 0, -1)
    assert (change.before.n, change.by.n) == (12, 12)
    unknown = replace(right, truth=np.full(len(looks), -1))
    assert accuracy(unknown, unknown) is None
    assert rate(unknown, unknown, lambda one: one.gray).by.value == 0


def test_noise_alone_is_no_change(audits):
    found = compare_audits(audits["twin"], audits["again"])
    assert found.changed() == []
    assert "No place and color moves" in "\n".join(found.lines(read_asked(audits["twin"])))
    assert plot_difference(found) is None


def test_a_place_where_only_the_order_of_scores_changed_is_not_said_to_move_them():
    """In all images but one it rises a little, in that one it falls by far more."""
    maps = np.random.default_rng(0).normal(0, 1e-3, (24, 3, RASTER, RASTER))
    maps[:, 2, CORNER] += 0.01
    ranks = maps.copy()
    maps[5, 2, CORNER] -= 0.5
    tests = [make_looks(maps, ranks=ranks), make_looks(maps)]
    assert candidates(tests[0], 6.0, ASKED.cell)
    assert findings(tests, 6.0, ASKED) == ()
    (found,) = findings([make_looks(ranks)], 6.0, ASKED)
    assert (found.fill, found.sign) == (2, 1)


def test_the_color_that_is_named_is_one_that_is_told_from_noise():
    """Red raises the score a little in all; black seems to do more, but by noise."""
    maps = np.random.default_rng(0).normal(0, 1e-3, (24, 5, RASTER, RASTER))
    maps[:, 0, CORNER] += 0.01
    maps[:, 4, CORNER] += 0.012 + 0.05 * np.tile([-1, 1], 12)[:, None]
    (found,) = candidates(make_looks(maps), 6.0, ASKED.cell)
    assert found.effects[4] > found.effects[0] > 0
    assert (found.fill, found.sign) == (0, 1)
    finding = describe(make_looks(maps), found)
    assert finding.fills == (0,)
    assert finding.effect.low > 0


def test_where_too_few_images_were_compared_nothing_is_said_to_be_as_before(tmp_path):
    few = np.arange(5)
    pair = [
        write_audit(tmp_path / name, [planted_looks(0, corner=corner).some(few)])
        for name, corner in (("before", 0.0), ("after", 0.3))
    ]
    text = "\n".join(compare_audits(*pair).lines(read_asked(pair[0])))
    assert "No class has enough images to tell where effects changed" in text
    assert "No place and color" not in text


def test_images_that_are_decided_otherwise_are_counted(tmp_path):
    """Without truths: 24 of a class, of which 14 are of another for the second model."""
    both = [replace(planted_looks(k), truth=np.full(24, -1)) for k in (0, 1)]
    other = replace(both[1], names=tuple(f"other {n}" for n in range(24)))
    mixed = both[0].some(np.arange(10)), joined_with(other, both[0].some(np.arange(10, 24)))
    pair = write_audit(tmp_path / "before", [both[0], other]), write_audit(tmp_path / "now", mixed)
    for folder in pair:  # in the order of their names
        note = json.loads((folder / "audit.json").read_text())
        note["images"].sort()
        (folder / "audit.json").write(json.dumps(note).encode())
    found = compare_audits(*pair)
    assert (found.overall.n, found.overall.n_left_out) == (34, 14)
    assert (
        "34 images, each with itself (14 more are predicted differently"
        in found.lines(read_asked(pair[0]))[0]
    )
    change = Rule(1, "accuracy_gray", classes=("all",), at_least=-0.6, change=True)
    (judged,) = check_rules(pair[1], [change], pair[0])
    assert judged.sentence.startswith("all images but 14 that are predicted differently now: ")


def joined_with(looks, more):
    """Images of one class, and some that are of it for another model."""
    rows = {
        name: np.concatenate([value, getattr(more, name)])
        if isinstance(value, np.ndarray)
        else value + getattr(more, name)
        for name, value in vars(looks).items()
        if isinstance(value, np.ndarray | tuple)
    }
    return replace(looks, **{**rows, "image": np.arange(len(rows["image"]))})


def test_what_images_differ_in_drops_out(tmp_path):
    """Images that depend on yellow to very different degrees, all by 0.1 more than before."""
    random = np.random.default_rng(0)
    before = planted_looks(0, noise=0.001)
    spread = random.normal(0, 1, len(before))
    effect = np.zeros_like(before.zone_effect)
    effect[:, 0, 2] = spread
    one = write_audit(tmp_path / "a", [replace(before, zone_effect=effect)])
    effect = effect.copy()
    effect[:, 0, 2] += 0.1
    other = write_audit(tmp_path / "b", [replace(before, zone_effect=effect)])
    change = compare_audits(one, other).classes[0].zone_effect["lower right"]["yellow"]
    assert change.by.value == pytest.approx(0.1)
    assert change.by.high - change.by.low < 1e-6
    assert change.before.high - change.before.low > 0.5


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"n_masks": 128}, "differ in their number of masks,"),
        ({"seed": 1, "grid": [6, 6]}, "differ in their grid and seed,"),
        ({"mask_prob": 0.3}, "again with --mask-prob 0.2"),
        ({"zones": [["rim", None, False]]}, "differ in their zones,"),
    ],
)
def test_audits_that_were_asked_otherwise_are_refused(audits, tmp_path, changed, words):
    other = write_audit(tmp_path / "other", looks(), figures=False, **changed)
    with pytest.raises(mcrise.InputError, match=words):
        compare_audits(audits["twin"], other)


def test_other_images_are_refused_by_name_or_by_what_they_show(audits, tmp_path):
    fewer = write_audit(tmp_path / "fewer", looks()[:1])
    with pytest.raises(mcrise.InputError, match="differ in their images"):
        compare_audits(audits["twin"], fewer)
    one, two = looks()
    pixels = one.pixels.copy()
    pixels[3] = 255
    other = write_audit(tmp_path / "other", [replace(one, pixels=pixels), two])
    with pytest.raises(mcrise.InputError, match=r"stop/003\.png is not the same picture"):
        compare_audits(audits["twin"], other)


def test_a_change_of_a_share_is_never_sure_of_nothing():
    same = np.ones(20, bool)
    figure = paired_shares(same, same, np.arange(20))
    assert figure.value == 0
    assert figure.low < -0.02 < 0.02 < figure.high
    # Ten pairs of frames that go together say less than twenty frames.
    half = np.arange(20) < 10
    alone = paired_shares(same, half, np.arange(20))
    pairs = paired_shares(same, half, np.arange(20) // 2)
    assert pairs.high - pairs.low > alone.high - alone.low


def test_the_change_of_a_share_covers_the_truth():
    random, missed = np.random.default_rng(0), 0
    for _ in range(400):
        draw = random.random(40)
        figure = paired_shares(draw < 0.8, (draw < 0.6) | (draw > 0.95), np.arange(40))
        missed += not figure.low <= -0.15 <= figure.high
    assert missed <= 0.07 * 400


@pytest.mark.parametrize("sizes", [[20, 20] + [1] * 10, [30] + [1] * 11, [50, 1, 1, 1], [10] * 5])
def test_the_change_of_a_share_covers_the_truth_whatever_the_groups_are_like(sizes):
    chance, group = np.random.default_rng(1), np.repeat(np.arange(len(sizes)), sizes)
    for better, worse in ((0.3, 0.1), (0.1, 0.6)):
        for n_drawn, place in ((len(sizes), group), (len(group), np.arange(len(group)))):
            drawn = chance.random((250, n_drawn))[:, place]
            pairs = [(one < worse, (one >= worse) & (one < worse + better)) for one in drawn]
            found = [paired_shares(before, after, group) for before, after in pairs]
            assert np.mean([one.low <= better - worse <= one.high for one in found]) >= 0.93


def test_one_of_many_intervals_is_wider_by_the_ratio_of_quantiles():
    wide = bonferroni(Estimate(0.0, -1.96, 1.96, 100_000), 10)
    assert wide.high == pytest.approx(2.807, abs=1e-3)  # of the normal distribution, at 0.9975


def test_the_command_names_the_class_and_draws_it(audits, tmp_path):
    found = run(audits["twin"].path, audits["shortcut"].path, "--out", tmp_path / "out")
    assert found.exit_code == 0, found.exception
    assert "'stop', the lower right part" in found.output
    assert (tmp_path / "out" / "diff.png").stat().st_size > 10_000
    page = (tmp_path / "out" / "diff.html").read_text()
    heads = re.findall("<h2>(.*?)</h2>", page)
    assert heads == ["stop", "yield"]  # all classes, the one that changed first
    before, after = (page.index(f"<h2>{head}</h2>") for head in heads)
    verdict = re.findall('<p class="verdict">(.*?)</p>', page[:before])  # above all maps
    assert len(verdict) == 1
    assert "&#39;stop&#39;, the lower right part" in verdict[0]
    assert "painted yellow the score is 0.3 higher than before" in page[before:after]
    assert "No place and color changes the score significantly" in page[after:]
    assert page.count("<h3>after − before</h3>") == 2
    assert page[before:after].count("<img") == 1 + 3 * 3  # three colors before, after, less
    assert str(tmp_path) not in page
    content = json.loads((tmp_path / "out" / "diff.json").read_text())
    assert [one["label"] for one in content["classes"]] == ["stop", "yield", "all classes"]
    found = run(audits["twin"].path, audits["shortcut"].path, "--out", tmp_path / "out", "--json")
    assert json.loads(found.output) == content


# ---- runs


@pytest.fixture(scope="module")
def runs():
    """A model that looks at the upper left, and one that looks at the lower right."""
    image = photo(64, 64)
    asked = {"n_masks": 512, "mask_prob": 0.3, "grid": 4}
    here, there = slice(4, 20), slice(44, 60)
    return [mcrise.explain(image, PatchModel(part, part), **asked) for part in (here, there)]


def test_two_runs_tell_where_a_model_began_and_ceased_to_look(runs):
    found = compare_runs(*runs, target=0)
    red = {zone: row["red"].by for zone, row in found.zones.items()}
    assert red["upper left"].high < 0 < red["lower right"].low
    assert not red["center"].excludes_zero
    assert found.zones["upper left"]["red"].before.value == pytest.approx(
        -red["upper left"].value, rel=0.3
    )
    difference = found.comparison.difference.maps
    np.testing.assert_allclose(
        difference.values.mean(axis=(1, 2)),
        (found.comparison.wanted.values - found.comparison.given.values).mean(axis=(1, 2)),
        atol=0.02,
    )


def test_a_run_compared_with_itself_has_no_difference(runs):
    found = compare_runs(runs[0], runs[0])
    assert np.abs(found.comparison.difference.maps.values).max() < 1e-6
    assert found.comparison.difference.findings == ()


def test_the_command_compares_runs_and_refuses_what_does_not_go_together(runs, audits, tmp_path):
    for name, explanation in zip("ab", runs, strict=True):
        (tmp_path / name).mkdir()
        explanation.save(tmp_path / name / "run.npz")
    found = run(tmp_path / "a", tmp_path / "b", "--target", "0", "--out", tmp_path / "out")
    assert found.exit_code == 0, found.exception
    assert "red on the lower right" in found.output
    assert (tmp_path / "out" / "diff.png").exists()
    assert "red on the lower right" in (tmp_path / "out" / "diff.html").read_text()
    mixed = run(tmp_path / "a", audits["twin"].path)
    assert "are a run and an audit" in str(mixed.exception)
    assert "neither a run nor an audit" in str(run(tmp_path, tmp_path / "a").exception)
    other = replace(runs[0], plan=replace(runs[0].plan, seed=5))
    with pytest.raises(mcrise.InputError, match="differ in their seed"):
        compare_runs(runs[0], other)
