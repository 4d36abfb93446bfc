"""Long sequences and large batches: `train` says beforehand what they need, what is free, and what makes it fit."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.measuring.timing import resident_peak
from minitransformer.backend import use_backend
from minitransformer.layers import Recomputed
from minitransformer.models import BERT, GPT
from minitransformer.recipes import memory
from minitransformer.system import devices
from minitransformer.system.files import read_safetensors
from minitransformer.training import load_checkpoint
from tests.cli.run import assert_refused, run, stopping_after
from tests.helpers import relative_error
from tests.kills import same_weights

MB = 1_000_000
TASK = ("train", "copy", "--cooldown", 0, "--overwrite")  # so there are averages, which need memory
COPY = (*TASK, "--steps", 2, "--threads", 1)
RESUMED = (*TASK, "--steps", 4, "--batch-size", 64, "--dropout", 0.1, "--name", "copy")
OPTIONS = {
    "copy": ["--batch-size"],
    "copy --config base": ["--batch-size", "--config"],
    "copy --model gpt": ["--batch-size"],
    "shakespeare --text text.txt": ["--batch-size", "--length", "--d-model", "--num-layers", "--vocab-size"],
    "masked --text text.txt": ["--batch-size", "--length", "--d-model", "--num-layers"],
}

QUICK = ("copy", "masked --text text.txt")


@pytest.fixture
def free(monkeypatch, tmp_path):
    """free(bytes): so many there are. The current folder has a text and nothing else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("minitransformer.recipes.toy.TESTED", 20)
    letters = np.random.default_rng(0).choice(list("abcdefgh "), 20_000)
    (tmp_path / "text.txt").write_text("".join(letters), encoding="utf8")
    return lambda amount: monkeypatch.setattr(memory, "free_memory", lambda: amount)


def needed(outcome):
    """The bytes that a refusal speaks of -> what is needed, and with the parts that it advises, or None."""
    sizes = {"MB": MB, "GB": 1000 * MB}
    found = [float(number.replace(",", "")) * sizes[unit] for number, unit in re.findall(r"([\d,.]+) ([MG]B)", outcome)]
    return found[0], found[2] if len(found) > 2 else None


@pytest.mark.parametrize(
    "task", [pytest.param(task, marks=() if task in QUICK else pytest.mark.exhaustive) for task in OPTIONS]
)
def test_what_does_not_fit_is_refused_in_one_line_and_takes_no_memory(task, free, capsys, tmp_path):
    free(4000 * MB)
    before = resident_peak()
    outcome = run(capsys, "train", *task.split(), "--batch-size", 2_000_000)
    smaller = f"a smaller {' or '.join(OPTIONS[task])} needs less"
    assert_refused(outcome, "GB of memory, and 4.0 GB are free: --grad-acc", smaller, "--force trains all the same")
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]
    assert resident_peak() - before < 100 * MB


def test_the_micro_batches_that_are_advised_are_the_fewest_powers_of_two_that_fit(free, capsys):
    free(44 * MB)
    outcome = run(capsys, *COPY)
    assert_refused(outcome, "--grad-accumulation-steps 2 computes the same with ")
    need, less = needed(outcome.err)
    assert less < 44 * MB < need
    free(38 * MB)
    assert_refused(run(capsys, *COPY), "--grad-accumulation-steps 4 computes the same with ")
    outcome = run(capsys, *COPY, "--grad-accumulation-steps", 2)
    assert_refused(outcome, "--grad-accumulation-steps 4 computes the same with ")


def test_where_one_sequence_is_too_much_no_smaller_batch_is_advised(free, capsys):
    free(15 * MB)
    outcome = run(capsys, "train", "shakespeare", "--text", "text.txt")
    assert_refused(outcome, "a smaller --length or --d-model or --num-layers or --vocab-size needs less")
    assert "--grad-accumulation-steps" not in outcome.err
    assert "--batch-size" not in outcome.err


def test_force_trains_all_the_same_and_says_so(free, capsys):
    free(MB)
    outcome = run(capsys, *COPY, "--batch-size", 4, "--force")
    assert (outcome.status, outcome.err) == (0, "")
    assert "and 1 MB are free: training all the same (--force)" in outcome.out


def test_training_in_parts_learns_the_same(free, capsys, tmp_path):
    weights = []
    for parts, amount in ((1, None), (4, 500 * MB)):
        free(amount)
        outcome = run(capsys, *COPY, "--batch-size", 10, "--grad-accumulation-steps", parts, "--name", f"{parts}")
        assert (outcome.status, outcome.err) == (0, "")
        assert "free" not in outcome.out, "nobody knows, or it fits"
        weights.append(load_checkpoint(tmp_path / "runs" / f"{parts}" / "model.safetensors")[0].state_dict())
    whole, cut = weights
    name = "decoder.layers.0.feed_forward.sublayer.expand.W"
    assert not same_weights(whole, cut), "the sums are rounded otherwise"
    assert relative_error(cut[name], whole[name]) < 1e-5


def stop_after_two(capsys, *options):
    """A run that is stopped after its second step."""
    with stopping_after(2):
        assert run(capsys, *RESUMED, *options).status == 130


@pytest.mark.exhaustive
def test_run_with_micro_batches_is_resumed_with_the_same_bits(free, capsys, tmp_path):
    free(None)
    stop_after_two(capsys, "--grad-accumulation-steps", 3)
    assert run(capsys, "train", "--resume", "runs/copy").status == 0
    assert run(capsys, *RESUMED, "--grad-accumulation-steps", 3, "--runs", "whole").status == 0
    resumed, whole = (read_safetensors(tmp_path / name / "copy" / "model.safetensors")[0] for name in ("runs", "whole"))
    assert same_weights(resumed, whole)


def test_to_recompute_is_advised_if_it_fits_and_gives_a_resumed_run_the_same_bits(free, capsys, tmp_path, monkeypatch):
    free(None)
    stop_after_two(capsys)
    free(44 * MB)
    resume = ("train", "--resume", "runs/copy")
    refused = run(capsys, *resume)
    assert refused.status == 2
    assert re.search("MB are free: --recompute computes the same with .*, in more time;", refused.err)
    need, less = needed(refused.err)
    assert less < 44 * MB < need
    again = []
    monkeypatch.setattr(Recomputed, "backward", counting(Recomputed.backward, again))
    resumed = run(capsys, *resume, "--recompute")
    assert len(again) > 0
    assert (resumed.status, resumed.err) == (0, "")
    assert "bit-identical" not in resumed.out
    free(None)
    assert run(capsys, *RESUMED, "--runs", "whole").status == 0
    weights = [read_safetensors(tmp_path / name / "copy" / "model.safetensors")[0] for name in ("runs", "whole")]
    assert same_weights(*weights)


@pytest.mark.exhaustive
def test_a_run_that_no_longer_fits_is_resumed_in_micro_batches_or_by_force(free, capsys):
    free(None)
    stop_after_two(capsys)
    free(40 * MB)
    resume = ("train", "--resume", "runs/copy")
    refused = run(capsys, *resume)
    assert refused.status == 2
    assert "--grad-accumulation-steps 2 computes the same" in refused.err
    assert "--batch-size" not in refused.err, "the batches are those that it was started with"
    assert run(capsys, *resume, "--grad-accumulation-steps", 2).status == 0
    free(None)
    stop_after_two(capsys)
    free(40 * MB)
    assert run(capsys, *resume, "--force").status == 0


@pytest.mark.parametrize("task", ["masked", pytest.param("shakespeare", marks=pytest.mark.exhaustive)])
def test_text_is_read_and_judged_by_no_more_sequences_at_once_than_asked_for(task, free, capsys, monkeypatch):
    free(None)
    rows = []
    for kind in (GPT, BERT):
        monkeypatch.setattr(kind, "features", counting(kind.features, rows))
    text = ("--text", "text.txt", "--length", 16, "--d-model", 8, "--num-layers", 1)
    sizes = ("--steps", 2, "--batch-size", 7, "--grad-accumulation-steps", 3, "--threads", 1)
    assert run(capsys, "train", task, *text, *sizes).status == 0
    assert (max(rows), len(rows) > 30) == (3, True)


def counting(features, rows):
    def counted(self, ids, *more, **options):
        rows.append(len(ids))
        return features(self, ids, *more, **options)

    return counted


def files(root, **texts):
    """Make files under `root`; in a name, __ stands for / and _dot_ for a dot."""
    for name, text in texts.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf8")
    return root


def test_linux_says_what_is_available(tmp_path):
    files(tmp_path, proc__meminfo="MemTotal: 24000 kB\nMemFree: 100 kB\nMemAvailable:   7000 kB\n")
    assert devices.available_on_linux(tmp_path) == 7000 * 1024
    assert devices.available_on_linux(tmp_path / "elsewhere") is None


def test_the_limits_of_all_control_groups_around_the_process_are_read(tmp_path):
    group = "sys__fs__cgroup__a__"
    files(tmp_path, proc__self__cgroup="0::/a/b\n")
    files(tmp_path, **{f"{group}b__memory_dot_max": "max\n", f"{group}b__memory_dot_current": "5\n"})
    files(tmp_path, **{f"{group}b__memory_dot_stat": "inactive_file 2\n"})
    assert devices.left_in_groups(tmp_path) == []
    files(tmp_path, **{f"{group}memory_dot_max": "1000\n", f"{group}memory_dot_current": "700\n"})
    files(tmp_path, **{f"{group}memory_dot_stat": "anon 3\ninactive_file 50\n"})
    assert devices.left_in_groups(tmp_path) == [1000 - 700 + 50]
    files(tmp_path, **{f"{group}b__memory_dot_max": "90\n"})
    assert devices.left_in_groups(tmp_path) == [90 - 5 + 2, 350]


def test_control_groups_of_the_first_version_are_read_also_where_a_container_sees_its_own_as_the_root(tmp_path):
    files(tmp_path, proc__self__cgroup="5:memory:/docker/0123\n1:cpu:/\n")
    place = "sys__fs__cgroup__memory__memory_dot_"
    files(tmp_path, **{f"{place}limit_in_bytes": "800\n", f"{place}usage_in_bytes": "900\n", f"{place}stat": ""})
    assert devices.left_in_groups(tmp_path) == [0]
    assert devices.left_in_groups(tmp_path / "elsewhere") == []


def test_a_limit_of_the_address_space_counts(tmp_path, monkeypatch):
    resource = pytest.importorskip("resource")
    files(tmp_path, proc__self__statm="10 7 3 0 0 0 0\n")
    assert devices.left_of_address_space(tmp_path) is None
    monkeypatch.setattr(resource, "getrlimit", lambda which: (50 * resource.getpagesize(), -1))
    assert devices.left_of_address_space(tmp_path) == 40 * resource.getpagesize()


def test_the_least_of_all_that_is_known_is_free_and_nothing_is_known_elsewhere(monkeypatch):
    for name, answer in (("available_on_linux", 70), ("left_in_groups", [90, 60]), ("left_of_address_space", 65)):
        monkeypatch.setattr(devices, name, lambda answer=answer: answer)
    assert devices.free_memory() == 60
    for name, answer in (("available_on_linux", None), ("left_in_groups", []), ("left_of_address_space", None)):
        monkeypatch.setattr(devices, name, lambda answer=answer: answer)
    assert devices.free_memory() is None


def test_a_gpu_is_asked_itself_and_what_cupy_keeps_for_later_is_free(monkeypatch):
    runtime = SimpleNamespace(memGetInfo=lambda: (300, 1000))
    gpu = SimpleNamespace(__name__="cupy", ndarray=np.ndarray, cuda=SimpleNamespace(runtime=runtime))
    gpu.get_default_memory_pool = lambda: SimpleNamespace(free_bytes=lambda: 40)
    with use_backend(gpu):
        assert devices.free_memory() == 340
