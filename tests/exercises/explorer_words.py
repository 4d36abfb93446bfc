"""`python -m tests.exercises.explorer_words`: the words of the explorer's mistakes, from the list."""

import json
import re

from minitransformer.course import PACKAGE
from minitransformer.exercises.known import known

STRINGS = PACKAGE / "explorer" / "page" / "strings.js"
BLOCK = re.compile(r"(?<=\n  mistakes: \{\n)(?:    .+\n)*(?=  \},\n)")


def ids():
    """The ids of the mistakes that the page plants, in their order."""
    text = (PACKAGE / "explorer" / "page" / "mistakes.js").read_text("utf-8")
    return list(dict.fromkeys(re.findall(r'id: "([\w-]+)",\s+kind: ', text)))


def block():
    """The lines of strings.js with the name, the question and the moral of each mistake."""
    lines = []
    for id in ids():
        mistake = known(id)
        words = {
            "name": mistake.name[0].upper() + mistake.name[1:],
            "text": mistake.question.replace("`", ""),
            "moral": mistake.moral,
        }
        lines.append(f'    "{id}": {{\n')
        lines += [f"      {key}: {json.dumps(value, ensure_ascii=False)},\n" for key, value in words.items()]
        lines.append("    },\n")
    return "".join(lines)


if __name__ == "__main__":
    STRINGS.write_text(BLOCK.sub(lambda _: block(), STRINGS.read_text("utf-8")), "utf-8")
    print(f"wrote {STRINGS}")
