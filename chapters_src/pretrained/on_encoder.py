"""A new decoder on a pretrained encoder, saved without the encoder's own weights.

Only what was trained is saved: the decoder, which uses the encoder's embedding for input and output, and
low-rank updates of the encoder's matrices, if any. This takes a few megabytes instead of ninety. Rothe,
Narayan & Severyn (2020), https://aclanthology.org/2020.tacl-1.18/, compare ways to initialize an
encoder-decoder from pretrained models; the low-rank updates are from LoRA, Hu et al. (2021),
https://arxiv.org/abs/2106.09685. Chapter 14 trains a summarizer this way.
"""

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.utils import parametrize

from chapters_src.pretrained.folders import WEIGHTS, new_folder, read_json, read_tensors
from chapters_src.transformer import Config, Encoder, EncoderDecoder

_ARCHITECTURE = "EncoderDecoder on an encoder"


class LowRankUpdate(nn.Module):
    """A matrix, (outputs, inputs), plus the product of two of width `rank`, one of which is initialized to 0.

    Hu et al. (2021), section 4.1.
    """

    def __init__(self, matrix: Tensor, rank: int) -> None:
        super().__init__()
        outputs, inputs = matrix.shape
        self.down = nn.Parameter(torch.randn(rank, inputs) / inputs**0.5)
        self.up = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, matrix: Tensor) -> Tensor:
        """Compute matrix + up @ down, (outputs, inputs)."""
        return matrix + self.up @ self.down


def on_encoder(encoder: Encoder, decoder: Config, *, rank: int = 0, num_layers: int = 0) -> EncoderDecoder:
    """Return an encoder-decoder with a new decoder. The encoder's weights are copied and frozen.

    Args:
        encoder: the pretrained encoder, which is not modified.
        decoder: with cross-attention and the encoder's width and vocabulary. It uses the encoder's token
            embedding, which is frozen, for input and output.
        rank: of the trainable low-rank updates of the matrices in the encoder's layers; 0 for no updates.
        num_layers: how many of the encoder's layers to use, from the first; 0 for all.

    Returns:
        The model. Only the decoder, the bias of the head and the updates have `requires_grad`.

    Raises:
        ValueError: `rank` or `num_layers` is out of range, or the decoder does not match the encoder.
    """
    config = encoder.config
    if rank < 0 or not 0 <= num_layers <= config.num_layers:
        raise ValueError(
            f"rank={rank} has to be at least 0, num_layers={num_layers} from 0 to {config.num_layers}"
        )
    kept = replace(config, num_layers=num_layers or config.num_layers)
    tied = replace(decoder, tie_weights=True)
    model = EncoderDecoder(kept, tied, share_embedding=True, head_bias=True)
    states = {
        name: value for name, value in encoder.state_dict().items() if name in model.encoder.state_dict()
    }
    model.encoder.load_state_dict(states)
    nn.init.zeros_(model.head.projection.bias)
    model.encoder.requires_grad_(False)  # Including the embedding, which decoder and head share.
    for module in [*model.encoder.stack.layers.modules()] if rank else []:
        if isinstance(module, nn.Linear):
            parametrize.register_parametrization(module, "weight", LowRankUpdate(module.weight, rank))
    return model


def save_on_encoder(model: EncoderDecoder, encoder: Encoder, folder: str | Path) -> None:
    """Save the trained parameters of a model that `on_encoder` created with this encoder, in 16 bits.

    The folder must not exist yet. Writing is atomic.

    Raises:
        FileExistsError: the folder exists.
        OSError: the folder cannot be written.
    """
    trained = {
        name: parameter.detach().half().contiguous().cpu()
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }
    ranks = [module.down.size(0) for module in model.modules() if isinstance(module, LowRankUpdate)]
    settings = {
        "architecture": _ARCHITECTURE,
        "encoder": fingerprint(encoder),
        "num_layers": len(model.encoder.stack.layers),
        "rank": ranks[0] if ranks else 0,
        "decoder": asdict(model.decoder.config),
    }

    with new_folder(folder) as place:
        (place / "config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        save_file(trained, place / WEIGHTS)


def load_on_encoder(folder: str | Path, encoder: Encoder) -> EncoderDecoder:
    """Load a model that was saved by `save_on_encoder`, in float32 and evaluation mode.

    It is an ordinary `EncoderDecoder`: the updates are merged into the encoder's matrices. The encoder is the
    one that it was trained with, such as `load(resources.checkpoint("encoder"))`.

    Raises:
        FileNotFoundError: the folder or a file does not exist.
        ValueError: the folder contains another kind of model or is damaged, or the encoder is another one.
    """
    folder = Path(folder)
    settings = read_json(folder / "config.json")
    if settings.get("architecture") != _ARCHITECTURE:
        raise ValueError(
            f"{folder / 'config.json'} has architecture={settings.get('architecture')!r}, not "
            f"{_ARCHITECTURE!r}: load it with `load`"
        )
    if settings["encoder"] != fingerprint(encoder):
        raise ValueError(
            f"{folder} was trained with another encoder: use the one that its card names; with embedded "
            'resources that is load(resources.checkpoint("encoder"))'
        )
    trained = read_tensors(folder / WEIGHTS)
    model = on_encoder(
        encoder, Config(**settings["decoder"]), rank=settings["rank"], num_layers=settings["num_layers"]
    )
    try:
        found = model.load_state_dict(trained, strict=False)
    except RuntimeError as error:
        raise ValueError(f"{folder / WEIGHTS} is damaged ({error}): download the file again") from error
    wanted = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    if found.unexpected_keys or wanted != trained.keys():
        raise ValueError(f"{folder / WEIGHTS} is damaged: {sorted(wanted ^ trained.keys())[:3]} do not match")
    for module in [*model.modules()]:
        if parametrize.is_parametrized(module):
            parametrize.remove_parametrizations(module, "weight")
    return model.eval().requires_grad_(False)


def fingerprint(encoder: Encoder) -> str:
    """Return the SHA-256 digest of an encoder's weights in float32, sorted by name."""
    digest = hashlib.sha256()
    for name, value in sorted(encoder.state_dict().items()):
        digest.update(name.encode() + value.detach().float().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
