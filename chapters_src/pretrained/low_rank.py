"""Low-rank updates of a language model's attention (LoRA), and their files in the form of PEFT.

Hu et al. (2021), https://arxiv.org/abs/2106.09685. Chapter 05 writes the layer; chapter 16 puts it into
Gemma, and ships what was trained. Query, key and value are one matrix in our modules, so they share one A.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from chapters_src.attention import MultiHeadAttention
from chapters_src.pretrained.folders import new_folder, read_json, read_tensors
from chapters_src.pretrained.names import NAMES, PREFIXES
from chapters_src.transformer import LanguageModel, TransformerLayer

_CONFIG, _WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_TARGETS = ("query_key_value", "output")


class LowRankLinear(nn.Module):
    """A frozen linear layer W and a trained correction: W x + (alpha / r) B A x, equation 3 of the paper.

    Args:
        linear: the layer, which gets no gradient any more; D_in inputs, D_out outputs.
        rank: r, the number of rows of A.
        alpha: the correction is scaled by alpha / r.
        generator: draws A; B is zero at first, so nothing changes. None: PyTorch's global generator.
    """

    def __init__(
        self, linear: nn.Linear, rank: int, alpha: float, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.linear = linear.requires_grad_(False)
        drawn = torch.randn(rank, linear.in_features, generator=generator) / linear.in_features**0.5
        self.A = nn.Parameter(drawn.to(linear.weight))  # (r, D_in)
        self.B = nn.Parameter(linear.weight.new_zeros(linear.out_features, rank))  # (D_out, r)
        self.scale = alpha / rank

    def forward(self, x: Tensor) -> Tensor:
        """Compute (..., D_in) -> (..., D_out)."""
        return self.linear(x) + self.scale * (x @ self.A.T @ self.B.T)


def add_low_rank(
    model: LanguageModel, rank: int, alpha: float, generator: torch.Generator | None = None
) -> LanguageModel:
    """Freeze a language model, and add low-rank updates to the projections of its attention, in place.

    The same model is returned. It computes what it did before, until B is trained; A and B are all that gets
    a gradient. Rank (at least 1), alpha and generator are as for `LowRankLinear`.

    Raises:
        ValueError: the rank is below 1, or the model has updates already.
    """
    if rank < 1:
        raise ValueError(f"rank={rank} has to be at least 1")
    if any(isinstance(module, LowRankLinear) for module in model.modules()):
        raise ValueError("the model has low-rank updates already: merge them, or load it again")
    model.requires_grad_(False)
    for _, attention in _attentions(model):
        for name in _TARGETS:
            setattr(attention, name, LowRankLinear(getattr(attention, name), rank, alpha, generator))
    return model


def merge_low_rank(model: LanguageModel) -> LanguageModel:
    """Add the updates to the frozen matrices, in place, and remove them: the same outputs in less time."""
    for _, attention in _attentions(model):
        for name in _TARGETS:
            module = getattr(attention, name)
            if isinstance(module, LowRankLinear):
                with torch.no_grad():
                    module.linear.weight += module.scale * module.B @ module.A
                setattr(attention, name, module.linear)
    return model


@contextmanager
def without_low_rank(model: nn.Module) -> Iterator[None]:
    """Switch the updates off inside the `with` block: the model as it was before."""
    updates = [module for module in model.modules() if isinstance(module, LowRankLinear)]
    scales = [update.scale for update in updates]
    for update in updates:
        update.scale = 0.0
    try:
        yield
    finally:
        for update, scale in zip(updates, scales, strict=True):
            update.scale = scale


def save_low_rank(model: LanguageModel, folder: str | Path, *, model_type: str, base: str) -> None:
    """Save the updates in 16 bits, in the form of PEFT: `PeftModel.from_pretrained` reads the folder.

    PEFT has an update for each matrix of the library's model, so A of query, key and value is written three
    times, and B is cut into three. Writing is atomic.

    Args:
        model: with updates.
        folder: must not exist yet.
        model_type: of the library, such as "gemma3_text"; gives the names of the matrices.
        base: name of the model that the updates belong to, for the file that says so.

    Raises:
        ValueError: the model has no updates, or the library's model has other matrices.
        FileExistsError: the folder exists.
        OSError: the folder cannot be written.
    """
    tensors: dict[str, Tensor] = {}
    modules: set[str] = set()
    update = None
    for number, attention in _attentions(model):
        for name in _TARGETS:
            update = getattr(attention, name)
            if not isinstance(update, LowRankLinear):
                raise ValueError("the model has no low-rank updates: add them with add_low_rank")
            theirs = _their_names(model_type, number, name)
            for key, part in zip(theirs, update.B.split(_rows(attention, name)), strict=True):
                modules.add(key.rpartition(".")[2])
                for letter, matrix in (("A", update.A), ("B", part)):
                    tensors[f"{key}.lora_{letter}.weight"] = matrix.detach().half().cpu().clone()
    if update is None:
        raise ValueError(f"a model without layers, {type(model).__name__}, has no attention to save")
    settings = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base,
        "r": len(update.A),
        "lora_alpha": update.scale * len(update.A),
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "target_modules": sorted(modules),
    }

    with new_folder(folder) as place:
        (place / _CONFIG).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        save_file(tensors, place / _WEIGHTS)


def load_low_rank(model: LanguageModel, folder: str | Path, *, model_type: str) -> LanguageModel:
    """Load updates that `save_low_rank` or PEFT saved, in place of those that the model may have.

    The folder has `adapter_config.json` and `adapter_model.safetensors`; `model_type` is as for
    `save_low_rank`. The same model, the one that they were trained on, is returned with trainable updates in
    its own precision. Where PEFT has trained an A for each of query, key and value, the rank of their common
    update here is three times as large.

    Raises:
        FileNotFoundError: a file does not exist.
        ValueError: a file is damaged, or belongs to another kind of model or of adapter.
    """
    folder = Path(folder)
    settings = read_json(folder / _CONFIG)
    tensors = read_tensors(folder / _WEIGHTS)
    if settings.get("peft_type") != "LORA" or settings.get("use_rslora") or settings.get("use_dora"):
        raise ValueError(
            f"{folder / _CONFIG} is not of plain low-rank updates: {settings.get('peft_type')!r}"
        )
    scale = settings["lora_alpha"] / settings["r"]
    found = {}
    for number, _ in _attentions(model):
        for name in _TARGETS:
            keys = _their_names(model_type, number, name)
            try:
                down, up = ([tensors.pop(f"{key}.lora_{letter}.weight") for key in keys] for letter in "AB")
            except KeyError as error:
                raise ValueError(f"{folder / _WEIGHTS} has no {error}: is it of another model?") from None
            if all(torch.equal(each, down[0]) for each in down):
                found[number, name] = down[0], torch.cat(up)
            else:
                found[number, name] = torch.cat(down), torch.block_diag(*up)
    if tensors:
        raise ValueError(f"{folder / _WEIGHTS} has updates of other matrices, such as {min(tensors)}")
    model.requires_grad_(False)
    for (number, attention), name in ((pair, name) for pair in _attentions(model) for name in _TARGETS):
        down, up = found[number, name]
        module = getattr(attention, name)
        linear = module.linear if isinstance(module, LowRankLinear) else module
        if (down.size(1), up.size(0)) != (linear.in_features, linear.out_features):
            raise ValueError(
                f"layer {number}, {name}: an update of {up.size(0)} x {down.size(1)} for a matrix of "
                f"{linear.out_features} x {linear.in_features}: it belongs to another model"
            )
        update = LowRankLinear(linear, len(down), alpha=scale * len(down))
        update.A = nn.Parameter(down.to(linear.weight))
        update.B = nn.Parameter(up.to(linear.weight))
        setattr(attention, name, update)
    return model


def _attentions(model: LanguageModel) -> Iterator[tuple[int, MultiHeadAttention]]:
    for number, layer in enumerate(model.decoder.stack.layers):
        yield number, cast(MultiHeadAttention, cast(TransformerLayer, layer).attention)


def _rows(attention: MultiHeadAttention, name: str) -> list[int]:
    """Return how many rows of a matrix of ours belong to each of the library's."""
    if name == "output":
        return [attention.d_model]
    groups = attention.num_key_value_heads * attention.head_dim
    return [attention.num_heads * attention.head_dim, groups, groups]


def _their_names(model_type: str, number: int, name: str) -> list[str]:
    """Return the names of the library's matrices in an adapter, for one of ours."""
    if model_type not in NAMES:
        raise ValueError(f"model_type={model_type!r} is not one of {', '.join(NAMES)}")
    theirs = NAMES[model_type][f"decoder.stack.layers.*.attention.{name}"]
    names = (theirs,) if isinstance(theirs, str) else theirs
    if len(names) != (1 if name == "output" else 3):
        raise ValueError(f"{model_type} of the library has no matrices of its own for query, key and value")
    return [f"base_model.model.{PREFIXES[model_type]}{each.replace('*', str(number))}" for each in names]
