"""The table of subjects is complete, proves what its rows say, and every row passes to machine precision.

The first test fails for a public function, layer or model that has a backward pass and no row in the table.
"""

import inspect

import numpy as np
import pytest

from minitransformer import functional, layers, models
from minitransformer.backend import backend_name
from minitransformer.config import NORMS, POSITIONS
from minitransformer.core import Layer
from minitransformer.functional.since_2017.activations import ACTIVATIONS, CONV_ACTIVATIONS
from minitransformer.gradcheck.check import randomize_parameters
from minitransformer.gradcheck.judge.report import COMPLEX_STEP
from minitransformer.gradcheck.subjects import SUBJECTS, Sizes, select_subjects, table
from minitransformer.gradcheck.subjects.models import check_loss
from minitransformer.models import Transformer, TransformerConfig

COVERED = [subject.covers for subject in SUBJECTS.values()]
GROUPS = list(dict.fromkeys(subject.group for subject in SUBJECTS.values()))
PAIRS = [name for name in functional.__all__ if f"{name}_backward" in functional.__all__]


def layer_names(package):
    """The public Layer classes of a package."""
    members = {name: getattr(package, name) for name in package.__all__}
    return [name for name, member in members.items() if inspect.isclass(member) and issubclass(member, Layer)]


def test_every_function_with_a_backward_and_every_layer_and_model_has_a_row():
    functions = {"split_heads", "merge_heads", "softmax", "cross_entropy", "embedding", *PAIRS}
    names = {functional: functions, layers: layer_names(layers), models: layer_names(models)}
    assert "Residual" in names[layers]
    assert "Transformer" in names[models]
    assert [name for package in names for name in names[package] if getattr(package, name) not in COVERED] == []


ON_OFF = {True, False}
POSITIONS_OF_SWITCHES = {
    "Linear": {"bias": ON_OFF},
    "softmax": {"mask": {*table.MASKS, *table.ODD_MASKS}},
    "attention": {"mask": {*table.MASKS, *table.ODD_MASKS}},
    "SelfAttention": {"mask": {*table.MASKS, *table.ODD_MASKS}},
    "CrossAttention": {"mask": {*table.MASKS, *table.ODD_MASKS}},
    "FeedForward": {"bias": {False}},
    "ActivatedFeedForward": {"activation": {*ACTIVATIONS}, "bias": ON_OFF},
    "Residual": {"norm": {*NORMS}},
    **{name: {"norm": {*NORMS}, "mask": {*table.MASKS}} for name in ("EncoderLayer", "DecoderLayer")},
    **{name: {"norm": {*NORMS}, "mask": {*table.MASKS}, "bias": ON_OFF} for name in ("Encoder", "Decoder")},
    "Transformer": {"norm": {*NORMS}, "tie_embeddings": ON_OFF, "final_norm": {None, *ON_OFF}, "padding": ON_OFF},
    "GPT": {"positions": {*POSITIONS}},
    "BERT": {"head": {"masked", "classes"}},
    "conv1d": {"causal": ON_OFF, "padded": ON_OFF, "dilation": {1, 2}},
    "Conv1d": {"causal": ON_OFF, "padded": ON_OFF, "bias": ON_OFF, "dilation": {1, 2}},
    "ActivatedConv1d": {"activation": {*CONV_ACTIVATIONS}},
    "ConvLM": {"activation": {*CONV_ACTIVATIONS}, "norm": {*NORMS}, "dilation": {1, 2}, "tie_embeddings": ON_OFF},
    "RelativePositions": {"bidirectional": ON_OFF},
}


def position(row, switch):
    """Where a switch of a row stands: as the row says, or by default."""
    default = getattr(TransformerConfig, switch, None)
    argument = inspect.signature(row.make).parameters.get(switch)
    return row.switches.get(switch, argument.default if argument else default)


@pytest.mark.parametrize("group", POSITIONS_OF_SWITCHES)
def test_every_switch_is_tried_in_every_position(group):
    for switch, positions in POSITIONS_OF_SWITCHES[group].items():
        assert positions <= {position(row, switch) for row in select_subjects([group])}, switch


def test_every_row_can_be_built_without_dropout():
    for subject in SUBJECTS.values():
        assert not position(subject.without_dropout(), "dropout") or "dropout" not in subject.switches


def is_stack(group):
    """Whether the row is put together from layers that have rows of their own."""
    return group in ("EncoderLayer", "DecoderLayer", "Encoder", "Decoder", *layer_names(models))


SINGLE = [group for group in GROUPS if not is_stack(group)]
STACKS = [group for group in GROUPS if is_stack(group)]


def along_directions(subject):
    """The check of one row along one random direction -> Report.

    Each tensor of a single function or layer has its own with NumPy. Else one runs through all tensors together, which
    takes one forward. The command `minitransformer gradcheck`, which `.ci/run` runs too, tries them entry by entry.
    """
    together = backend_name() != "numpy" or is_stack(subject.group)
    return subject.check(max_entries=0, directions=1, together=together)


def assert_right_along_directions(subjects):
    for subject in subjects:
        report = along_directions(subject)
        assert report.passed, str(report)
        assert report.worst.error <= 1e-12
        assert {check.method for check in report.checks} == {COMPLEX_STEP}


@pytest.mark.every_backend
@pytest.mark.parametrize("group", SINGLE)
def test_every_function_and_layer_passes_by_complex_steps_along_a_random_direction(group):
    """Every row, on every backend."""
    assert_right_along_directions(select_subjects([group]))


@pytest.mark.parametrize("group", STACKS)
def test_the_first_row_of_every_stack_and_model_passes_along_a_random_direction(group):
    """By default with NumPy alone: the layers that they are made of are tried on every backend, above."""
    assert_right_along_directions(select_subjects([group])[:1])


@pytest.mark.exhaustive
@pytest.mark.host_only
@pytest.mark.parametrize("group", [group for group in STACKS if len(select_subjects([group])) > 1])
def test_the_other_rows_of_every_stack_and_model_pass_along_a_random_direction(group):
    assert_right_along_directions(select_subjects([group])[1:])


@pytest.mark.weekly
@pytest.mark.host_only
@pytest.mark.parametrize("group", GROUPS)
def test_differences_agree_that_the_complex_step_can_be_trusted_for_every_case(group):
    """The checks of the table ask for the complex step. This is why they may."""
    for subject in select_subjects([group]):
        report = subject.check(method=None, together=True)
        assert report.passed, str(report)
        assert report.reason == "the forward is analytic"


def test_selected_rows_are_those_of_the_groups_in_the_order_of_the_table():
    chosen = [subject.name for subject in select_subjects(["Linear", "relu"])]
    assert chosen == ["relu", "Linear", "Linear bias=False", "Linear blocks=3"]
    assert select_subjects([]) == list(SUBJECTS.values())


@pytest.mark.parametrize("name", ["nonsense", ""])
def test_an_unknown_row_is_refused_with_the_list_of_those_that_are(name):
    with pytest.raises(ValueError, match=f"there is no gradient check called '{name}'; choose from: base, ") as refusal:
        select_subjects(["relu", name])
    assert all(group in str(refusal.value) for group in GROUPS)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "close"), [("sotfmax", "softmax"), ("Softmax", "softmax"), ("layernorm", "layer_norm")]
)
def test_a_misspelled_row_is_refused_with_the_one_that_was_meant(name, close):
    with pytest.raises(ValueError, match=f"no gradient check called '{name}'; did you mean {close}\\?$"):
        select_subjects([name])


def test_a_second_row_of_one_name_is_refused_and_changes_nothing():
    before = dict(SUBJECTS)
    with pytest.raises(ValueError, match="there is a gradient check called 'relu' already"):
        table.register("relu", functional.relu, None)
    assert before == SUBJECTS


def test_all_axes_of_the_table_have_different_lengths():
    """Else a gradient with two axes exchanged has the right shape."""
    lengths = [*Sizes(), Sizes().C, Sizes().max_len]
    assert len(set(lengths)) == len(lengths), lengths


@pytest.mark.parametrize("kind", table.MASKS[1:])
def test_each_mask_of_the_table_hides_what_its_name_says(kind):
    n = Sizes()
    t = s = n.T
    allowed = np.broadcast_to(table.Draw(n, np.random.default_rng(0), np.float64).mask(kind, t, s), (n.B, 1, t, s))
    future = np.triu(np.ones((t, s), bool), 1)
    assert (not allowed[..., future].any()) is (kind in ("causal", "both"))
    assert (not allowed[0, ..., -1].any()) is (kind != "causal")  # the first sequence is padded
    assert (not allowed.any(axis=-1).all()) is (kind == "empty_row")


def test_ids_of_the_table_come_more_than_once():
    for padded in (False, True):
        ids = table.Draw(Sizes(), np.random.default_rng(0), np.float64).ids(Sizes().T, padded)
        assert len(np.unique(ids)) < ids.size
        assert (ids == 0).any() == padded


# where each row must drop something, and the modules in which dropout is called there
NOISY = {
    "Dropout rate=0.3": ["layers.dropout"],
    "FeedForward dropout=0.3": ["layers.dropout"],
    "InputEmbedding dropout=0.3": ["layers.dropout"],
    "SelfAttention dropout": ["functional.attention"],
    "CrossAttention dropout": ["functional.attention"],
    "Residual self norm=post dropout=0.3": ["layers.dropout"],
    "DecoderLayer norm=pre dropout=0.3 mask=both": ["layers.dropout", "functional.attention"],
    "Transformer norm=post tied=True smoothing=0.1 dropout=0.3": ["layers.dropout", "functional.attention"],
}


@pytest.mark.parametrize("name", NOISY)
def test_rows_with_dropout_do_drop(name, monkeypatch):
    for module in NOISY[name]:
        dropped = []

        def spy(x, rate, rng=None, dropped=dropped):
            y, cache = functional.dropout(x, rate, rng)
            dropped.append(bool(((y == 0) & (x != 0)).any()))
            return y, cache

        with monkeypatch.context() as patch:
            patch.setattr(f"minitransformer.{module}.dropout", spy)
            assert along_directions(SUBJECTS[name]).passed
        assert np.any(dropped)


def small_model(**switches):
    """A Transformer of two plus two layers and a batch with padding, all axes of different lengths."""
    sizes = {"vocab_size": 11, "d_model": 12, "num_heads": 3, "d_ff": 7, "num_layers": 2, "max_len": 9}
    model = Transformer(TransformerConfig(**sizes, **switches), dtype=np.float64)
    randomize_parameters(model)
    source, target = np.array([[4, 9, 6, 0, 0], [2, 8, 4, 7, 2]]), np.array([[1, 5, 3, 2, 0], [1, 5, 8, 8, 2]])
    return model, (source, target[:, :-1], target[:, 1:])


def check_whole_model(directions=1):
    """The check of the paper's base model, on a small one: all gradients at once along random directions."""
    model, ids = small_model(dropout=0.2)
    return check_loss(model, *ids, name="small", method=COMPLEX_STEP, together=True, directions=directions)


def test_a_whole_model_is_checked_at_once():
    report = check_whole_model(directions=3)
    assert report.passed, str(report)
    assert report.worst.error <= 1e-13
    model, _ = small_model()
    assert report.worst.shape == (model.num_parameters(),)


@pytest.mark.parametrize(
    "place",
    [
        "layers.embedding.embedding_backward",
        "functional.attention.softmax_backward",
        "layers.layer_norm.layer_norm_backward",
    ],
)
def test_a_mistake_in_one_function_is_found_in_a_whole_model(place, monkeypatch):
    name = place.rpartition(".")[2]
    right = getattr(functional, name)

    def wrong(dy, *rest):
        return right(1.001 * dy, *rest)

    monkeypatch.setattr(f"minitransformer.{place}", wrong)
    assert not check_whole_model().passed
