"""An encoder-only model that fills in masked characters of a text (Devlin et al. 2019)."""

from minitransformer.data import MaskedTask
from minitransformer.models import BERT, TransformerConfig, bert_config
from minitransformer.recipes.text import TextOptions, TextRecipe


class MaskedRecipe(TextRecipe[MaskedTask, BERT]):
    """A BERT on Shakespeare's plays, or on any text, that predicts 15 % of the characters."""

    name = "masked"
    help = "a BERT that predicts masked characters of Shakespeare's plays, or of your own text"
    unit = "masked character"

    def data(self, options: TextOptions) -> MaskedTask:
        """Windows of the text, with characters masked."""
        return MaskedTask(self.text_task(options))

    def model(self, options: TextOptions, data: MaskedTask) -> tuple[type[BERT], TransformerConfig]:
        """A BERT."""
        return BERT, bert_config(data.vocab_size, **options.sizes())
