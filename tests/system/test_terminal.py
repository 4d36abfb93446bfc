"""Output fits the terminal and its encoding."""

import argparse
import io
import json
import sys

import pytest

from minitransformer.cli import COMMANDS, main, parse
from minitransformer.system import terminal
from minitransformer.system.terminal import error_message, print_in_any_encoding, width, wrap, wrap_help

HELP = """\
A paragraph of two
lines.

  minitransformer train        with an explanation
  minitransformer train --option-with-a-name   with a long explanation of six or more words
"""


def test_width_is_that_of_the_terminal_up_to_the_widest_that_is_easy_to_read(monkeypatch):
    for columns, expected in ((80, 80), (40, 40), (300, terminal.WIDEST)):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert width() == expected


def test_without_a_terminal_the_width_is_80(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(sys, "__stdout__", io.StringIO())
    assert width() == 80


def test_lines_are_wrapped_and_indented_without_breaking_paths_and_options(monkeypatch):
    monkeypatch.setenv("COLUMNS", "34")
    text = "see /a/folder/with/a/very/long/name/of/its/own or use --give-up"
    assert wrap(text, "- ", "  ").splitlines() == [
        "- see",
        "  /a/folder/with/a/very/long/name/of/its/own",
        "  or use --give-up",
    ]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (
            72,
            "A paragraph of two lines.\n\n  minitransformer train        with an explanation\n"
            "  minitransformer train --option-with-a-name   with a long explanation\n"
            "                                               of six or more words",
        ),
        (
            40,
            "A paragraph of two lines.\n\n  minitransformer train\n      with an explanation\n"
            "  minitransformer train --option-with-a-name\n      with a long explanation of six or\n      more words",
        ),
    ],
)
def test_explanations_of_a_help_text_are_wrapped_beneath_themselves(columns, expected):
    assert wrap_help(HELP, columns) == expected


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_80_columns(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        parse([*([command] if command else []), "--help"])
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("arguments", [["lesson"], ["progress"], ["devices"], ["gradcheck", "--quick", "relu"]])
def test_output_fits_80_columns(arguments, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    main(arguments)
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > 80] == []


@pytest.fixture
def printed(monkeypatch):
    """printed(encoding, text): what `print` writes to an output with this encoding."""

    def do_print(encoding, text):
        file = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(file, encoding=encoding))
        monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
        print_in_any_encoding()
        print(text)
        return file.getvalue().decode(encoding).rstrip()  # not flushed by this test

    return do_print


@pytest.mark.parametrize(
    ("encoding", "text", "expected"),
    [
        ("utf-8", "√(C/2) ≤ σ² · “ö”", "√(C/2) ≤ σ² · “ö”"),
        ("cp1252", "−q/p ≤ σ² · “ö” → x̂", "?q/p ? ?² · “ö” ? x?"),
        ("ascii", "−q/p ≤ σ² · “ö”", "?q/p ? ?? ? ???"),
    ],
)
def test_characters_that_the_output_lacks_are_question_marks(encoding, text, expected, printed):
    assert printed(encoding, text) == expected


def test_json_stays_json_in_any_encoding(printed):
    text = "".join(map(chr, range(0x80, 0x3000)))
    assert set(json.loads(printed("ascii", json.dumps({"text": text}, ensure_ascii=False)))) == {"text"}


def test_file_names_that_are_not_text_can_be_printed(printed):
    assert printed("utf-8", "x\udcff") == "x?"


def test_missing_output_and_stand_ins_are_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    print_in_any_encoding()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "not enough memory"),
        (MemoryError("Unable to allocate 7 TiB"), "not enough memory: Unable to allocate 7 TiB"),
        (FileNotFoundError(2, "No such file or directory", "a.txt"), "a.txt: No such file or directory"),
        (argparse.ArgumentTypeError("two\nlines"), "two lines"),
    ],
)
def test_error_is_one_line_without_numbers_of_the_system(error, message):
    assert error_message(error) == message
