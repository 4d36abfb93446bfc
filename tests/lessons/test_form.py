"""Every lesson has the form of a lesson: a short core, a part to skip, pictures, honest times, a place in the table."""

import itertools
import re

from support.make_pages import PARTS

import matplotlib.image
import pytest

from docs.course_site.percent import TASK, read_cells
from minitransformer.course import RECALL, read_recall
from tests.lessons.conftest import LESSONS, every_lesson

LAST_SECTIONS = ("Exercise", "Questions", "Answers")
IN_EVERY_LESSON = {RECALL, "Going deeper", *LAST_SECTIONS}  # all other headings say what comes
MOST_MINUTES, MOST_MINUTES_OF_ALL = 13, 300  # of the cores
ELSEWHERE = "*Somewhere else.* "  # begins a question, or an exercise
LAST_OF_THE_PAPER = "25"  # what comes after it is about something else as a whole
WORDS_A_MINUTE, LINES_A_MINUTE = 220, 25
LONGEST_PROSE = 32  # lines between two pieces of code
LARGEST_FIGURE = 130_000  # bytes
IMPORTS = re.compile(r"^# %% Imports\n(?:(?!# %%).*\n)*", flags=re.MULTILINE)
HIDDEN = re.compile(r"lesson\.(quote|claim|example)\(")
HISTORY = re.compile(r"^# > \*\*(\d{4})\.\*\* (.+(?:\n# > .+)*)", flags=re.MULTILINE)
PAPERS = "**In papers:** "  # begins the last paragraph of a core
NUMBER_OF_ROW = r"^\| <img.+?\[(\d\d)\]"
FEWEST_HANDS = 2  # lines that the reader writes, and numbers that they guess, before seeing ours


def cells(text):
    """The cells of a lesson's source -> [(whether it is prose, its lines)]."""
    _, *parts = re.split(r"^# %%", "\n" + text, flags=re.MULTILINE)
    return [(part.startswith(" [markdown]"), part.splitlines()[1:]) for part in parts]


def halves(lesson):
    """The sources of a lesson's core and of the rest."""
    text = lesson.path.read_text("utf-8")
    core, mark, rest = text.partition("# %% [markdown]\n# ## Going deeper\n")
    assert mark, "there is no cell that begins with ## Going deeper"
    return core, mark + rest


def length(text):
    """(words of prose, lines of code) of a lesson; imports, pictures and tasks in the explorer are not read."""
    words = lines = 0
    for is_prose, content in cells(IMPORTS.sub("", text)):
        if is_prose:
            prose = TASK.sub("", "\n".join(line.lstrip("# ") for line in content if "](../plots/" not in line))
            words += len(prose.split())
        else:
            lines += sum(1 for line in content if line.strip())
    return words, lines


def minutes(text):
    """How long it takes to read."""
    words, lines = length(text)
    return words / WORDS_A_MINUTE + lines / LINES_A_MINUTE


def headings(text):
    """The headings of second order, in order."""
    prose = [line for is_prose, lines in cells(text) if is_prose for line in lines]
    return [line.removeprefix("# ## ") for line in prose if line.startswith("# ## ")]


def test_the_cores_up_to_two_machines_can_be_read_in_five_hours():
    """After them come a file of the reader's own and a model of somebody else's."""
    assert sum(lesson.minutes for lesson in LESSONS if lesson.number <= LAST_OF_THE_PAPER) <= MOST_MINUTES_OF_ALL


def test_the_path_of_a_week_fits_into_five_evenings_of_half_an_hour():
    readme = (LESSONS[0].path.parent / "README.md").read_text("utf-8")
    numbers = re.search(r"\*\*One week\.\*\* Lessons ([\d, and]+),", readme)[1]
    chosen = [lesson for lesson in LESSONS if lesson.number in re.findall(r"\d\d", numbers)]
    assert len(chosen) >= 5
    assert sum(lesson.minutes + lesson.fast_seconds / 60 for lesson in chosen) <= 5 * 30


def test_the_tracks_after_the_paper_are_the_same_in_the_text_in_the_tables_and_on_the_site():
    readme = (LESSONS[0].path.parent / "README.md").read_text("utf-8")
    contents = (LESSONS[0].path.parents[1] / "docs" / "contents.md").read_text("utf-8")
    tables = dict(re.findall(r"^### (.+)\n((?:(?!#).*\n)+)", readme, flags=re.MULTILINE))
    assert list(tables) == [title for title, _ in PARTS.values()]
    rows = [re.findall(NUMBER_OF_ROW, table, re.MULTILINE) for table in tables.values()]
    assert list(itertools.chain(*rows)) == [lesson.number for lesson in LESSONS]
    tracks = re.findall(r"^  \* \*(.+)\*: (.+\.)$", readme, flags=re.MULTILINE)
    assert [title for title, _ in tracks] == [title for number, (title, _) in PARTS.items() if number >= "17"]
    for title, text in tracks:
        assert re.findall(r"\((\d\d)\)", text) == re.findall(NUMBER_OF_ROW, tables[title], re.MULTILINE)
        assert f":caption: {title}\n" in contents


@every_lesson
def test_core_is_short_and_the_header_says_how_long_reading_and_running_take(lesson):
    core, rest = halves(lesson)
    words, lines = length(core)
    assert minutes(core) <= MOST_MINUTES, f"{words} words and {lines} lines of code"
    assert (lesson.minutes, lesson.deeper_minutes) == (round(minutes(core)), round(minutes(rest)))
    assert lesson.pencil_minutes > lesson.minutes
    assert lesson.long == (lesson.seconds > 60)
    assert lesson.fast_seconds <= lesson.seconds
    assert all(number < lesson.number for number in lesson.needs)


@every_lesson
def test_checks_of_the_prose_are_out_of_sight_and_look_at_the_running_example(lesson):
    assert not HIDDEN.search(lesson.path.read_text("utf-8"))
    sidecar = (lesson.path.parent / "checks" / lesson.path.name).read_text("utf-8")
    assert HIDDEN.search(sidecar)
    assert "lesson.example(" in sidecar


@every_lesson
def test_lesson_ends_with_exercise_questions_and_answers(lesson):
    core, rest = halves(lesson)
    found = headings(rest)
    assert found[0] == "Going deeper"
    assert [section for section in found if section in LAST_SECTIONS] == list(LAST_SECTIONS)
    assert not set(LAST_SECTIONS) & set(headings(core))


def test_a_heading_says_what_comes_and_so_no_two_lessons_have_the_same():
    found = [(title, lesson.number) for lesson in LESSONS for title in headings(lesson.path.read_text("utf-8"))]
    places = {title: sorted({number for other, number in found if other == title}) for title, _ in found}
    assert {title: numbers for title, numbers in places.items() if len(numbers) > 1}.keys() == IN_EVERY_LESSON


@every_lesson
def test_the_idea_is_asked_for_once_on_something_else(lesson):
    if lesson.number > LAST_OF_THE_PAPER:
        return
    _, rest = halves(lesson)
    before, asked, after = rest.partition(ELSEWHERE)
    assert asked
    assert ELSEWHERE not in after
    assert headings(before)[-1] in ("Exercise", "Questions")
    number = re.search(r"^# (\d)\. $", before.rpartition("\n")[2])[1]
    answers = after.partition("# ## Answers\n")[2]
    if headings(before)[-1] == "Questions":
        assert re.search(rf"^# {number}\. \S", answers, flags=re.MULTILINE), "without an answer"


@every_lesson
def test_core_begins_with_the_map_and_shows_a_picture(lesson):
    core, _ = halves(lesson)
    assert lesson.figures[0] == f"{lesson.name}_map.png"
    assert f"{lesson.name}.png" in lesson.figures
    shown = re.findall(r"\]\(\.\./plots/([\w.]+)\)", core)
    assert shown[0] == lesson.figures[0]
    assert len(shown) >= 2


@every_lesson
def test_prose_is_a_comment_and_short_between_two_pieces_of_code(lesson):
    for is_prose, lines in cells(lesson.path.read_text("utf-8")):
        assert not is_prose or all(line.startswith("#") or not line for line in lines)
        assert is_prose or any(line and not line.startswith("#") for line in lines)
    for is_prose, lines in cells(lesson.path.read_text("utf-8"))[1:-1]:  # the header and the answers may be longer
        text = [line for line in lines if line.strip("# ")]
        assert not is_prose or len(text) <= LONGEST_PROSE, text[0]


@every_lesson
def test_the_story_begins_in_the_first_cell_and_the_imports_come_after_it(lesson):
    first, second = read_cells(lesson.path.read_text("utf-8"))[:2]
    assert first.prose
    assert headings(lesson.path.read_text("utf-8"))[0] in first.source
    assert second.title == "Imports"
    assert f'begin("{lesson.name}"' in second.source


@every_lesson
def test_three_questions_from_earlier_lessons_are_answered_at_the_end(lesson):
    text, recall = lesson.path.read_text("utf-8"), read_recall(lesson)
    if lesson.number == "00":
        assert not recall
        return
    assert len(recall) == 3
    assert text.count(f"# ## {RECALL}\n") == text.count(f"# ### {RECALL}\n") == 1
    for question, answer in recall:
        number = re.match(r"\((\d\d)\) [A-Z].*\?", question)
        assert number, question
        assert number[1] < lesson.number, question
        assert len(answer.split()) >= 3, answer


@every_lesson
def test_the_reader_writes_or_guesses_before_seeing_ours(lesson):
    core, _ = halves(lesson)
    assert len(re.findall(r"lesson\.(?:judge|compare)\(", core)) >= FEWEST_HANDS
    assert len(re.findall(r"^\w+ = \.\.\.  # ", core, flags=re.MULTILINE)) >= FEWEST_HANDS


@every_lesson
def test_there_is_one_box_of_history(lesson):
    core, rest = halves(lesson)
    ((year, text),) = HISTORY.findall(core)
    assert 1600 < int(year) <= 2026
    assert 30 <= len(text.replace("\n# >", "").split()) <= 90
    assert not HISTORY.findall(rest)


@every_lesson
def test_the_core_ends_with_the_words_of_papers_in_at_most_two_sentences(lesson):
    core, rest = halves(lesson)
    is_prose, lines = cells(core)[-1]
    *_, last = re.split(r"^#$", "\n".join(lines).strip(), flags=re.MULTILINE)
    text = " ".join(line.removeprefix("# ") for line in last.split("\n") if line)
    assert is_prose
    assert text.startswith(PAPERS)
    assert len(re.findall(r"\*[^*]+\*", text.removeprefix(PAPERS))) >= 2, "it names nothing"
    assert len(re.findall(r"\.(?= [A-Z]|$)", text)) <= 2
    assert (core + rest).count(PAPERS) == 1


@every_lesson
def test_figures_are_committed_and_small(lesson):
    for name in lesson.figures:
        assert (lesson.path.parent.parent / "plots" / name).stat().st_size <= LARGEST_FIGURE, name


@pytest.mark.exhaustive
@every_lesson
def test_committed_figures_are_not_blank(lesson):
    for name in lesson.figures:
        path = lesson.path.parent.parent / "plots" / name
        assert matplotlib.image.imread(path)[..., :3].std() > 0.02, name


@every_lesson
def test_readme_has_the_header_and_a_measured_time_within_it(lesson):
    readme = (lesson.path.parent / "README.md").read_text("utf-8")
    (row,) = (line for line in readme.splitlines() if line.startswith("| <img") and f"({lesson.name}.py)" in line)
    _, figure, title, question, read, run, measured, _ = (part.strip() for part in re.split(r"(?<!\\)\|", row))
    assert f"plots/{lesson.name}.png" in figure
    assert lesson.title in title.replace("\\|", "|")
    assert question.replace("\\|", "|") == " ".join(lesson.question.split())
    assert read == f"{lesson.minutes} min + {lesson.deeper_minutes} min, with a pencil {lesson.pencil_minutes} min"
    assert run == f"{lesson.seconds} s" + (", long" if lesson.long else "")
    assert int(re.search(r"in (\d+) s", measured)[1]) <= lesson.seconds
