"""Parsing: from Python's own expressions to the trees that `ast` makes of them (paper section 6.3)."""

from typing import Any

from minitransformer.data.parsing import ParsingTask, bracket_f1
from minitransformer.recipes.toy import ToyOptions, ToyRecipe


class ParsingRecipe(ToyRecipe):
    """Parsing. The options' defaults take about two minutes."""

    def task(self, options: ToyOptions) -> ParsingTask:
        """The task with all of its examples."""
        return ParsingTask()

    def evaluate(self, options: ToyOptions, model: Any, data: Any) -> tuple[dict[str, Any], Any]:
        """Exact match and bracket F1 on held-out examples."""
        result, (batch, decoded) = super().evaluate(options, model, data)
        answers, trees = (
            [self.task(options).decode(row).split() for row in rows] for rows in (decoded, batch.target_out)
        )
        return {**result, "bracket_f1": bracket_f1(answers, trees)}, (batch, decoded)

    def report(self, trained: Any) -> list[str]:
        """The scores, three examples, and the tree of the longest of them."""
        task, (batch, decoded) = self.task(trained.options), trained.evaluated
        source, answer = max(zip(map(task.decode, batch.source[:3]), map(task.decode, decoded), strict=False), key=len)
        lines = [f"{'bracket F1':<26} {100 * trained.result['bracket_f1']:.1f}"]
        return [*super().report(trained), *lines, "", *task.show(source, answer), ""]


PARSING = ParsingRecipe("parsing", "f(x) -> (Call N N )   the trees of Python's expressions", steps=6500, batch_size=32)
