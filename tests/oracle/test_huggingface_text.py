"""Text that `transformers` generates from a folder equals ours, and the files that it saves become the same weights."""

import json
import math

import pytest

from minitransformer.evaluation import strided_windows, windowed_loss
from minitransformer.interop import load_huggingface, load_huggingface_tokenizer, load_text_model
from minitransformer.tokenizers.words import PATTERNS
from tests.cli.run import run
from tests.tokenizers.texts import TEXTS

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

from tests.oracle.huggingface_modules import quiet  # noqa: E402 - it needs transformers

PROMPTS = ["The mill", "Größe", "<|endoftext|>The", " \n\n x", "👋🏽 wind"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A GPT-2 with random weights, large enough that no two tokens are about equally likely, and its tokenizer."""
    path = tmp_path_factory.mktemp("gpt2")
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(TEXTS.values(), vocab_size=500, special_tokens=["<|endoftext|>"], show_progress=False)
    trained.save(str(path / "tokenizer.json"))
    torch.manual_seed(3)
    sizes = {"n_positions": 64, "n_embd": 48, "n_head": 4, "n_layer": 2}
    config = transformers.GPT2Config(vocab_size=trained.get_vocab_size(), **sizes, eos_token_id=0, bos_token_id=0)
    model = transformers.GPT2LMHeadModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(6)
    with quiet():
        model.save_pretrained(path)
    return path


@pytest.mark.parametrize("prompt", [PROMPTS[0], *(pytest.param(p, marks=pytest.mark.exhaustive) for p in PROMPTS[1:])])
def test_greedy_text_equals_theirs(folder, prompt):
    with quiet():
        model = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
        theirs = transformers.AutoTokenizer.from_pretrained(folder)
    ids = theirs(prompt, return_tensors="pt")
    assert load_huggingface_tokenizer(folder).encode(prompt).tolist() == ids["input_ids"][0].tolist()
    new = model.generate(**ids, do_sample=False, max_new_tokens=40, pad_token_id=0)[0, ids["input_ids"].shape[1] :]
    pieces = list(load_text_model(folder).continue_text(prompt, 40))
    assert "".join(piece.text for piece in pieces) == theirs.decode(new, skip_special_tokens=True)
    assert sum(piece.log_prob is not None for piece in pieces) == len(new)


def later_tokenizer(pattern, begin):
    """A byte-level tokenizer with the pattern of a later model, and its token before a text if it has one."""
    trained = tokenizers.Tokenizer(tokenizers.models.BPE(ignore_merges=bool(begin)))
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(PATTERNS[pattern]), "isolated")
    as_bytes = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trained.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([split, as_bytes])
    trained.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    special = ["<|endoftext|>", *([begin] if begin else [])]
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=500, special_tokens=special, initial_alphabet=alphabet)
    trained.train_from_iterator(TEXTS.values(), trainer)
    if begin:
        processor = tokenizers.processors.TemplateProcessing(f"{begin} $A", special_tokens=[(begin, 1)])
        trained.post_processor = tokenizers.processors.Sequence([tokenizers.processors.ByteLevel(), processor])
    else:
        trained.normalizer = tokenizers.normalizers.NFC()
    return trained


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "pattern", "begin"), [("Qwen3", "qwen", ""), ("Llama", "llama3", "<|begin_of_text|>")]
)
def test_greedy_text_of_a_later_decoder_equals_theirs(name, pattern, begin, tmp_path):
    tokenizer = later_tokenizer(pattern, begin)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    sizes |= {"head_dim": 10, "intermediate_size": 36, "max_position_embeddings": 64, "eos_token_id": 0}
    torch.manual_seed(4)
    config = getattr(transformers, f"{name}Config")(vocab_size=tokenizer.get_vocab_size(), **sizes)
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(6 if parameter.ndim == 2 else 1)
    with quiet():
        model.save_pretrained(tmp_path)
    ours = load_text_model(tmp_path)
    for prompt in ("The mill", "Gro\u0308\u00dfe 12345", "<|endoftext|>I'LL \n\n x"):
        ids = torch.tensor([tokenizer.encode(prompt).ids])
        assert ours.tokenizer.encode(prompt).tolist() == ids[0].tolist()
        new = model.generate(ids, do_sample=False, max_new_tokens=30, pad_token_id=0)[0, ids.shape[1] :].tolist()
        pieces = list(ours.continue_text(prompt, 30))
        assert "".join(piece.text for piece in pieces) == tokenizer.decode(new)
        assert sum(piece.log_prob is not None for piece in pieces) == len(new)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("dtype", "shard"), [("bfloat16", "20KB"), ("float16", "10GB"), ("float64", "10GB")])
def test_files_of_every_dtype_and_in_shards_become_the_weights_that_torch_reads(folder, dtype, shard, tmp_path):
    with quiet():
        model = transformers.GPT2LMHeadModel.from_pretrained(folder).to(getattr(torch, dtype))
        model.save_pretrained(tmp_path, max_shard_size=shard)
    assert (tmp_path / "model.safetensors.index.json").exists() == (shard == "20KB")
    state = {name.removeprefix("transformer."): tensor for name, tensor in model.state_dict().items()}
    ours = dict(load_huggingface(tmp_path).named_parameters())
    pairs = {"embedding.tokens.E": "wte.weight", "embedding.positions.P": "wpe.weight", "blocks.norm.beta": "ln_f.bias"}
    for i in range(2):
        layer = f"blocks.layers.{i}"
        pairs[f"{layer}.self_attention.sublayer.qkv.W"] = f"h.{i}.attn.c_attn.weight"
        pairs[f"{layer}.feed_forward.sublayer.contract.b"] = f"h.{i}.mlp.c_proj.bias"
    for name, theirs in pairs.items():
        assert (ours[name].data == state[theirs].float().numpy()).all(), name


@pytest.mark.parametrize("stride", [32, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in (2, 7, 63, 64))])
def test_perplexity_is_that_of_the_windows_in_their_documentation(folder, stride, tmp_path, capsys):
    text = "".join(TEXTS.values())[:900]
    (tmp_path / "my.txt").write_text(text, "utf8")
    status, out, _ = run(capsys, "evaluate", folder, "--text", tmp_path / "my.txt", "--stride", stride, "--json")
    with quiet():
        model = transformers.GPT2LMHeadModel.from_pretrained(folder).double().eval()
        ids = transformers.AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt").input_ids
    theirs = their_perplexity(model, ids, model.config.n_positions, stride)
    ours = load_huggingface(folder, dtype="float64")
    nats = windowed_loss(ours, ids[0].numpy(), strided_windows(ids.shape[1], 64, stride))
    assert math.exp(nats) == pytest.approx(theirs, rel=1e-9)
    assert status == 0
    assert json.loads(out.splitlines()[-1])["nats"] == pytest.approx(math.log(theirs), rel=1e-6)  # in float32


def their_perplexity(model, ids, max_length, stride):
    """The loop of "Perplexity of fixed-length models" in the documentation of transformers, with the right weights."""
    total, count, previous_end = 0.0, 0, 0
    for begin in range(0, ids.shape[1], stride):
        end = min(begin + max_length, ids.shape[1])
        new = end - previous_end
        window = ids[:, begin:end]
        labels = window.clone()
        labels[:, :-new] = -100
        with torch.no_grad():
            logits = model(window).logits  # their own loss would round these to float32
        loss = torch.nn.functional.cross_entropy(logits[0, :-1], labels[0, 1:], ignore_index=-100)
        terms = (labels[:, 1:] != -100).sum().item()  # theirs takes 1 from each, although only the first lacks one
        total, count = total + loss.item() * terms, count + terms
        previous_end = end
        if end == ids.shape[1]:
            break
    return math.exp(total / count)
