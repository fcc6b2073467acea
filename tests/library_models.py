"""Small models of the Transformers library with random weights, which write varied texts and end them."""

import torch
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MarianConfig,
    MarianMTModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)

VOCAB_SIZE, START, PADDING, END = 40, 2, 1, 3
IDS = {"pad_token_id": PADDING, "bos_token_id": None, "eos_token_id": END}
SIDES = {
    f"{side}_{name}": value
    for side in ("encoder", "decoder")
    for name, value in {"layers": 2, "attention_heads": 3, "ffn_dim": 16}.items()
}
TRANSLATOR = SIDES | {
    "d_model": 12, "max_position_embeddings": 40,
    "decoder_start_token_id": START, "forced_eos_token_id": None,
}  # fmt: skip
CONFIGS = {
    "gpt2": (GPT2LMHeadModel, GPT2Config, {"n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 40}),
    "llama": (
        LlamaForCausalLM,
        LlamaConfig,
        {
            "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1,
            "intermediate_size": 16, "max_position_embeddings": 40,
        },
    ),
    "qwen3": (
        Qwen3ForCausalLM,
        Qwen3Config,
        {
            "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "num_key_value_heads": 1,
            "head_dim": 6, "intermediate_size": 16, "max_position_embeddings": 40,
        },
    ),
    "gemma3": (  # A window shorter than most prompts.
        Gemma3ForCausalLM,
        Gemma3TextConfig,
        {
            "hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 3, "num_key_value_heads": 1,
            "head_dim": 6, "query_pre_attn_scalar": 6, "intermediate_size": 16, "max_position_embeddings": 40,
            "sliding_window": 4, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
    ),
    "bart": (BartForConditionalGeneration, BartConfig, TRANSLATOR),
    "marian": (MarianMTModel, MarianConfig, TRANSLATOR | {"share_encoder_decoder_embeddings": False}),
}  # fmt: skip


TRANSLATORS = ("bart", "marian")


def library_model(kind, seed):
    """A small model with random weights, which writes varied texts and ends them now and then."""
    model_class, config_class, sizes = CONFIGS[kind]
    model = model_class(config_class(vocab_size=VOCAB_SIZE, tie_word_embeddings=False, **IDS, **sizes)).eval()
    generator = torch.Generator().manual_seed(seed)
    for name, tensor in model.state_dict().items():
        if "embed_positions" in name and kind == "marian":
            continue  # Sinusoids.
        around = 1.0 if ("norm" in name or "ln_" in name) and name.endswith("weight") else 0.0
        spread = 1.5 if "wte" in name or "embed_" in name else 0.05 if name.endswith("bias") else 0.4
        tensor.copy_(around + spread * torch.randn(tensor.shape, generator=generator))
        if name == "lm_head.weight":
            tensor[END] *= 2
    return model.double()  # ties and near ties must not decide
