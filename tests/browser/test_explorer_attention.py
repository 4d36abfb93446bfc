"""The page of a model that is too large for the explorer: its attention alone."""

import numpy as np
import pytest

from minitransformer.explorer import attention_data, sentences_data, write_page
from minitransformer.explorer.writing import ids_writing, toy_writing
from minitransformer.models import BERT, GPT, Transformer, TransformerConfig, bert_config, gpt_config
from minitransformer.tokenizers import CharacterTokenizer
from tests.browser.explorer import count, number, read_by_everybody
from tests.helpers import randomize

pytestmark = pytest.mark.exhaustive
SIZES = {"d_model": 16, "num_heads": 4, "d_ff": 10, "num_layers": 2, "dropout": 0.0, "max_len": 48}
CHOSEN = "return [App.state.map, App.state.head, App.state.cell]"


@pytest.fixture(scope="module", params=["translation", "text", "sentences"])
def shown(request, tmp_path_factory):
    """The data of a page, and its folder."""
    if request.param == "text":
        data = attention_data(GPT(gpt_config(29, **SIZES), seed=3), ids_writing(29), list(range(3, 29)))
    elif request.param == "sentences":
        tokenizer = CharacterTokenizer.train("a cat slept")
        model = randomize(BERT(bert_config(tokenizer.vocab_size, **SIZES)))
        data = sentences_data(model, tokenizer, "a cat", "pets slept")
    else:
        model = Transformer(TransformerConfig(29, **SIZES), seed=3)
        data = attention_data(model, toy_writing("reverse"), [5, 9, 3], [4, 8])
    folder = tmp_path_factory.mktemp(request.param) / "page"
    write_page(data, folder)
    return data, folder


def test_all_heads_are_shown_and_read_by_everybody(page, shown):
    data, folder = shown
    page.open(folder)
    assert count(page, "button.head") == 4 * len(data["maps"])
    place, head, cell = page.script(CHOSEN)
    products = [each["products"] for each in data["maps"]]
    sizes = products if "writes" in data else list(map(np.abs, products))
    assert np.ravel(sizes[place][head])[cell] == max(array.max() for array in sizes)
    total = page.script("return document.querySelector('[data-focus=\"1.2\"] small').textContent")
    assert total == number(page, data["maps"][1]["products"][2].sum())
    said = number(page, data["cosine"] if "cosine" in data else data["log_probability"])
    assert f" is {said}" in page.text("header")
    read_by_everybody(page, widths=(360, 768, 1440))


def test_a_click_enlarges_a_head_and_the_arrow_keys_read_its_numbers(page, shown):
    data, folder = shown
    page.open(folder, width=1440)
    page.click("[data-focus='1.2']")
    assert page.script(CHOSEN)[:2] == [1, 2]
    page.script("document.querySelector('.detail canvas[data-kind=gradient]').focus()")
    page.press("HOME", "ARROW_DOWN")
    columns = data["maps"][1]["weights"].shape[2]
    assert page.script(CHOSEN) == [1, 2, columns]
    assert page.script("return document.activeElement.dataset.kind") == "gradient"
    weight = number(page, data["maps"][1]["weights"][2, 1, 0])
    assert f"with the weight {weight}." in page.text("output")
    assert count(page, ".looks li") == columns
