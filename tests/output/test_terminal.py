"""Sentences in a terminal: swatches where there are colors to be seen, plain text elsewhere."""

import io

import pytest
from rich.console import Console

from mcrise.fills import RGBWK
from mcrise.output import terminal
from mcrise.output.terminal import print_lines, with_swatches

LINE = "Painted blue, 'red light' falls to 0.10; filled with its average color (#f0b800) it keeps."


def test_each_color_that_is_named_has_its_swatch():
    text = with_swatches(LINE, RGBWK)
    assert text.plain == LINE.replace("blue", "■ blue").replace("#f0b800", "■ #f0b800")
    colors = [span.style for span in text.spans]
    assert colors == ["rgb(0,0,255)", "rgb(240,184,0)"]


def test_a_color_that_begins_a_sentence_has_its_swatch():
    assert with_swatches("Green and white lower it.", RGBWK).plain == (
        "■ Green and ■ white lower it."
    )


def test_a_label_that_holds_a_color_has_no_swatch():
    assert "■" not in with_swatches("The model says 'red light' or “blue whale”.", RGBWK).plain


def test_where_there_is_no_terminal_lines_are_plain(capsys):
    print_lines([LINE, "two\nlines \x1b[31m"], RGBWK)
    assert capsys.readouterr().out == f"{LINE}\ntwo\\nlines \\x1b[31m\n"


@pytest.mark.parametrize(("settings", "swatched"), [({}, True), ({"no_color": True}, False)])
def test_a_terminal_gets_colors_unless_they_are_unwanted(monkeypatch, capsys, settings, swatched):
    written = io.StringIO()

    def console():
        return Console(file=written, force_terminal=True, color_system="truecolor", **settings)

    monkeypatch.setattr(terminal, "Console", console)
    print_lines([LINE], RGBWK)
    assert ("\x1b[38;2;0;0;255m■" in written.getvalue()) == swatched
    assert (capsys.readouterr().out == f"{LINE}\n") == (not swatched)
