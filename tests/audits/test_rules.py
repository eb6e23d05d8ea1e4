"""Rules hold, are violated or undecided as their figures say, and bad ones are a sentence."""

import json
import shutil
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import mcrise
from mcrise.audits.diff import compare_audits
from mcrise.audits.paired_stats import Change, mean_change
from mcrise.audits.rule_check import (
    Row,
    change_of_size,
    check_rules,
    decide,
    overall_state,
    total_of,
    verdict_of,
)
from mcrise.audits.rule_formats import as_github, as_junit, as_text
from mcrise.audits.rules import Rule, read_rules
from mcrise.audits.stats import Estimate, mean, share, t_quantile
from mcrise.cli.check import check
from mcrise.cli.diff import diff
from planted_folder import LABELS, planted_looks, write_audit

CLEAN = """
[[rule]]
name = "the corner is ignored"
measure = "zone_effect"
zone = "lower right"
at_most = 0.1
"""


@pytest.fixture(scope="module")
def audits(tmp_path_factory):
    """An audit of a model that uses the corner for one class, and of one that does not."""
    folder = tmp_path_factory.mktemp("audits")
    used = [planted_looks(0, corner=0.4), planted_looks(1, right=0.75), planted_looks(2)]
    unused = [planted_looks(0), planted_looks(1), planted_looks(2)]
    write_audit(folder / "shortcut", used)
    write_audit(folder / "twin", unused)
    return folder


def run(audits, name, rules, *options):
    file = audits / "rules.toml"
    file.write_text(rules)
    return CliRunner().invoke(check, [str(audits / name), "--rules", str(file), *options])


def rule(**given):
    return Rule(1, **{"measure": "color_share", "at_most": 0.05, **given})


# ---- verdicts


@pytest.mark.parametrize(
    ("low", "high", "state"),
    [(0.01, 0.05, "holds"), (0.051, 0.09, "violated"), (0.03, 0.07, "undecided")],
)
def test_an_interval_on_one_side_of_the_limit_decides(low, high, state):
    figure = Estimate((low + high) / 2, low, high, 100)
    assert decide(rule(), figure, 1)[0] == state
    flipped = Estimate(-figure.value, -high, -low, 100)
    assert decide(rule(at_most=None, at_least=-0.05), flipped, 1)[0] == state


@pytest.mark.parametrize(
    ("hits", "n", "limit"),
    [
        (24, 24, {"at_most": None, "at_least": 0.95}),
        (2, 20, {"at_most": 0.05}),
        (6, 6, {"at_most": 0.9}),
    ],
)
@pytest.mark.parametrize("n_rows", [1, 43])
def test_so_many_more_images_would_tell_of_a_share_as_the_same_share_of_more_does(
    hits, n, limit, n_rows
):
    asked = rule(measure="accuracy", **limit)
    state, more = decide(asked, share(np.arange(n) < hits, np.arange(n)), n_rows)
    assert state == "undecided"
    later, before = ((n + more) * factor for factor in (1.0, 0.8))
    told = [
        decide(
            asked, share(np.arange(round(m)) < round(m * hits / n), np.arange(round(m))), n_rows
        )[0]
        for m in (before, later)
    ]
    assert told[0] == "undecided" != told[1]


def test_one_image_violates_no_share_that_it_would_miss_one_time_in_five():
    wrong = share(np.zeros(1, bool), np.arange(1))
    assert decide(rule(measure="accuracy", at_most=None, at_least=0.8), wrong, 1)[0] == "undecided"


@pytest.mark.parametrize("sizes", [[20, 20] + [1] * 10, [30] + [1] * 11, [10] * 5])
def test_a_rule_about_a_share_is_seldom_decided_wrongly_where_groups_differ_in_size(sizes):
    """Half of the images are right, in the long run, and half is the limit."""
    chance, group = np.random.default_rng(0), np.repeat(np.arange(len(sizes)), sizes)
    limit = rule(measure="accuracy", at_most=None, at_least=0.5)
    drawn = (chance.random((250, len(sizes))) < 0.5)[:, group]
    states = [decide(limit, share(hits, group), 1)[0] for hits in drawn]
    assert states.count("undecided") >= 0.95 * len(states)


def test_so_many_more_images_of_groups_would_tell_as_the_same_of_more_groups_do():
    limit = rule(measure="accuracy", at_most=None, at_least=0.6)

    def verdict(n_times):
        sizes = np.repeat([10, 1], [4 * n_times, 20 * n_times])  # 60 images: like 9 on their own
        right = np.arange(len(sizes)) % 4 > 0
        return decide(limit, share(right.repeat(sizes), np.arange(len(sizes)).repeat(sizes)), 1)

    state, more = verdict(2)
    assert (state, verdict(round(2 + more / 60))[0]) == ("undecided", "holds")
    assert verdict(round(2 + more / 120))[0] == "undecided"


def test_both_limits_count():
    inside, above = Estimate(0.5, 0.45, 0.55, 30), Estimate(0.5, 0.1, 0.55, 30)
    both = rule(at_most=0.6, at_least=0.4)
    assert decide(both, inside, 1)[0] == "holds"
    assert decide(both, above, 1)[0] == "undecided"


def test_so_many_more_images_would_tell_as_make_the_interval_narrow_enough():
    """0.02 wide on its side, 0.01 from the limit: half as wide takes 4 times the images."""
    state, more = decide(rule(), Estimate(0.04, 0.02, 0.06, 500), 1)
    assert (state, more) == ("undecided", 1500)
    assert decide(rule(), Estimate(0.05, 0.03, 0.07, 500), 1) == ("undecided", None)
    assert decide(rule(), Estimate(0.04, float("nan"), float("nan"), 1), 1) == ("undecided", None)


@pytest.mark.parametrize("ends", [(np.nan, np.nan, 1), (-np.inf, np.inf, 9)])
def test_what_nothing_tells_the_error_of_is_not_said_to_lie_near_the_limit(ends):
    def told(*figure):
        return verdict_of(rule(), Row("'stop'", "it is", Estimate(*figure), ""), 1).sentence

    assert told(0.9, *ends).endswith("how sure that is), and at most 0.05 is allowed: undecided.")
    assert "undecided (it lies too near to the limit for any" in told(0.05, 0.03, 0.07, 500)


def test_one_of_many_figures_needs_a_wider_interval_to_violate_a_rule_but_not_to_hold():
    figure = Estimate(0.09, 0.052, 0.128, 1000)
    assert decide(rule(), figure, 1)[0] == "violated"
    assert decide(rule(), figure, 200)[0] == "undecided"
    assert decide(rule(), Estimate(0.03, 0.01, 0.05, 1000), 200)[0] == "holds"


def test_a_planted_corner_violates_in_its_class_alone_and_the_twin_holds(audits):
    found = run(audits, "shortcut", CLEAN)
    assert found.exit_code == 3
    assert found.output.count("violated") == 1
    assert "'stop': the change of the score by yellow under masks, on average" in found.output
    found = run(audits, "twin", CLEAN)
    assert (found.exit_code, found.output.splitlines()[0]) == (0, "HOLDS: the corner is ignored")


def test_the_exit_code_is_that_of_the_worst_verdict(audits):
    undecided = CLEAN.replace("0.1", "0.9") + (
        '[[rule]]\nmeasure = "accuracy"\nclass = "yield"\nat_least = 0.8\n'
    )
    assert run(audits, "shortcut", undecided).exit_code == 4
    found = run(audits, "shortcut", undecided + CLEAN, "--format", "json")
    assert found.exit_code == 3
    states = [one["state"] for one in json.loads(found.output)]
    assert states == ["holds", "undecided", "violated"]
    text = run(audits, "shortcut", undecided).output
    assert "more images would tell" in text


@pytest.mark.parametrize(
    ("given", "state"),
    [
        ('measure = "accuracy_gray"\nat_most = 0.4', "undecided"),
        ('measure = "accuracy_gray"\nat_least = 0.8', "violated"),
        ('measure = "accuracy"\nclass = "all"\nat_least = 0.8', "holds"),
        ('measure = "accuracy_hue120"\nclass = 0\nat_least = 0.8', "holds"),
        ('measure = "color_share"\nclass = ["yield", 2]\nat_most = 0.1', "holds"),
        ('measure = "color_share"\nclass = "stop"\nat_most = 0.1', "violated"),
        ('measure = "zone_share"\nzone = "lower right"\nclass = "stop"\nat_most = 0.1', "violated"),
        ('measure = "zone_share"\nzone = "lower right"\nclass = "yield"\nat_most = 0.1', "holds"),
        ('measure = "zone_effect"\nzone = "lower right"\nfill = "red"\nat_most = 0.1', "holds"),
        ('measure = "background_flip_rate"\nclass = "stop"\nat_most = 0.2', "holds"),
        ('measure = "background_flip_rate"\nclass = "stop"\nat_least = 0.5', "violated"),
    ],
)
def test_each_measure_is_held_against_its_own_figure(audits, tmp_path, given, state):
    file = tmp_path / "rules.toml"
    file.write_text(f"[[rule]]\n{given}\n")
    listed, _ = read_rules(file)
    storage = mcrise.audits.tables.Storage(audits / "shortcut")
    assert overall_state(check_rules(storage, listed)) == state


def test_a_change_is_held_against_another_audit_image_by_image(audits):
    rules = CLEAN.replace('name = "the corner is ignored"', "change = true")
    assert run(audits, "shortcut", rules, "--against", str(audits / "twin")).exit_code == 3
    assert run(audits, "twin", 'against = "twin"\n' + rules).exit_code == 0
    assert run(audits, "twin", 'against = "shortcut"\n' + rules).exit_code == 0  # it is less
    better = '[[rule]]\nmeasure = "accuracy"\nclass = "yield"\nchange = true\nat_least = -0.02\n'
    found = run(audits, "twin", better, "--against", str(audits / "shortcut"))
    assert found.exit_code == 0
    assert "has changed by 0.25" in found.output


# ---- the change of the size of an effect


def changes(before, after, n_drawn=400, n=30, apart=0.01):
    """Of effects that images differ in far more than in their change."""
    chance = np.random.default_rng(0)
    one = chance.normal(before, 0.25, (n_drawn, n))
    other = one + after - before + chance.normal(0, apart, (n_drawn, n))
    values = np.stack([one, other, other - one])  # (3, n_drawn, n)
    middle, reach = values.mean(axis=2), t_quantile(n - 1) * values.std(axis=2, ddof=1) / n**0.5
    for value, side in zip(middle.T, reach.T, strict=True):
        yield Change(*(Estimate(v, v - s, v + s, n) for v, s in zip(value, side, strict=True)))


@pytest.mark.parametrize("n_looked_at", [1, 20])
@pytest.mark.parametrize(
    ("before", "after"),
    [(-0.1, 0.1), (0.1, -0.1), (0.02, 0.22), (-0.02, 0.18), (0.22, 0.0), (0.0, 0.0), (0.02, -0.02),
     (0.5, 0.7), (-0.7, -0.5)],
)  # fmt: skip
def test_the_change_of_the_size_of_an_effect_covers_the_truth(before, after, n_looked_at):
    """Also where its sign flips, or may have: far from zero, its change is all that counts."""
    truth = abs(after) - abs(before)
    found = [change_of_size(one, n_looked_at) for one in changes(before, after)]
    least = 0.93 if n_looked_at == 1 else 0.99
    assert np.mean([one.low <= truth <= one.high for one in found]) >= least


def test_an_effect_that_keeps_its_sign_has_grown_as_surely_as_it_has_changed():
    (up,), (down,) = changes(0.5, 0.7, 1), changes(-0.7, -0.5, 1)
    grown, shrunk = change_of_size(up), change_of_size(down)
    np.testing.assert_allclose([grown.low, grown.high], [up.by.low, up.by.high])
    np.testing.assert_allclose([shrunk.low, shrunk.high], [-down.by.high, -down.by.low])


def test_the_sum_of_two_means_has_the_interval_of_the_mean_of_sums_whatever_the_groups():
    one, other = np.random.default_rng(0).normal([[0.1], [-0.2]], 0.3, (2, 40))
    group = np.repeat(np.arange(16), [5] * 6 + [1] * 10)
    total, known = total_of(mean_change(one, other, group)), mean(one + other, group)
    np.testing.assert_allclose(
        [total.value, total.low, total.high], [known.value, known.low, known.high]
    )
    single = change_of_size(mean_change(one[:1], other[:1], group[:1]))
    assert single.value == pytest.approx(abs(other[0]) - abs(one[0]))
    assert np.isnan([single.low, single.high]).all()


def test_one_of_many_changes_of_a_size_needs_a_wider_interval_of_change_and_sum(tmp_path):
    """The sum is far less sure than the change, and 0.3 where that is 0.2."""
    looks = planted_looks(0)
    chance = np.random.default_rng(0)
    effect = chance.normal(0, 0.25, looks.zone_effect.shape)
    effect += 0.05 - effect.mean(axis=0)
    more = chance.normal(0, 0.01, effect.shape)
    more += 0.2 - more.mean(axis=0)
    pair = [
        write_audit(tmp_path / name, [replace(looks, zone_effect=values)])
        for name, values in (("before", effect), ("after", effect + more))
    ]
    change = compare_audits(*pair).classes[0].zone_effect["lower right"]["red"]
    size, n_fills = change_of_size(change), effect.shape[2]
    factor = t_quantile(change.by.n - 1, 0.05 / n_fills) / t_quantile(change.by.n - 1)
    wide = 0.3 - factor * (0.3 - total_of(change).low)
    assert change_of_size(change, n_fills).low == pytest.approx(wide)
    scaled = size.value - factor * (size.value - size.low)
    assert wide < scaled - 0.01
    asked = rule(measure="zone_effect", zone="lower right", classes=(0,), change=True)
    limit = replace(asked, at_most=(wide + scaled) / 2)
    (of_all,) = check_rules(pair[1], [limit], pair[0])
    (alone,) = check_rules(pair[1], [replace(limit, fill="red")], pair[0])
    assert [one.state for one in of_all.verdicts if "by red" in one.sentence] == ["undecided"]
    assert alone.state == "violated"


# ---- formats


def hostile(audits, title, name):
    judged = check_rules(
        mcrise.audits.tables.Storage(audits / "shortcut"),
        [rule(measure="color_share", name=title, at_most=0.1)],
    )
    verdicts = tuple(replace(v, sentence=f"{name} {v.sentence}") for v in judged[0].verdicts)
    return [replace(judged[0], verdicts=verdicts)]


def test_junit_is_read_by_an_xml_parser_whatever_names_hold(audits):
    name = ']]></failure><evil a="b" & \'\x00\x1b\ud800'
    text = as_junit(hostile(audits, name, name), 'a"b<c>.toml')
    suite = ElementTree.fromstring(text.encode())
    assert suite.attrib["failures"] == "1"
    assert [one.tag for one in suite.iter()] == ["testsuite", "testcase", "failure"]
    assert suite[0].attrib["name"].startswith(']]></failure><evil a="b" & \'')


def test_an_annotation_is_one_line_whatever_names_hold(audits):
    text = as_github(hostile(audits, "a,b::c\n", "100 %\n::error::boo\r\n"), "rules.toml")
    assert text.startswith("::error file=rules.toml,title=a%2Cb%3A%3Cc".replace("%3Cc", "%3Ac"))
    assert len(text.splitlines()) == 1
    assert "100 %25%0A::error::boo%0D%0A" in text


def test_a_name_begins_no_line_of_the_text_whatever_it_holds(audits):
    text = as_text(hostile(audits, "a\nHOLDS: b", "'c\nHOLDS: d'"), "rules.toml")
    assert text.startswith("VIOLATED: a\\nHOLDS: b\n")
    assert [line for line in text.splitlines() if line.startswith("HOLDS")] == []


def test_formats_are_written_where_asked_too(audits, tmp_path):
    found = run(audits, "twin", CLEAN, "--format", "junit", "--out", str(tmp_path / "junit.xml"))
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert suite.attrib == {"name": "mcrise check", "tests": "1", "failures": "0", "errors": "0"}
    assert found.output.startswith("<?xml")


def test_what_cannot_be_written_leaves_the_old_file(audits, tmp_path, monkeypatch):
    out = tmp_path / "junit.xml"
    out.write_text("the old one")
    monkeypatch.setattr("mcrise._util.files.os.replace", full_disk)
    found = run(audits, "twin", CLEAN, "--format", "junit", "--out", str(out))
    assert isinstance(found.exception, OSError)  # which the command tells in a sentence
    assert [path.read_text() for path in tmp_path.iterdir()] == ["the old one"]


def full_disk(*given):
    raise OSError(28, "No space left on device")


# ---- bad rules


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ("", "has no rules"),
        ("rule = 3", "has no rules"),
        ("[[rule]", "are not TOML"),
        ("a = " + "[" * 5000, "are not TOML: it is nested too deeply"),
        (CLEAN.replace("0.1", f"0x{'f' * 5000}"), "more than 64 bits"),
        (CLEAN.replace("0.1", "9" * 5000), "are not TOML"),
        (
            CLEAN.replace('"zone_effect"', '["accuracy_gray"]'),
            "measure is ['accuracy_gray'], but one of",
        ),
        ("rules = []", "there is no key 'rules': did you mean 'rule'?"),
        ("against = 3\n" + CLEAN, "the path of an audit is needed"),
        (CLEAN + "at_mots = 3", "there is no key 'at_mots': did you mean 'at_most'?"),
        (CLEAN.replace("0.1", '"much"'), "at_most is 'much', but a number is needed"),
        (CLEAN.replace("0.1", "nan"), "at_most is nan"),
        (CLEAN.replace("0.1", "true"), "at_most is True"),
        (CLEAN.replace("zone_effect", "beauty"), "measure is 'beauty', but one of color_share"),
        (CLEAN.replace("lower right", "lower rihgt"), "did you mean 'lower right'?"),
        (CLEAN + 'class = "stpo"', "there is no class 'stpo': did you mean 'stop'?"),
        (CLEAN + "class = 7", "class 7 is unknown: there are 0 to 2"),
        (CLEAN + "class = []", "class is [], but a label"),
        (CLEAN + 'fill = "mauve"', "there is no fill 'mauve': there are red, green, yellow"),
        (CLEAN + "change = true", "there is no audit to compare with"),
        (CLEAN.replace('zone = "lower right"', ""), "zone_effect needs a zone"),
        (CLEAN.replace("zone_effect", "accuracy_gray"), "accuracy_gray is of no zone"),
        ('[[rule]]\nmeasure = "accuracy_gray"', "give at_most or at_least"),
        ("[[rule]]\nat_most = 1", "it has no measure"),
        (
            '[[rule]]\nmeasure = "accuracy_gray"\nfill = "red"\nat_most = 1',
            "only zone_effect is of a fill",
        ),
    ],
)
def test_a_bad_rule_is_a_sentence(audits, rules, sentence):
    found = run(audits, "twin", rules)
    assert isinstance(found.exception, mcrise.InputError)
    assert sentence in str(found.exception)


def test_what_is_no_finished_audit_is_a_sentence(audits, tmp_path):
    found = run(audits, "nowhere", CLEAN)
    assert "holds no audit" in str(found.exception)
    write_audit(audits / "half", [planted_looks(0)], figures=False)
    found = run(audits, "half", CLEAN)
    assert isinstance(found.exception, mcrise.InputError)
    assert "is not finished" in str(found.exception)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("figures.json", "classes", lambda classes: []),
        ("figures.json", "classes", lambda classes: [*classes, classes[0]]),
        ("audit.json", "fills", lambda fills: []),
    ],
)
def test_an_audit_of_nothing_or_of_a_class_twice_is_damaged(audits, tmp_path, name, key, value):
    copy = shutil.copytree(audits / "twin", tmp_path / "copy")
    told = json.loads((copy / name).read_text())
    (copy / name).write_text(json.dumps({**told, key: value(told[key])}))
    found = run(audits, copy, CLEAN)
    assert "is damaged" in str(found.exception)


def test_a_deeply_nested_audit_is_none(audits, tmp_path):
    copy = shutil.copytree(audits / "twin", tmp_path / "copy")
    (copy / "audit.json").write_text("[" * 200_000)
    found = run(audits, copy, CLEAN)
    assert "holds no audit" in str(found.exception)
    found = CliRunner().invoke(diff, [str(audits / "twin"), str(copy)])
    assert "holds no audit" in str(found.exception)


def test_a_class_without_images_is_undecided(audits):
    write_audit(audits / "two", [planted_looks(0), planted_looks(1)])
    found = run(audits, "two", CLEAN + f'class = "{LABELS[2]}"')
    assert found.exit_code == 4
    assert "there are no images of it" in found.output
