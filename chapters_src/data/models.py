"""The family of transformers, one row per model: the data of chapter 11, and of the pictures of chapter 01.

A row of `models/models.csv`, beside this file, has a model's name, release date, training, architecture, and
the number of parameters in its paper. It also names a class of the Transformers library and its settings for
the published size, and for a tiny one. So `build` makes every model without a network, and `count_by_hand`
adds up its parameters from those settings alone.

To add a model, add a row. If its class is new, a formula here lets the tests count it by hand, too. The card,
`models.md`, describes the columns, the sources and the limits.
"""

import ast
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd
    from transformers import PreTrainedModel

_NUMBERS = ("context", "vocabulary", "paper_parameters", "at_work")  # Integers that a model may lack.
_FILE = Path(__file__).with_suffix("") / "models.csv"


def load() -> "pd.DataFrame":
    """Load the models, one row each, indexed by name, with the columns that the card describes.

    Missing numbers are `<NA>`, missing text is empty.
    """
    import pandas as pd

    return pd.read_csv(
        _FILE,
        index_col="name",
        dtype=dict.fromkeys(_NUMBERS, "Int64"),
        na_values={name: [""] for name in _NUMBERS},
        keep_default_na=False,
    )


def libraries() -> "pd.DataFrame":
    """Load the libraries around the models: `models/libraries.csv`. Chapter 01 draws them.

    There is one row per library, indexed by name, with the columns "level" (from 0, at the top of the
    picture), "does" (in a few words) and "gives_to" (others, one level below, separated by spaces).
    """
    import pandas as pd

    return pd.read_csv(_FILE.with_name("libraries.csv"), index_col="name", keep_default_na=False)


def settings(row: Mapping[str, Any], size: Literal["published", "tiny"]) -> dict[str, Any]:
    """Read the arguments of a configuration from a row of `load`; tiny ones replace published ones.

    Raises:
        ValueError: the size is unknown, or the settings do not have the form `name=value name=value`.
    """
    if size not in ("published", "tiny"):
        raise ValueError(f'size={size!r}: it must be "published" or "tiny"')
    read = _read(row["published"])
    return read if size == "published" else read | _read(row["tiny"])


def build(row: Mapping[str, Any], size: Literal["published", "tiny"]) -> "PreTrainedModel":
    """Make a model with random weights on the current device; `with torch.device("meta")` needs no memory.

    It is of the class that the row of `load` names, ready for evaluation.

    Raises:
        ValueError: the library has no class for this model, or the size is unknown.
    """
    import transformers

    if not row["model_class"]:
        raise ValueError(f"the library has no class for this model of {row['year']}: build it from modules")
    model_class = getattr(transformers, row["model_class"])
    return model_class(model_class.config_class(**settings(row, size))).eval()


def count_by_hand(row: Mapping[str, Any], *, at_work: bool = False) -> int:
    """Add up the parameters of a row's class at its published size, from its settings alone.

    A matrix that is used twice counts once. `at_work`: of the experts of a layer, only as many as work on a
    token count.

    Raises:
        ValueError: there is no formula for that class yet.
    """
    if row["model_class"] not in FORMULAS:
        raise ValueError(
            f"no formula for the class {row['model_class']!r}: there are {', '.join(sorted(FORMULAS))}"
        )
    return FORMULAS[row["model_class"]](**settings(row, "published"), at_work=at_work)


def _read(text: str) -> dict[str, Any]:
    read = {}
    for item in text.split():
        name, _, value = item.partition("=")
        try:
            read[name] = ast.literal_eval(value)
        except (SyntaxError, ValueError):
            raise ValueError(
                f"{item!r} is not a setting: write name=value, a Python literal without spaces"
            ) from None
    return read


# The parts that formulas share ----------------------------------------------------------------------------


class _Settings(SimpleNamespace):
    """The settings of a configuration by their names in the library; here, those that most do not have."""

    at_work = False  # Of experts, count only those that work on a token.
    head_dim: int | None = None
    query_bias = False
    tie_word_embeddings = False

    def but(self, **changed: Any) -> "_Settings":
        """Return them with some of them changed."""
        return _Settings(**vars(self) | changed)


FORMULAS: dict[str, Callable[..., int]] = {}  # By class of the library; each takes settings by name.


def _of(*classes: str) -> Callable[[Callable[[_Settings], int]], Callable[[_Settings], int]]:
    """Make a function of settings the formula of some classes."""

    def register(formula: Callable[[_Settings], int]) -> Callable[[_Settings], int]:
        FORMULAS.update(dict.fromkeys(classes, lambda **settings: formula(_Settings(**settings))))
        return formula

    return register


def _linear(inputs: int, outputs: int, bias: bool = True) -> int:
    return inputs * outputs + bias * outputs


def _norm(width: int, bias: bool = True) -> int:
    return width * (1 + bias)


def _attention(width: int) -> int:
    return 4 * _linear(width, width)  # Query, key, value, output.


def _feed_forward(width: int, inner: int) -> int:
    return _linear(width, inner) + _linear(inner, width)


def _layer(width: int, inner: int, attentions: int = 1) -> int:
    """Count an original (2017) layer: each sublayer with its norm; a decoder layer has two attentions."""
    norms = (attentions + 1) * _norm(width)
    return attentions * _attention(width) + _feed_forward(width, inner) + norms


# Encoders -------------------------------------------------------------------------------------------------


def _bert_body(s: _Settings) -> int:
    rows = s.vocab_size + s.max_position_embeddings + s.type_vocab_size
    layers = s.num_hidden_layers * _layer(s.hidden_size, s.intermediate_size)
    return rows * s.hidden_size + _norm(s.hidden_size) + layers


@_of("BigBirdModel", "RobertaModel", "XLMRobertaModel")
def _bert_with_pooler(s: _Settings) -> int:
    return _bert_body(s) + _linear(s.hidden_size, s.hidden_size)


@_of("BertForPreTraining")
def _bert(s: _Settings) -> int:
    masked = _linear(s.hidden_size, s.hidden_size) + _norm(s.hidden_size) + s.vocab_size  # Shares its matrix.
    return _bert_with_pooler(s) + masked + _linear(s.hidden_size, 2)


@_of("DistilBertModel")
def _distilbert(s: _Settings) -> int:
    rows = s.vocab_size + s.max_position_embeddings
    return rows * s.dim + _norm(s.dim) + s.n_layers * _layer(s.dim, s.hidden_dim)


@_of("XLMModel")
def _xlm(s: _Settings) -> int:
    rows = s.vocab_size + s.max_position_embeddings + s.n_langs
    return rows * s.emb_dim + _norm(s.emb_dim) + s.n_layers * _layer(s.emb_dim, 4 * s.emb_dim)


@_of("AlbertModel")
def _albert(s: _Settings) -> int:
    rows = s.vocab_size + s.max_position_embeddings + s.type_vocab_size
    embedding = rows * s.embedding_size + _norm(s.embedding_size) + _linear(s.embedding_size, s.hidden_size)
    return embedding + _layer(s.hidden_size, s.intermediate_size) + _linear(s.hidden_size, s.hidden_size)


@_of("ElectraForPreTraining")
def _electra(s: _Settings) -> int:
    if s.embedding_size != s.hidden_size:
        raise ValueError(f"embedding_size={s.embedding_size} has to be hidden_size={s.hidden_size} here")
    return _bert_with_pooler(s) + _linear(s.hidden_size, 1)


@_of("DebertaModel")
def _deberta(s: _Settings) -> int:
    content = 3 * s.hidden_size**2 + 2 * s.hidden_size  # Only query and value have a bias.
    position = _linear(s.hidden_size, s.hidden_size, bias=False) + _linear(s.hidden_size, s.hidden_size)
    attention = content + position + _linear(s.hidden_size, s.hidden_size)
    layer = attention + _feed_forward(s.hidden_size, s.intermediate_size) + 2 * _norm(s.hidden_size)
    rows = s.vocab_size + 2 * s.max_position_embeddings  # Of words and of distances.
    return rows * s.hidden_size + _norm(s.hidden_size) + s.num_hidden_layers * layer


@_of("ModernBertModel")
def _modernbert(s: _Settings) -> int:
    layer = 4 * s.hidden_size**2 + 3 * s.hidden_size * s.intermediate_size + 2 * s.hidden_size
    norms = 2 * s.hidden_size - s.hidden_size  # Of the embedding and at the end; the first layer lacks one.
    return s.vocab_size * s.hidden_size + s.num_hidden_layers * layer + norms


@_of("XLNetModel")
def _xlnet(s: _Settings) -> int:
    matrices = 5 * s.d_model**2  # Query, key, value, output, and one for relative positions.
    biases = (3 + 2) * s.d_model  # Of content, position and segment; and two vectors for segments.
    layer = matrices + biases + _feed_forward(s.d_model, s.d_inner) + 2 * _norm(s.d_model)
    return (s.vocab_size + 1) * s.d_model + s.n_layer * layer  # One vector stands for a hidden token.


@_of("LongformerModel")
def _longformer(s: _Settings) -> int:
    for_global_attention = 3 * _linear(s.hidden_size, s.hidden_size)
    return _bert_with_pooler(s) + s.num_hidden_layers * for_global_attention


@_of("ViTModel")
def _vit(s: _Settings) -> int:
    patches = (s.image_size // s.patch_size) ** 2
    embedding = _linear(s.num_channels * s.patch_size**2, s.hidden_size) + (1 + patches + 1) * s.hidden_size
    layers = s.num_hidden_layers * _layer(s.hidden_size, s.intermediate_size)
    return embedding + layers + _norm(s.hidden_size) + _linear(s.hidden_size, s.hidden_size)


# Decoders -------------------------------------------------------------------------------------------------


@_of("OpenAIGPTModel")
def _gpt(s: _Settings) -> int:
    return (s.vocab_size + s.n_positions) * s.n_embd + s.n_layer * _layer(s.n_embd, 4 * s.n_embd)


@_of("GPT2Model")
def _gpt2(s: _Settings) -> int:
    return _gpt(s) + _norm(s.n_embd)


@_of("CTRLModel")
def _ctrl(s: _Settings) -> int:
    return s.vocab_size * s.n_embd + s.n_layer * _layer(s.n_embd, s.dff) + _norm(s.n_embd)


@_of("GPTNeoForCausalLM")
def _gpt_neo(s: _Settings) -> int:
    layer = _layer(s.hidden_size, 4 * s.hidden_size) - 3 * s.hidden_size  # Only the output has a bias.
    rows = s.vocab_size + s.max_position_embeddings
    return rows * s.hidden_size + s.num_layers * layer + _norm(s.hidden_size)


@_of("GPTJForCausalLM")
def _gptj(s: _Settings) -> int:
    layer = 4 * s.n_embd**2 + _feed_forward(s.n_embd, 4 * s.n_embd) + _norm(s.n_embd)  # One norm for both.
    head = _linear(s.n_embd, s.vocab_size)
    return s.vocab_size * s.n_embd + s.n_layer * layer + _norm(s.n_embd) + head


@_of("LlamaForCausalLM")
def _llama(s: _Settings) -> int:
    head_dim = s.head_dim or s.hidden_size // s.num_attention_heads
    query, key_and_value = head_dim * s.num_attention_heads, 2 * head_dim * s.num_key_value_heads
    attention = _linear(s.hidden_size, query + key_and_value, s.query_bias) + query * s.hidden_size
    layer = attention + 3 * s.hidden_size * s.intermediate_size + 2 * s.hidden_size
    matrices = 1 if s.tie_word_embeddings else 2  # Embedding and head.
    return matrices * s.vocab_size * s.hidden_size + s.num_hidden_layers * layer + s.hidden_size


@_of("Qwen2ForCausalLM")
def _qwen(s: _Settings) -> int:
    return _llama(s.but(query_bias=True))


@_of("Qwen3ForCausalLM")
def _qwen3(s: _Settings) -> int:
    return _llama(s) + s.num_hidden_layers * 2 * s.head_dim  # Norms of queries and of keys.


@_of("GemmaForCausalLM")
def _gemma(s: _Settings) -> int:
    return _llama(s.but(tie_word_embeddings=True))


@_of("Gemma3ForCausalLM")
def _gemma3(s: _Settings) -> int:
    after_sublayers = s.num_hidden_layers * 2 * s.hidden_size  # Norms.
    return _qwen3(s.but(tie_word_embeddings=True)) + after_sublayers


@_of("MixtralForCausalLM")
def _mixtral(s: _Settings) -> int:
    experts = s.num_experts_per_tok if s.at_work else s.num_local_experts
    router = s.num_local_experts * s.hidden_size
    layer = experts * 3 * s.hidden_size * s.intermediate_size + router
    return _llama(s.but(intermediate_size=0)) + s.num_hidden_layers * layer


@_of("GptOssForCausalLM")
def _gpt_oss(s: _Settings) -> int:
    expert = _linear(s.hidden_size, 2 * s.intermediate_size) + _linear(s.intermediate_size, s.hidden_size)
    experts = s.num_experts_per_tok if s.at_work else s.num_local_experts
    router = _linear(s.hidden_size, s.num_local_experts)
    sinks = s.num_attention_heads  # A learned score for nothing, one a head.
    layer = experts * expert + router + sinks + s.hidden_size  # The output of attention has a bias, too.
    return _llama(s.but(intermediate_size=0, query_bias=True)) + s.num_hidden_layers * layer


@_of("DeepseekV3ForCausalLM")
def _deepseek(s: _Settings) -> int:
    heads, nope, rope = s.num_attention_heads, s.qk_nope_head_dim, s.qk_rope_head_dim
    query = s.hidden_size * s.q_lora_rank + s.q_lora_rank * heads * (nope + rope)
    key_and_value = s.hidden_size * (s.kv_lora_rank + rope)
    key_and_value += s.kv_lora_rank * heads * (nope + s.v_head_dim)
    output, norms = heads * s.v_head_dim * s.hidden_size, s.q_lora_rank + s.kv_lora_rank
    each = query + key_and_value + output + norms + 2 * s.hidden_size
    experts = (s.num_experts_per_tok if s.at_work else s.n_routed_experts) + s.n_shared_experts
    sparse = experts * 3 * s.hidden_size * s.moe_intermediate_size + s.n_routed_experts * s.hidden_size
    dense = 3 * s.hidden_size * s.intermediate_size
    feed_forward = s.first_k_dense_replace * dense
    feed_forward += (s.num_hidden_layers - s.first_k_dense_replace) * sparse
    rest = 2 * s.vocab_size * s.hidden_size + s.hidden_size
    return rest + s.num_hidden_layers * each + feed_forward


# Encoder-decoders -----------------------------------------------------------------------------------------


@_of("T5ForConditionalGeneration")
def _t5(s: _Settings) -> int:
    attention = 4 * s.d_model * s.d_kv * s.num_heads
    encoder = attention + 2 * s.d_model * s.d_ff + 2 * s.d_model
    decoder = encoder + attention + s.d_model
    rest = 2 * s.relative_attention_num_buckets * s.num_heads + 2 * s.d_model
    return s.vocab_size * s.d_model + s.num_layers * (encoder + decoder) + rest


def _two_stacks(s: _Settings) -> int:
    encoder = s.encoder_layers * _layer(s.d_model, s.encoder_ffn_dim)
    decoder = s.decoder_layers * _layer(s.d_model, s.decoder_ffn_dim, attentions=2)
    return s.vocab_size * s.d_model + encoder + decoder


@_of("BartModel")
def _bart(s: _Settings) -> int:
    each = (s.max_position_embeddings + 2) * s.d_model + _norm(s.d_model)  # Two rows are never used.
    return _two_stacks(s) + 2 * each


@_of("M2M100Model")
def _m2m(s: _Settings) -> int:
    return _two_stacks(s) + 2 * _norm(s.d_model)  # At the end of each stack.


@_of("MarianModel")
def _marian(s: _Settings) -> int:
    return _two_stacks(s) + 2 * s.max_position_embeddings * s.d_model


@_of("PegasusModel")
def _pegasus(s: _Settings) -> int:
    return _marian(s) + 2 * _norm(s.d_model)
