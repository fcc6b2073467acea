"""A decoder on top of a pretrained encoder, kept without the encoder's own weights.

Whoever has the encoder needs only what was trained beside it: the decoder, which reads and writes with the
encoder's embedding, and low-rank updates of the encoder's matrices, if there are any. That is a few megabytes
instead of ninety. Rothe, Narayan & Severyn (2020), https://aclanthology.org/2020.tacl-1.18/, compare ways to
warm-start an encoder-decoder; the updates are those of LoRA, Hu et al. (2021),
https://arxiv.org/abs/2106.09685. Chapter 14 trains a summarizer this way.
"""

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.utils import parametrize

from chapters_src.pretrained.folders import WEIGHTS, read_json, whole_or_not_at_all
from chapters_src.transformer import Config, Encoder, EncoderDecoder

_ARCHITECTURE = "EncoderDecoder on an encoder"


class LowRankUpdate(nn.Module):
    """A matrix plus the product of two narrow ones, one of which starts at 0: Hu et al. (2021), section 4.1.

    Args:
        matrix: the weight of a linear layer, (outputs, inputs).
        rank: width of the narrow matrices.
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
    """Put a new decoder on a pretrained encoder. What the encoder brings is frozen.

    Args:
        encoder: stays as it is; its weights are copied.
        decoder: with cross-attention, of the encoder's width and vocabulary. It reads and writes with the
            encoder's embedding of tokens, which is frozen too.
        rank: of the trainable updates of the matrices in the encoder's layers; 0: there are none.
        num_layers: how many of the encoder's layers are used, from the first; 0: all.

    Returns:
        The model. The decoder, the bias of the head and the updates have `requires_grad`, and nothing else.

    Raises:
        ValueError: rank or num_layers out of range, or the decoder does not fit the encoder.
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
    model.encoder.requires_grad_(False)  # With the embedding, which the decoder and the head share.
    for module in [*model.encoder.stack.layers.modules()] if rank else []:
        if isinstance(module, nn.Linear):
            parametrize.register_parametrization(module, "weight", LowRankUpdate(module.weight, rank))
    return model


def save_on_encoder(model: EncoderDecoder, encoder: Encoder, folder: str | Path) -> None:
    """Write what was trained beside an encoder, in 16 bits.

    The folder appears whole or not at all.

    Args:
        model: as `on_encoder` made it, trained or not.
        encoder: the one that it was made on.
        folder: must not be there yet.

    Raises:
        FileExistsError: there is something at that place.
        OSError: it cannot be written.
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

    def write(place: Path) -> None:
        (place / "config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        save_file(trained, place / WEIGHTS)

    whole_or_not_at_all(Path(folder), write)


def load_on_encoder(folder: str | Path, encoder: Encoder) -> EncoderDecoder:
    """Make the model again from an encoder and what was trained beside it.

    Args:
        folder: one that `save_on_encoder` wrote.
        encoder: the one that the model was trained on, as `load(resources.checkpoint("encoder"))` gives it.

    Returns:
        The model, in float32 and evaluation mode, its updates added to the encoder's matrices: an ordinary
        `EncoderDecoder`.

    Raises:
        FileNotFoundError: there is no such folder, or a file is missing.
        ValueError: the folder holds another kind of model or is damaged, or it is another encoder.
    """
    folder = Path(folder)
    settings = read_json(folder / "config.json")
    if settings.get("architecture") != _ARCHITECTURE:
        raise ValueError(
            f"{folder / 'config.json'} has architecture={settings.get('architecture')!r}, not "
            f"{_ARCHITECTURE!r}: for another model there is `load`"
        )
    if settings["encoder"] != fingerprint(encoder):
        raise ValueError(
            f"{folder} was trained on another encoder: take the one that its card names, with embedded "
            'resources load(resources.checkpoint("encoder"))'
        )
    if not (folder / WEIGHTS).is_file():
        raise FileNotFoundError(f"{folder} has no {WEIGHTS}: is this a checkpoint's folder, and complete?")
    model = on_encoder(
        encoder, Config(**settings["decoder"]), rank=settings["rank"], num_layers=settings["num_layers"]
    )
    try:
        trained = load_file(folder / WEIGHTS)
        found = model.load_state_dict(trained, strict=False)
    except (SafetensorError, RuntimeError) as error:
        raise ValueError(f"{folder / WEIGHTS} is damaged ({error}): get the file again") from error
    wanted = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    if found.unexpected_keys or wanted != trained.keys():
        raise ValueError(f"{folder / WEIGHTS} is damaged: {sorted(wanted ^ trained.keys())[:3]} do not fit")
    for module in [*model.modules()]:
        if parametrize.is_parametrized(module):
            parametrize.remove_parametrizations(module, "weight")
    return model.eval().requires_grad_(False)


def fingerprint(encoder: Encoder) -> str:
    """Tell one encoder from another: the SHA-256 digest of its weights in float32, by name."""
    digest = hashlib.sha256()
    for name, value in sorted(encoder.state_dict().items()):
        digest.update(name.encode() + value.detach().float().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
