"""Small networks on handwritten digits of new writers, and what helps them: the tables of chapter 10.

    python recipes/pictures.py --output build/pictures

The 1,797 digits of scikit-learn stand in 14 forms, one writer a form. The networks are those of the chapter:
a Vision Transformer of two layers and a convolutional network of two. The output holds one file for each
finished run, and the record is written after each of them. Its figures are

- "choice": for each network, learning rate, number of epochs and seed the share of the digits of forms 9 to
  11 that it reads after training on forms 1 to 8 (all of the first eleven, so the last three stay unseen);
- "chosen": for each network the rate and the epochs with the best mean over seeds, the shorter training if
  the longer one is not half a point better; used for all that follows;
- "groups": for each network, change and seed what it answers to all digits, a string of 1,797 numerals in
  the order of the file. The forms are held out in five groups, three at a time from the end, so each digit
  is read by a network that never saw its form. The changes are "none"; "augmented": in every pass each
  training digit is turned, moved and scaled anew; "other order": the patches of all digits stand in another
  order, which is drawn for each seed and group;
- "random": for each seed the share that the transformer reads of 382 digits held out at random;
- "maps": for each seed, from the transformer trained on the first eleven forms, the share of the other
  digits that it still reads if one to four patches are hidden, those that a map ranks highest;
- "rectangle": for each seed what this transformer answers to pictures that are evenly gray, and how
  probable it calls its answer;
- "few": for each seed and number of labeled digits of each class the share of the last three forms that is
  read after tuning "from scratch" and "after hidden patches" (trained before on the digits of the first
  eleven forms without labels: half of the patches grayed, to be filled in), and by the nearest of those
  digits;
- "one writer": for each seed and each of the last three forms the share of its other digits that is read
  after tuning on its first twenty digits "from scratch", by the network of the first eleven forms
  "untuned", and by this network "tuned" on the twenty.

`--smoke` runs everything on a small scale, in seconds; its numbers mean nothing, and its record stays in the
output.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

from chapters_src import attention
from chapters_src import transformer as package
from recipes.output import kept, options_of_runs, parser_of_runs, write_record

SEEDS = range(4)
P = 2  # Pixels a side of a patch.
BATCH = 64
RATES = (1e-3, 3e-3)
EPOCHS = (15, 30)
TRIED = 2  # Seeds of each setting.
WORTH = 0.005  # What a longer training has to bring.
HIDDEN = range(1, 5)
LABELED = (2, 10)  # Digits of each class.
PAPER = -5 / 6  # What a pixel without ink is, after scaling.
COUNTING = r"0?1234567?8?9(?:01234567?8?9){2}09556"  # How each form begins.

Change = Callable[[Tensor], Tensor]


def load() -> tuple[Tensor, Tensor, np.ndarray]:
    """Return the pictures (1797, 1, 8, 8), their labels, and the number of each digit's form, from 0."""
    digits = load_digits()
    images = (torch.tensor(digits.images, dtype=torch.float32)[:, None] - 5) / 6
    text = "".join(map(str, digits.target))
    starts = [found.start() for found in re.finditer(COUNTING, text)]
    form = np.searchsorted(starts, np.arange(len(text)), side="right") - 1
    return images, torch.tensor(digits.target), form


def group_of(form: np.ndarray) -> np.ndarray:
    """Put 14 forms into five groups, three at a time from the end: group 0 is the last three."""
    return (13 - form) // 3


# Networks and their training ------------------------------------------------------------------------------


def transformer() -> package.VisionTransformer:
    """Make the chapter's Vision Transformer, with its first weights."""
    config = package.Config(
        d_model=64,
        num_layers=2,
        num_heads=4,
        feed_forward_width=128,
        dropout=0.1,
        activation="gelu",
        positions="learned",
    )
    model = package.VisionTransformer(config, image_size=8, patch_size=P, num_channels=1, num_classes=10)
    for parameter in model.stack.parameters():
        if parameter.ndim == 2:
            nn.init.xavier_uniform_(parameter)
    assert model.embedding.positions is not None
    nn.init.normal_(model.embedding.positions, std=0.3)
    return model


def convolutional() -> nn.Module:
    """Make the chapter's convolutional network."""
    return nn.Sequential(
        nn.Conv2d(1, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 4 * 4, 10),
    )


NETWORKS: dict[str, Callable[[], nn.Module]] = {"transformer": transformer, "convolutional": convolutional}
CHANGES = {"transformer": ("none", "augmented"), "convolutional": ("none", "other order", "augmented")}


def logits_of(model: nn.Module, pictures: Tensor) -> Tensor:
    """Call either network."""
    return model(pictures, None) if isinstance(model, package.VisionTransformer) else model(pictures)


def changed(pictures: Tensor) -> Tensor:
    """Turn, move and scale each picture a little, each in its own way."""
    count = len(pictures)
    angle = torch.deg2rad(20 * torch.rand(count) - 10)
    size = 0.9 + 0.2 * torch.rand(count)
    move = (torch.rand(count, 2, 1) - 0.5) / 4  # Up to half a pixel: a picture is 2 wide here.
    rows = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], dim=1) * size[:, None]
    grid = F.affine_grid(
        torch.cat([rows.view(-1, 2, 2), move], dim=2), list(pictures.shape), align_corners=False
    )
    return F.grid_sample(pictures - PAPER, grid, align_corners=False) + PAPER


def fit(
    model: nn.Module,
    pictures: Tensor,
    labels: Tensor,
    rate: float,
    epochs: int,
    change: Change | None = None,
) -> nn.Module:
    """Train as the chapter does; the caller has set the seed before the model was made."""
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.05)
    steps = epochs * -(-len(pictures) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.1)
    model.train()
    for _ in range(epochs):
        for part in torch.randperm(len(pictures)).split(BATCH):
            batch = change(pictures[part]) if change else pictures[part]
            loss = F.cross_entropy(logits_of(model, batch), labels[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()


@torch.inference_mode()
def predict(model: nn.Module, pictures: Tensor) -> Tensor:
    """Return the most probable class of each picture."""
    return logits_of(model, pictures).argmax(dim=-1)


def rearranged(pictures: Tensor, order: Tensor) -> Tensor:
    """Put the patches of all pictures together in one other order."""
    cut = F.unfold(pictures, P, stride=P)
    return F.fold(cut[:, :, order], pictures.shape[2:], P, stride=P)


# The runs -------------------------------------------------------------------------------------------------


def of_choice(network: str, rate: float, epochs: int, seed: int) -> dict[str, Any]:
    """Train on forms 1 to 8, and read forms 9 to 11."""
    images, labels, form = load()
    known, held_out = torch.tensor(form < 8), torch.tensor((form >= 8) & (form < 11))
    torch.manual_seed(seed)
    model = fit(NETWORKS[network](), images[known], labels[known], rate, epochs)
    right = (predict(model, images[held_out]) == labels[held_out]).float().mean().item()
    return {"network": network, "rate": rate, "epochs": epochs, "seed": seed, "right": round(right, 4)}


def of_groups(
    network: str, change: str, rate: float, epochs: int, seed: int, keep: Path | None = None
) -> dict[str, Any]:
    """Hold out the forms in five groups, write down the answers, and `keep` the first network's weights."""
    images, labels, form = load()
    group = group_of(form)
    answers = torch.zeros(len(labels), dtype=torch.long)
    for number in range(5):
        pictures = images
        if change == "other order":
            generator = torch.Generator().manual_seed(10 * seed + number)
            pictures = rearranged(images, torch.randperm(16, generator=generator))
        known = torch.tensor(group != number)
        torch.manual_seed(seed)
        turn = changed if change == "augmented" else None
        model = fit(NETWORKS[network](), pictures[known], labels[known], rate, epochs, turn)
        answers[~known] = predict(model, pictures[~known])
        if keep is not None and number == 0:
            torch.save(model.state_dict(), keep)
    return {
        "network": network,
        "change": change,
        "seed": seed,
        "answers": "".join(map(str, answers.tolist())),
    }


def of_random(rate: float, epochs: int, seed: int) -> dict[str, Any]:
    """Hold out digits at random, so that each writer is known."""
    images, labels, form = load()
    share = int((form >= 11).sum())
    known, held_out = train_test_split(
        torch.arange(len(labels)), test_size=share, stratify=labels, random_state=seed
    )
    torch.manual_seed(seed)
    model = fit(transformer(), images[known], labels[known], rate, epochs)
    right = (predict(model, images[held_out]) == labels[held_out]).float().mean().item()
    return {"seed": seed, "right": round(right, 4)}


def of_eleven(weights: Path) -> package.VisionTransformer:
    """Load the transformer that was trained on the first eleven forms."""
    model = transformer()
    model.load_state_dict(torch.load(weights, weights_only=True))
    return model.eval()


# Maps -----------------------------------------------------------------------------------------------------


@torch.inference_mode()
def without(model: package.VisionTransformer, pictures: Tensor, ranks: Tensor, count: int) -> Tensor:
    """Return the logits if the patches with the highest ranks are hidden."""
    mask = torch.ones(len(pictures), 16, dtype=torch.bool)
    mask.scatter_(1, ranks.topk(count, dim=1).indices, False)
    return model(pictures, mask)


def maps_of(model: package.VisionTransformer, pictures: Tensor) -> dict[str, Tensor]:
    """Return all maps, (B, 16) each."""
    with torch.inference_mode(), attention.recorded(model) as record:
        before = model(pictures, None)
    answer = before.argmax(dim=1, keepdim=True)
    falls = []
    for number in range(16):
        only = torch.eye(16)[number].expand(len(pictures), 16)
        falls.append((before - without(model, pictures, only, 1)).gather(1, answer))
    layers = [weights.mean(dim=1) for [weights] in record.values()]
    joined = torch.eye(17)
    for weights in layers:
        joined = (0.5 * weights + 0.5 * torch.eye(17)) @ joined
    rollout = joined[:, 0, 1:]
    return {
        "one at a time": torch.cat(falls, dim=1),
        "rollout": rollout,
        "first layer": layers[0][:, 0, 1:],
        "last layer": layers[-1][:, 0, 1:],
        "average rollout": rollout.mean(dim=0).expand_as(rollout),
        "most ink": package.patches(pictures, P).mean(dim=-1),
        "at random": torch.rand(len(pictures), 16, generator=torch.Generator().manual_seed(0)),
    }


def of_maps(seed: int, weights: Path) -> dict[str, Any]:
    """Hide the patches that each map ranks highest."""
    images, labels, form = load()
    known, model = torch.tensor(form < 11), of_eleven(weights)
    pictures, classes = images[~known], labels[~known]
    read = {
        name: [
            round((without(model, pictures, ranks, k).argmax(1) == classes).float().mean().item(), 4)
            for k in HIDDEN
        ]
        for name, ranks in maps_of(model, pictures).items()
    }
    return {"seed": seed, "right": read}


def of_rectangle(seed: int, weights: Path) -> dict[str, Any]:
    """Show pictures that are evenly gray."""
    gray = list(range(10, 17))
    pictures = torch.stack([torch.full((1, 8, 8), (ink - 5) / 6) for ink in gray])
    with torch.inference_mode():
        probability, answers = of_eleven(weights)(pictures, None).softmax(dim=-1).max(dim=-1)
    found = [round(share, 4) for share in probability.tolist()]
    return {"seed": seed, "gray": gray, "answers": answers.tolist(), "probability": found}


# Few labels -----------------------------------------------------------------------------------------------


def grayed(pictures: Tensor) -> tuple[Tensor, Tensor]:
    """Gray half of each picture's patches; return the pictures and which patches are hidden, (B, 16)."""
    hidden = torch.rand(len(pictures), 16).argsort(dim=1) < 8
    cut = F.unfold(pictures, P, stride=P).masked_fill(hidden[:, None], 0.0)
    return F.fold(cut, pictures.shape[2:], P, stride=P), hidden


def fill_in(pictures: Tensor, rate: float, epochs: int) -> package.VisionTransformer:
    """Train a transformer to fill in hidden patches of pictures without labels."""
    model, head = transformer(), nn.Linear(64, P * P)
    both = nn.ModuleList([model, head])
    optimizer = torch.optim.AdamW(both.parameters(), weight_decay=0.05)
    steps = epochs * -(-len(pictures) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps, pct_start=0.1)
    for _ in range(epochs):
        for part in torch.randperm(len(pictures)).split(BATCH):
            whole = changed(pictures[part])
            seen, hidden = grayed(whole)
            told = head(model.encode(seen, None)[:, 1:])
            loss = F.mse_loss(told[hidden], package.patches(whole, P)[hidden])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model


def of_few(rate: float, epochs: int, before: int, seed: int) -> dict[str, Any]:
    """Tune on few labeled digits of each class, from scratch and after hidden patches."""
    images, labels, form = load()
    known, held_out = torch.tensor(form < 11), torch.tensor(form >= 11)
    torch.manual_seed(seed)
    weights = {
        "from scratch": transformer().state_dict(),
        "after hidden patches": fill_in(images[known], rate, before).state_dict(),
    }
    candidates = torch.randperm(int(known.sum()))
    rows = {}
    for each in LABELED:
        few = torch.cat([candidates[labels[candidates] == digit][:each] for digit in range(10)])
        distances = torch.cdist(images[held_out].flatten(1), images[few].flatten(1))
        answers = {"nearest neighbor": labels[few[distances.argmin(dim=1)]]}
        for name, start in weights.items():
            model = transformer()
            model.load_state_dict(start)
            torch.manual_seed(seed)
            fit(model, images[few], labels[few], rate, epochs, changed)
            answers[name] = predict(model, images[held_out])
        rows[str(each)] = {
            name: round((found == labels[held_out]).float().mean().item(), 4)
            for name, found in answers.items()
        }
    return {"seed": seed, "right": rows}


def of_one_writer(rate: float, passes: int, seed: int, weights: Path) -> dict[str, Any]:
    """Tune the network of many writers on twenty digits of a new one."""
    images, labels, form = load()
    rows = {}
    for writer in (11, 12, 13):
        own = torch.tensor(np.flatnonzero(form == writer))
        few, rest = own[:20], own[20:]
        right = {}
        for name, speed in (("from scratch", rate), ("untuned", None), ("tuned", rate / 10)):
            torch.manual_seed(seed)
            model = transformer().eval() if name == "from scratch" else of_eleven(weights)
            if speed is not None:
                fit(model, images[few], labels[few], speed, passes)
            share = (predict(model, images[rest]) == labels[rest]).float().mean().item()
            right[name] = round(share, 4)
        rows[str(writer + 1)] = right
    return {"seed": seed, "right": rows}


def best(rows: list[dict[str, Any]], network: str) -> dict[str, float]:
    """Return the rate and the epochs with the best mean over seeds, in doubt the shorter training."""
    found: dict[int, dict[float, list[float]]] = {}
    for row in rows:
        if row["network"] == network:
            found.setdefault(row["epochs"], {}).setdefault(row["rate"], []).append(row["right"])
    chosen: tuple[float, dict[str, float]] = (-1.0, {})
    for epochs in sorted(found):
        means = {rate: sum(right) / len(right) for rate, right in found[epochs].items()}
        rate = max(means, key=means.__getitem__)
        if means[rate] >= chosen[0] + WORTH:
            chosen = means[rate], {"rate": rate, "epochs": epochs}
    return chosen[1]


def choices(smoke: bool) -> Iterator[tuple]:
    """Yield the settings to choose from."""
    for seed in SEEDS[: 1 if smoke else TRIED]:
        for network in NETWORKS:
            for rate in RATES[1:] if smoke else RATES:
                for epochs in (1,) if smoke else EPOCHS:
                    yield network, rate, epochs, seed


def wanted(
    chosen: dict[str, dict], smoke: bool, output: Path
) -> Iterator[tuple[str, Callable[..., dict], tuple]]:
    """Yield a table, the function that makes a row of it, and its arguments."""
    vision = tuple(chosen["transformer"].values())
    for seed in SEEDS[:1] if smoke else SEEDS:
        weights = output / f"transformer-{seed}.pt"
        for network, changes in CHANGES.items():
            for change in changes:
                keep = (weights,) if (network, change) == ("transformer", "none") else ()
                yield "groups", of_groups, (network, change, *chosen[network].values(), seed, *keep)
        yield "maps", of_maps, (seed, weights)
        yield "rectangle", of_rectangle, (seed, weights)
        yield "one writer", of_one_writer, (vision[0], 1 if smoke else 100, seed, weights)
        yield "few", of_few, (vision[0], *((1, 1) if smoke else (100, 60)), seed)
        yield "random", of_random, (*vision, seed)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make all runs, and write the record."""
    parser = parser_of_runs("Train the small networks of chapter 10 on digits.", "pictures")
    options = options_of_runs(parser, arguments)
    options.output.mkdir(parents=True, exist_ok=True)

    def row_of(table: str, make: Callable[..., dict], settings: tuple) -> dict[str, Any]:
        named = [setting for setting in settings if not isinstance(setting, Path)]
        path = options.output / f"{table}-{'-'.join(map(str, named))}.json".replace(" ", "_")
        found = kept(path, lambda: make(*settings))
        print(table, *named, found.get("right", ""), flush=True)
        return found

    figures: dict[str, Any] = {"choice": [row_of("choice", of_choice, s) for s in choices(options.smoke)]}
    figures["chosen"] = {network: best(figures["choice"], network) for network in NETWORKS}
    for table, make, settings in wanted(figures["chosen"], options.smoke, options.output):
        figures.setdefault(table, []).append(row_of(table, make, settings))
        what = (
            "Small networks on handwritten digits of new writers: groups of forms, augmentation, few labels."
        )
        write_record(options.record, what, "recipes/pictures.py", figures)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
