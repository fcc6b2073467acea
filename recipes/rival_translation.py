"""The recurrent rival of the translator: the recorded runs of chapter 09.

    python recipes/rival_translation.py --output build/rival-translation

The transformer has the shape, the batches and the learning rate of the page, and reads 50,000 pairs twice (on
the page it gets a third of the steps). Its rival is the model that it replaced, of Bahdanau, Cho
and Bengio (2015), https://arxiv.org/abs/1409.0473, with GRUs: one reads the sentence in both directions,
another writes, and before each token it looks at all that was read, by additive attention. A plain layer
stands for the paper's maxout, and as in the transformer there is no dropout. Its width is the one whose
number of parameters is nearest to the transformer's. Equal are also the pieces and their one embedding
(input, output, both languages), the pairs and the order of the batches of a seed, label smoothing, AdamW with
its betas and weight decay, warm-up, cosine and clipping. The rival gets no number of steps but the processor
seconds that the transformer of the same seed took here; its learning rate follows the share of them that is
over.

The transformer's learning rate is that of the page. The rival's is one of `RATES`: the one with the lowest
loss, without smoothing, on the second half of the validation pairs, after the seconds of the first
transformer, with a seed that is not reported. Scores are of the first sentences of each held-out split, which
decide nothing. Both write greedily.

"large" is one more rival, on as many pairs as the shipped translator (`recipes/translation.py`) was trained
on, with its pieces and the order of its batches. It gets as many processor seconds as the steps of the
shipped translator take here, measured over a few of them, and the learning rate of the small ones.

The output holds two files for each run, scores and weights. Finished runs are not repeated, so an interrupted
recipe goes on where it was, and the record is written after each of them. `--only small` leaves the large one
out. The figures of the record are

- "runs": of each seed the transformer and its rival: learning rate, number of parameters, steps, passes over
  the pairs, processor seconds of training; the loss on the second half of the validation pairs, in nats per
  token, without smoothing; for each split BLEU, chrF and the share of sentences that are exactly right; and
  "cure": the share after `CURE_STEPS` more steps on ordinary pairs, a quarter of which come from the splits
  that an arm names, at a third of the learning rate;
- "rates": the rival's learning rates that were tried, in the same form but without scores, and the chosen
  one;
- "large": the shipped translator, whose seconds are those measured here, and its rival, in the same form,
  unless they were left out;
- "sizes": of the small runs and of the large ones; "scored": how many sentences of each split were scored in
  both.

`--smoke` runs everything on a small scale, in seconds; its numbers mean nothing, and its record stays in the
output.
"""

import json
import os
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from chapters_src import resources
from chapters_src.data import english_german
from chapters_src.data.english_german import HELD_OUT_SPLITS, Pair
from chapters_src.evaluation import bleu, chrf
from chapters_src.pretrained import load
from chapters_src.tokenization.byte_pair import BytePairTokenizer
from chapters_src.training import IGNORED, Settings, learning_rate_at, pad
from chapters_src.training.order import steps_of
from chapters_src.translation import BATCH_SIZE, END, MAX_NEW, PADDING, START, Texts
from recipes import translation
from recipes.output import kept, options_of_runs, parser_of_runs, write_record

SEEDS = (0, 1, 2, 3)
SEED_OF_RATES = 9  # Reported nowhere else.
RATES = (1e-3, 2e-3, 4e-3, 8e-3)
MEASURED = 300  # Steps, to find the seconds of the shipped translator.
CURE_STEPS = 200
CURE_PAIRS = 2400  # Of which a quarter come from the splits of the arm.
ARMS = {
    "control": (),
    "clauses": ("clauses",),
    "longer": ("longer",),
    "longer and clauses": ("longer", "clauses"),
}
CURED = ("validation", "clauses", "longer", "both")  # Splits that are scored again.
FINE = 10_000  # Into so many parts the learning rate divides a training by the clock.

SMALL = translation.Sizes(num_pairs=50_000, tokens_per_batch=400)  # Of the four-seed runs.
LARGE = translation.Sizes()  # Of the shipped translator.

Splits = Mapping[str, Sequence[Pair]]


@dataclass(frozen=True)
class Sizes:
    """What differs between the recorded runs and a smoke run."""

    small: translation.Sizes = SMALL
    passes: float = 2  # Of the small transformers, over their pairs.
    learning_rate: float = 3e-3  # Of the small transformers.
    scored: int = 200  # Sentences of each split.
    large: translation.Sizes = LARGE
    large_scored: int = 500
    cure_steps: int = CURE_STEPS
    seeds: tuple[int, ...] = SEEDS
    measured: int = MEASURED
    shipped_steps: int | None = None  # None: as many as its log says.


SMOKE = Sizes(
    small=translation.SMOKE,
    scored=4,
    large=translation.Sizes(60, 8),
    large_scored=4,
    cure_steps=2,
    seeds=(0, 1),
    measured=2,
    shipped_steps=4,
)


# The rival ------------------------------------------------------------------------------------------------


class Rival(nn.Module):
    """GRUs with additive attention: Bahdanau, Cho and Bengio (2015).

    Args:
        vocab_size: number of pieces of both languages.
        d_model: numbers of a piece's vector, which is also its row of the head.
        width: of the states.
    """

    def __init__(self, vocab_size: int, d_model: int, width: int) -> None:
        super().__init__()
        self.scale = d_model**0.5  # As in the transformer, and with its initial values.
        self.tokens = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.tokens.weight, std=1 / self.scale)
        self.encoder = nn.GRU(d_model, width, bidirectional=True, batch_first=True)
        self.bridge = nn.Linear(width, width)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(2 * width, width, bias=False)
        self.v = nn.Linear(width, 1, bias=False)
        self.decoder = nn.GRUCell(d_model + 2 * width, width)
        self.join = nn.Linear(d_model + 3 * width, d_model)

    def read(self, source_ids: Tensor, source_mask: Tensor | None) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Read the sources in both directions.

        Args:
            source_ids: (B, S).
            source_mask: (B, S), 0 for padding; None if there is none.

        Returns:
            The first state of the decoder, from where the backward reading ends, and what the decoder looks
            at: states (B, S, 2 width), keys (B, S, width), and 0 or minus infinity (B, S).
        """
        embedded = self.tokens(source_ids) * self.scale
        if source_mask is None:
            source_mask = torch.ones_like(source_ids)
        packed = pack_padded_sequence(embedded, source_mask.sum(1), batch_first=True, enforce_sorted=False)
        read, last = self.encoder(packed)
        states, _ = pad_packed_sequence(read, batch_first=True)
        hidden = torch.zeros(source_mask.shape).masked_fill(source_mask == 0, -torch.inf)
        return torch.tanh(self.bridge(last[1])), (states, self.key(states), hidden)

    def look(self, state: Tensor, memory: tuple[Tensor, ...]) -> Tensor:
        """Return the mean of the states of the source, (B, 2 width), weighted by additive attention."""
        states, keys, hidden = memory
        scores = self.v(torch.tanh(self.query(state)[:, None] + keys)).squeeze(-1) + hidden
        return (scores.softmax(dim=-1)[:, None] @ states).squeeze(1)

    def step(self, embedded: Tensor, state: Tensor, memory: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Look, then read one token of the target; return the new state and all that a prediction needs."""
        context = self.look(state, memory)
        state = self.decoder(torch.cat([embedded, context], dim=-1), state)
        return state, torch.cat([embedded, state, context], dim=-1)

    def head(self, found: Tensor) -> Tensor:
        """Return the logits."""
        return F.linear(torch.tanh(self.join(found)), self.tokens.weight)

    def forward(self, source_ids: Tensor, source_mask: Tensor | None, inputs: Tensor, _: None) -> Tensor:
        """Return the logits, (B, T, vocabulary), as the transformer does."""
        state, memory = self.read(source_ids, source_mask)
        found = []
        for embedded in (self.tokens(inputs) * self.scale).unbind(1):
            state, one = self.step(embedded, state, memory)
            found.append(one)
        return self.head(torch.stack(found, dim=1))

    @torch.no_grad()
    def greedy(self, sources: Sequence[list[int]], max_new_tokens: int) -> list[list[int]]:
        """Write the most probable token again and again; return the ids without start and end."""
        state, memory = self.read(*pad(sources, padding_id=PADDING))
        ids = torch.full((len(sources),), START)
        written: list[Tensor] = []
        while len(written) < max_new_tokens:
            state, found = self.step(self.tokens(ids) * self.scale, state, memory)
            ids = self.head(found).argmax(dim=-1)
            written.append(ids)
            if (torch.stack(written) == END).any(dim=0).all():
                break
        rows = torch.stack(written, dim=1).tolist()
        return [row[: row.index(END)] if END in row else row for row in rows]


def count(model: nn.Module) -> int:
    """Return the number of parameters."""
    return sum(parameter.numel() for parameter in model.parameters())


def new_rival(like: nn.Module, vocab_size: int, d_model: int) -> Rival:
    """Make a rival with about as many parameters as another model."""

    def count_at(width: int) -> int:
        with torch.device("meta"):
            return count(Rival(vocab_size, d_model, width))

    wanted, widths = count(like), range(1, 4 * d_model)
    more = bisect_left(widths, wanted, key=count_at)
    width = min(widths[max(0, more - 1) : more + 1], key=lambda width: abs(count_at(width) - wanted))
    return Rival(vocab_size, d_model, width)


# Training and translating ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    """One training. It has a number of steps, or of processor seconds."""

    kind: str  # "transformer" or "recurrent".
    seed: int
    learning_rate: float
    scale: str = "small"

    def file(self, output: Path) -> Path:
        """Return the file of its scores."""
        return output / f"{self.scale}-{self.kind}-{self.seed}-{self.learning_rate:g}.json"


def new_model(kind: str, sizes: translation.Sizes, vocab_size: int, seed: int) -> nn.Module:
    """Make what a run trains, before training."""
    torch.manual_seed(seed)
    transformer = translation.new_model(sizes, vocab_size)
    if kind == "transformer":
        return transformer
    torch.manual_seed(seed)
    return new_rival(transformer, vocab_size, sizes.d_model)


def trained(
    run: Run,
    sizes: translation.Sizes,
    texts: Texts,
    pairs: Sequence[Pair],
    *,
    steps: int = 0,
    seconds: float = 0,
    model: nn.Module | None = None,
    warmup: float = 0.05,
) -> tuple[nn.Module, dict[str, float]]:
    """Train a model as `chapters_src.training.train` does, but if wanted by the clock.

    Args:
        run: what to train.
        sizes: its sizes.
        texts: the pieces.
        pairs: to train on.
        steps: how many, or 0.
        seconds: of processor time to train for, or 0.
        model: to train on, in place; a new one if None.
        warmup: share of the training over which the learning rate rises.

    Returns:
        The model; the numbers of its parameters, steps, passes and processor seconds.
    """
    if model is None:
        model = new_model(run.kind, sizes, len(texts.tokenizer), run.seed)
    loader = texts.batches(pairs, sizes.tokens_per_batch, shuffle=True)
    settings = Settings(
        learning_rate=run.learning_rate,
        max_steps=steps or FINE,
        warmup=warmup,
        schedule="cosine",
        betas=(0.9, 0.98),
        seed=run.seed,
    )
    groups = [
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": settings.weight_decay},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, settings.learning_rate, settings.betas, fused=True)
    model.train()
    done = rows = 0
    position, took, start = 0, 0.0, time.process_time()
    for [(batch, _)] in steps_of(loader, settings):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate_at(position, settings.max_steps, settings)
        loss = translation.loss_of(model, batch) / (batch["labels"] != IGNORED).sum()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), settings.max_grad_norm)
        optimizer.step()
        optimizer.zero_grad()
        done, rows = done + 1, rows + len(batch["inputs"])
        took = time.process_time() - start
        position = done if steps else int(FINE * took / seconds)
        if done % 250 == 0:
            print(run, f"step {done}, loss {loss.item():.3f}, {took:.0f} s", flush=True)
        if position >= settings.max_steps:
            break
    facts = {"steps": done, "passes": round(rows / len(pairs), 3), "seconds": round(took, 2)}
    return model.eval(), {"parameters": count(model), **facts}


@torch.no_grad()
def validation_loss(model: nn.Module, texts: Texts, pairs: Sequence[Pair], tokens: int) -> float:
    """Return the loss on pairs, in nats per token, without smoothing."""
    total = number = 0
    for batch in texts.batches(pairs, tokens, shuffle=False):
        total += translation.loss_of(model, batch, smoothing=0.0).item()
        number += int((batch["labels"] != IGNORED).sum())
    return round(total / number, 4)


def translate(model: nn.Module, texts: Texts, sentences: Sequence[str]) -> list[str]:
    """Translate sentences greedily."""
    if not isinstance(model, Rival):
        return translation.translate(model, texts, sentences, num_beams=1)
    written = [""] * len(sentences)
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    for first in range(0, len(order), BATCH_SIZE):
        rows = order[first : first + BATCH_SIZE]
        found = model.greedy([texts.ids(sentences[i]) for i in rows], MAX_NEW)
        for i, ids in zip(rows, found, strict=True):
            written[i] = texts.tokenizer.decode(ids)
    return written


def scores(model: nn.Module, texts: Texts, data: Splits, scored: int) -> dict[str, dict[str, float]]:
    """Score the first sentences of each held-out split."""
    found = {}
    for split in HELD_OUT_SPLITS:
        pairs = data[split][:scored]
        references = [pair.german for pair in pairs]
        written = translate(model, texts, [pair.english for pair in pairs])
        found[split] = {
            "bleu": round(bleu(written, references), 2),
            "chrf": round(chrf(written, references), 2),
            "exact": exact(written, pairs),
        }
    return found


def exact(written: Sequence[str], pairs: Sequence[Pair]) -> float:
    """Return the share of translations that are right to the last letter."""
    return float(np.mean([text == pair.german for text, pair in zip(written, pairs, strict=True)]))


# The runs -------------------------------------------------------------------------------------------------


def once(file: Path, make: Callable[[], tuple[nn.Module, dict[str, Any]]]) -> dict[str, Any]:
    """Make the weights and scores of a run, or read what a finished one has left."""

    def of_run() -> dict[str, Any]:
        model, found = make()
        file.parent.mkdir(parents=True, exist_ok=True)
        torch.save(model.state_dict(), file.with_suffix(".pt"))
        print(json.dumps(found), flush=True)
        return found

    return kept(file, of_run)


@dataclass
class Runs:
    """The runs of one scale: pieces and sentences, and where what is finished lies."""

    output: Path
    sizes: translation.Sizes
    texts: Texts
    data: Splits
    scored: int
    cure_steps: int = 0  # 0: no cure.

    def of(self, run: Run, *, scored: bool = True, **length: float) -> dict[str, Any]:
        """Train and score, or read what a finished run has left."""

        def make() -> tuple[nn.Module, dict[str, Any]]:
            model, facts = trained(run, self.sizes, self.texts, self.data["train"], **length)
            found = asdict(run) | facts | self.judged(model, scored=scored)
            if scored and self.cure_steps:
                found["cure"] = self.cure(run, model)
            return model, found

        return once(run.file(self.output), make)

    def judged(self, model: nn.Module, *, scored: bool = True) -> dict[str, Any]:
        """Return the loss on the second half of validation, and the scores."""
        second_half = self.data["validation"][len(self.data["validation"]) // 2 :]
        loss = validation_loss(model, self.texts, second_half, self.sizes.tokens_per_batch)
        found: dict[str, Any] = {"validation_loss": loss}
        if scored:
            found["scores"] = scores(model, self.texts, self.data, self.scored)
        return found

    def cure(self, run: Run, model: nn.Module) -> dict[str, dict[str, float]]:
        """Train copies further, with a quarter from other splits; return what is exactly right, by arm."""
        gentle = replace(run, learning_rate=run.learning_rate / 3)
        found = {}
        for arm, splits in ARMS.items():
            number = CURE_PAIRS // 4 // max(1, len(splits))
            foreign = [pair for s in splits for pair in self.data[s][self.scored :][:number]]
            pairs = [*self.data["train"][: CURE_PAIRS - len(foreign)], *foreign]
            tuned, _ = trained(
                gentle,
                self.sizes,
                self.texts,
                pairs,
                steps=self.cure_steps,
                model=deepcopy(model),
                warmup=0.1,
            )
            found[arm] = {}
            for split in CURED:
                asked = self.data[split][: self.scored]
                written = translate(tuned, self.texts, [pair.english for pair in asked])
                found[arm][split] = exact(written, asked)
        return found


def small_runs(output: Path, sizes: Sizes, note: Callable[[dict[str, Any]], None]) -> float:
    """Train the transformer of the page and its rival with all seeds; return the rival's learning rate."""
    data = english_german.pairs(sizes.small.num_pairs, num_held_out=sizes.small.num_held_out)
    texts = Texts.of(data["train"], sizes.small.vocab_size)
    runs = Runs(output, sizes.small, texts, data, sizes.scored, sizes.cure_steps)
    batches = texts.batches(data["train"], sizes.small.tokens_per_batch, shuffle=True)
    steps = max(1, round(sizes.passes * len(batches)))
    finished: list[dict[str, Any]] = []
    chosen = 0.0
    for seed in sizes.seeds:
        transformer = runs.of(Run("transformer", seed, sizes.learning_rate), steps=steps)
        seconds = transformer["seconds"]
        if not chosen:
            tried = [
                runs.of(Run("recurrent", SEED_OF_RATES, rate), scored=False, seconds=seconds)
                for rate in RATES
            ]
            chosen = min(tried, key=lambda one: one["validation_loss"])["learning_rate"]
            note({"rates": {"tried": tried, "chosen": chosen}})
        finished += [transformer, runs.of(Run("recurrent", seed, chosen), seconds=seconds)]
        note({"runs": finished})
    return chosen


def large_runs(
    output: Path, sizes: Sizes, folder: Path, learning_rate: float, note: Callable[[dict[str, Any]], None]
) -> None:
    """Score the shipped translator, and a rival that has had as much time."""
    data = english_german.pairs(sizes.large.num_pairs, num_held_out=sizes.large.num_held_out)
    texts = Texts(BytePairTokenizer.load(folder / "tokenizer.json"))
    runs = Runs(output, sizes.large, texts, data, sizes.large_scored)
    log = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    steps = sizes.shipped_steps or log["steps"][-1]
    like = Run("transformer", int(log["options"]["seed"]), float(log["options"]["learning_rate"]), "large")

    def shipped() -> tuple[nn.Module, dict[str, Any]]:
        model = load(folder)
        _, some = trained(like, sizes.large, texts, data["train"], steps=sizes.measured)
        facts = {
            "parameters": count(model),
            "steps": steps,
            "passes": float(log["options"]["epochs"]),
            "seconds": round(some["seconds"] / some["steps"] * steps, 2),
        }
        return model, asdict(like) | facts | runs.judged(model)

    translator = once(like.file(output), shipped)
    note({"large": [translator]})
    rival = runs.of(Run("recurrent", like.seed, learning_rate, "large"), seconds=translator["seconds"])
    note({"large": [translator, rival]})


def main(arguments: Sequence[str] | None = None) -> None:
    """Train and score all, and write the record after each run."""
    summary = "Train the translator of chapter 09 and a recurrent rival."
    parser = parser_of_runs(summary, "rival_translation")
    parser.add_argument("--translator", type=Path, help="folder of the shipped translator")
    parser.add_argument("--only", choices=["small"], help="leave the large runs out")
    options = options_of_runs(parser, arguments)
    sizes = SMOKE if options.smoke else Sizes()
    figures: dict[str, Any] = {
        "sizes": {
            "small": asdict(sizes.small) | {"passes": sizes.passes},
            "large": asdict(sizes.large),
        },
        "scored": {"small": sizes.scored, "large": sizes.large_scored},
    }

    def note(found: dict[str, Any]) -> None:
        figures.update(found)
        what = (
            "The translator of chapter 09 and a recurrent one with attention, with as many parameters and as "
            "many processor seconds: scores on the held-out splits."
        )
        write_record(options.record, what, "recipes/rival_translation.py", figures)

    chosen = small_runs(options.output, sizes, note)
    if options.only != "small":
        folder = options.translator or Path(resources.checkpoint("translator"))
        large_runs(options.output, sizes, folder, chosen, note)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
