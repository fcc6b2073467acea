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
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd
    from transformers import PreTrainedModel

FAMILIES = ("forerunner", "encoder", "decoder", "encoder-decoder", "long documents", "vision")
LIBRARY = ("yes", "dropped", "never")  # Whether the Transformers library has the model.
_NUMBERS = ("context", "vocabulary", "paper_parameters", "at_work")  # Integers that a model may lack.
_FILE = Path(__file__).with_suffix("") / "models.csv"


def load() -> "pd.DataFrame":
    """Load the models.

    Returns:
        One row per model, indexed by name, with the columns that the card describes. Missing numbers are
        `<NA>`, missing text is empty.
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

    Returns:
        One row per library, indexed by name, with the columns "level" (from 0, at the top of the picture),
        "does" (in a few words) and "gives_to" (others, one level below, separated by spaces).
    """
    import pandas as pd

    return pd.read_csv(_FILE.with_name("libraries.csv"), index_col="name", keep_default_na=False)


def settings(row: Mapping[str, Any], size: Literal["published", "tiny"]) -> dict[str, Any]:
    """Read the settings of a configuration.

    Args:
        row: a row of the table that `load` returns.
        size: "published", or "tiny", whose settings replace some of the published ones.

    Returns:
        The keyword arguments of the configuration, by name.

    Raises:
        ValueError: the size is unknown, or the settings do not have the form `name=value name=value`.
    """
    if size not in ("published", "tiny"):
        raise ValueError(f'size={size!r}: it must be "published" or "tiny"')
    read = _read(row["published"])
    return read if size == "published" else read | _read(row["tiny"])


def build(row: Mapping[str, Any], size: Literal["published", "tiny"]) -> "PreTrainedModel":
    """Make a model with random weights on the current device; `with torch.device("meta")` needs no memory.

    Args:
        row: a row of the table that `load` returns.
        size: "published" or "tiny".

    Returns:
        The model, of the class that the row names, ready for evaluation.

    Raises:
        ValueError: the library has no class for this model, or the size is unknown.
    """
    import transformers

    if not row["model_class"]:
        raise ValueError(f"the library has no class for this model of {row['year']}: build it from modules")
    model_class = getattr(transformers, row["model_class"])
    return model_class(model_class.config_class(**settings(row, size))).eval()


def count_by_hand(row: Mapping[str, Any], *, at_work: bool = False) -> int:
    """Add up the parameters of a model at its published size, from its settings alone.

    Args:
        row: a row of the table that `load` returns.
        at_work: of the experts of a layer, count only as many as work on a token.

    Returns:
        The number of parameters of the row's class; a matrix that is used twice counts once.

    Raises:
        ValueError: there is no formula for that class yet.
    """
    if row["model_class"] not in FORMULAS:
        raise ValueError(
            f"no formula for the class {row['model_class']!r}: there are {', '.join(sorted(FORMULAS))}"
        )
    formula, chosen = FORMULAS[row["model_class"]], settings(row, "published")
    return formula(**chosen, at_work=True) if at_work and formula in _WITH_EXPERTS else formula(**chosen)


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


# One formula per class; the names are the library's settings ----------------------------------------------


def _bert_body(
    *,
    vocab_size: int,
    hidden_size: int,
    num_hidden_layers: int,
    intermediate_size: int,
    max_position_embeddings: int,
    type_vocab_size: int,
    **_: Any,
) -> int:
    rows = vocab_size + max_position_embeddings + type_vocab_size
    layers = num_hidden_layers * _layer(hidden_size, intermediate_size)
    return rows * hidden_size + _norm(hidden_size) + layers


def _bert_with_pooler(*, hidden_size: int, **settings: Any) -> int:
    return _bert_body(hidden_size=hidden_size, **settings) + _linear(hidden_size, hidden_size)


def _bert(*, hidden_size: int, vocab_size: int, **settings: Any) -> int:
    body = _bert_with_pooler(hidden_size=hidden_size, vocab_size=vocab_size, **settings)
    masked = _linear(hidden_size, hidden_size) + _norm(hidden_size) + vocab_size  # Its matrix is shared.
    return body + masked + _linear(hidden_size, 2)


def _distilbert(
    *, vocab_size: int, dim: int, n_layers: int, hidden_dim: int, max_position_embeddings: int, **_: Any
) -> int:
    return (vocab_size + max_position_embeddings) * dim + _norm(dim) + n_layers * _layer(dim, hidden_dim)


def _xlm(
    *,
    vocab_size: int,
    emb_dim: int,
    n_layers: int,
    max_position_embeddings: int,
    n_langs: int,
    **_: Any,
) -> int:
    rows = vocab_size + max_position_embeddings + n_langs
    return rows * emb_dim + _norm(emb_dim) + n_layers * _layer(emb_dim, 4 * emb_dim)


def _albert(
    *,
    vocab_size: int,
    embedding_size: int,
    hidden_size: int,
    intermediate_size: int,
    max_position_embeddings: int,
    type_vocab_size: int,
    **_: Any,
) -> int:
    rows = vocab_size + max_position_embeddings + type_vocab_size
    embedding = rows * embedding_size + _norm(embedding_size) + _linear(embedding_size, hidden_size)
    return embedding + _layer(hidden_size, intermediate_size) + _linear(hidden_size, hidden_size)


def _electra(*, embedding_size: int, hidden_size: int, **settings: Any) -> int:
    if embedding_size != hidden_size:
        raise ValueError(f"embedding_size={embedding_size} has to be hidden_size={hidden_size} here")
    head = _linear(hidden_size, hidden_size) + _linear(hidden_size, 1)
    return _bert_body(hidden_size=hidden_size, **settings) + head


def _deberta(
    *,
    vocab_size: int,
    hidden_size: int,
    num_hidden_layers: int,
    intermediate_size: int,
    max_position_embeddings: int,
    **_: Any,
) -> int:
    content = 3 * hidden_size**2 + 2 * hidden_size  # Only query and value have a bias.
    position = _linear(hidden_size, hidden_size, bias=False) + _linear(hidden_size, hidden_size)
    attention = content + position + _linear(hidden_size, hidden_size)
    layer = attention + _feed_forward(hidden_size, intermediate_size) + 2 * _norm(hidden_size)
    distances = 2 * max_position_embeddings
    return (vocab_size + distances) * hidden_size + _norm(hidden_size) + num_hidden_layers * layer


def _modernbert(
    *, vocab_size: int, hidden_size: int, num_hidden_layers: int, intermediate_size: int, **_: Any
) -> int:
    layer = 4 * hidden_size**2 + 3 * hidden_size * intermediate_size + 2 * hidden_size
    norms = 2 * hidden_size - hidden_size  # Of the embedding and at the end; the first layer lacks one.
    return vocab_size * hidden_size + num_hidden_layers * layer + norms


def _gpt(*, vocab_size: int, n_embd: int, n_layer: int, n_positions: int, **_: Any) -> int:
    return (vocab_size + n_positions) * n_embd + n_layer * _layer(n_embd, 4 * n_embd)


def _gpt2(*, n_embd: int, **settings: Any) -> int:
    return _gpt(n_embd=n_embd, **settings) + _norm(n_embd)


def _ctrl(*, vocab_size: int, n_embd: int, n_layer: int, dff: int, **_: Any) -> int:
    return vocab_size * n_embd + n_layer * _layer(n_embd, dff) + _norm(n_embd)


def _gpt_neo(
    *, vocab_size: int, hidden_size: int, num_layers: int, max_position_embeddings: int, **_: Any
) -> int:
    layer = _layer(hidden_size, 4 * hidden_size) - 3 * hidden_size  # Query, key and value have no bias.
    rows = vocab_size + max_position_embeddings
    return rows * hidden_size + num_layers * layer + _norm(hidden_size)


def _gptj(*, vocab_size: int, n_embd: int, n_layer: int, **_: Any) -> int:
    layer = 4 * n_embd**2 + _feed_forward(n_embd, 4 * n_embd) + _norm(n_embd)  # One norm for both.
    return vocab_size * n_embd + n_layer * layer + _norm(n_embd) + _linear(n_embd, vocab_size)


def _llama(
    *,
    vocab_size: int,
    hidden_size: int,
    num_hidden_layers: int,
    num_attention_heads: int,
    num_key_value_heads: int,
    intermediate_size: int,
    head_dim: int | None = None,
    tie_word_embeddings: bool = False,
    query_bias: bool = False,
    **_: Any,
) -> int:
    head_dim = head_dim or hidden_size // num_attention_heads
    query, key_and_value = head_dim * num_attention_heads, 2 * head_dim * num_key_value_heads
    attention = _linear(hidden_size, query + key_and_value, query_bias) + query * hidden_size
    layer = attention + 3 * hidden_size * intermediate_size + 2 * hidden_size
    matrices = 1 if tie_word_embeddings else 2  # Embedding and head.
    return matrices * vocab_size * hidden_size + num_hidden_layers * layer + hidden_size


def _qwen(**settings: Any) -> int:
    return _llama(**settings, query_bias=True)


def _qwen3(*, num_hidden_layers: int, head_dim: int, **settings: Any) -> int:
    norms = num_hidden_layers * 2 * head_dim  # Of queries and of keys.
    return _llama(num_hidden_layers=num_hidden_layers, head_dim=head_dim, **settings) + norms


def _gemma3(*, num_hidden_layers: int, hidden_size: int, **settings: Any) -> int:
    own = {"num_hidden_layers": num_hidden_layers, "hidden_size": hidden_size, "tie_word_embeddings": True}
    return _qwen3(**own, **settings) + num_hidden_layers * 2 * hidden_size  # Norms after the sublayers.


def _mixtral(
    *,
    hidden_size: int,
    num_hidden_layers: int,
    intermediate_size: int,
    num_local_experts: int,
    num_experts_per_tok: int,
    at_work: bool = False,
    **settings: Any,
) -> int:
    own = {"hidden_size": hidden_size, "num_hidden_layers": num_hidden_layers}
    rest = _llama(**own, intermediate_size=0, **settings)
    experts = num_experts_per_tok if at_work else num_local_experts
    router = num_local_experts * hidden_size
    return rest + num_hidden_layers * (experts * 3 * hidden_size * intermediate_size + router)


def _gpt_oss(
    *,
    hidden_size: int,
    num_hidden_layers: int,
    num_attention_heads: int,
    head_dim: int,
    intermediate_size: int,
    num_local_experts: int,
    num_experts_per_tok: int,
    at_work: bool = False,
    **settings: Any,
) -> int:
    rest = _llama(
        hidden_size=hidden_size,
        num_hidden_layers=num_hidden_layers,
        num_attention_heads=num_attention_heads,
        head_dim=head_dim,
        intermediate_size=0,
        query_bias=True,
        **settings,
    )
    expert = _linear(hidden_size, 2 * intermediate_size) + _linear(intermediate_size, hidden_size)
    experts = num_experts_per_tok if at_work else num_local_experts
    router = _linear(hidden_size, num_local_experts)
    sinks = num_attention_heads  # A learned score for nothing, one a head.
    layer = experts * expert + router + sinks + hidden_size  # The output of attention has a bias, too.
    return rest + num_hidden_layers * layer


def _deepseek(
    *,
    vocab_size: int,
    hidden_size: int,
    num_hidden_layers: int,
    first_k_dense_replace: int,
    num_attention_heads: int,
    intermediate_size: int,
    moe_intermediate_size: int,
    n_routed_experts: int,
    n_shared_experts: int,
    num_experts_per_tok: int,
    q_lora_rank: int,
    kv_lora_rank: int,
    qk_nope_head_dim: int,
    qk_rope_head_dim: int,
    v_head_dim: int,
    at_work: bool = False,
) -> int:
    heads = num_attention_heads
    query = hidden_size * q_lora_rank + q_lora_rank * heads * (qk_nope_head_dim + qk_rope_head_dim)
    key_and_value = hidden_size * (kv_lora_rank + qk_rope_head_dim)
    key_and_value += kv_lora_rank * heads * (qk_nope_head_dim + v_head_dim)
    attention = query + key_and_value + heads * v_head_dim * hidden_size + q_lora_rank + kv_lora_rank
    expert = 3 * hidden_size * moe_intermediate_size
    experts = (num_experts_per_tok if at_work else n_routed_experts) + n_shared_experts
    sparse = (num_hidden_layers - first_k_dense_replace) * (experts * expert + n_routed_experts * hidden_size)
    dense = first_k_dense_replace * 3 * hidden_size * intermediate_size
    each = attention + 2 * hidden_size
    return 2 * vocab_size * hidden_size + num_hidden_layers * each + sparse + dense + hidden_size


def _gemma(**settings: Any) -> int:
    return _llama(**settings, tie_word_embeddings=True)


def _t5(
    *,
    vocab_size: int,
    d_model: int,
    d_kv: int,
    d_ff: int,
    num_layers: int,
    num_heads: int,
    relative_attention_num_buckets: int,
    **_: Any,
) -> int:
    attention = 4 * d_model * d_kv * num_heads
    encoder = attention + 2 * d_model * d_ff + 2 * d_model
    decoder = encoder + attention + d_model
    rest = 2 * relative_attention_num_buckets * num_heads + 2 * d_model
    return vocab_size * d_model + num_layers * (encoder + decoder) + rest


def _two_stacks(
    *,
    vocab_size: int,
    d_model: int,
    encoder_layers: int,
    decoder_layers: int,
    encoder_ffn_dim: int,
    decoder_ffn_dim: int,
    **_: Any,
) -> int:
    encoder = encoder_layers * _layer(d_model, encoder_ffn_dim)
    decoder = decoder_layers * _layer(d_model, decoder_ffn_dim, attentions=2)
    return vocab_size * d_model + encoder + decoder


def _bart(*, d_model: int, max_position_embeddings: int, **settings: Any) -> int:
    each = (max_position_embeddings + 2) * d_model + _norm(d_model)  # Two rows are never used.
    return _two_stacks(d_model=d_model, **settings) + 2 * each


def _m2m(*, d_model: int, **settings: Any) -> int:
    return _two_stacks(d_model=d_model, **settings) + 2 * _norm(d_model)  # At the end of each stack.


def _marian(*, d_model: int, max_position_embeddings: int, **settings: Any) -> int:
    return _two_stacks(d_model=d_model, **settings) + 2 * max_position_embeddings * d_model


def _pegasus(*, d_model: int, **settings: Any) -> int:
    return _marian(d_model=d_model, **settings) + 2 * _norm(d_model)


def _longformer(*, hidden_size: int, num_hidden_layers: int, **settings: Any) -> int:
    bert = _bert_with_pooler(hidden_size=hidden_size, num_hidden_layers=num_hidden_layers, **settings)
    return bert + num_hidden_layers * 3 * _linear(hidden_size, hidden_size)  # For global attention.


def _vit(
    *,
    hidden_size: int,
    num_hidden_layers: int,
    intermediate_size: int,
    image_size: int,
    patch_size: int,
    num_channels: int,
    **_: Any,
) -> int:
    patches = (image_size // patch_size) ** 2
    embedding = _linear(num_channels * patch_size**2, hidden_size) + (1 + patches + 1) * hidden_size
    layers = num_hidden_layers * _layer(hidden_size, intermediate_size)
    return embedding + layers + _norm(hidden_size) + _linear(hidden_size, hidden_size)


def _xlnet(*, vocab_size: int, d_model: int, n_layer: int, d_inner: int, **_: Any) -> int:
    matrices = 5 * d_model**2  # Query, key, value, output, and one for relative positions.
    biases = (3 + 2) * d_model  # Of content, position and segment; and two vectors for segments.
    layer = matrices + biases + _feed_forward(d_model, d_inner) + 2 * _norm(d_model)
    return (vocab_size + 1) * d_model + n_layer * layer  # One vector stands for a hidden token.


FORMULAS: dict[str, Callable[..., int]] = {
    "AlbertModel": _albert,
    "BartModel": _bart,
    "BertForPreTraining": _bert,
    "BigBirdModel": _bert_with_pooler,
    "CTRLModel": _ctrl,
    "DebertaModel": _deberta,
    "DeepseekV3ForCausalLM": _deepseek,
    "DistilBertModel": _distilbert,
    "ElectraForPreTraining": _electra,
    "GPT2Model": _gpt2,
    "GPTJForCausalLM": _gptj,
    "GPTNeoForCausalLM": _gpt_neo,
    "Gemma3ForCausalLM": _gemma3,
    "GemmaForCausalLM": _gemma,
    "GptOssForCausalLM": _gpt_oss,
    "LlamaForCausalLM": _llama,
    "LongformerModel": _longformer,
    "M2M100Model": _m2m,
    "MarianModel": _marian,
    "MixtralForCausalLM": _mixtral,
    "ModernBertModel": _modernbert,
    "OpenAIGPTModel": _gpt,
    "PegasusModel": _pegasus,
    "Qwen2ForCausalLM": _qwen,
    "Qwen3ForCausalLM": _qwen3,
    "RobertaModel": _bert_with_pooler,
    "T5ForConditionalGeneration": _t5,
    "ViTModel": _vit,
    "XLMModel": _xlm,
    "XLMRobertaModel": _bert_with_pooler,
    "XLNetModel": _xlnet,
}
_WITH_EXPERTS = (_mixtral, _gpt_oss, _deepseek)
