"""The assistant of chapter 16: low-rank updates of Gemma 3 270M base, trained on questions with answers.

    python recipes/assistant.py --output build/assistant
    python recipes/assistant.py --output build/replies-1 --seed 1 --kinds reply --without-promises
    python recipes/assistant.py --output build/preferring --start build/assistant --preferences dpo
    accelerate launch recipes/assistant.py --output build/assistant

Only the answers are learned (`chapters_src.assistant`), by updates of rank 8 on the projections of
attention. `--without-promises` removes the sentences of replies that promise something; all
else stays. `--kinds reply` trains on the replies alone, and asks for replies alone. With
`--preferences dpo` a second stage follows, on pairs of a better and a worse answer; its control,
`--preferences chosen`, takes as many steps on the better answers alone. `--start` begins with updates of
an earlier run instead of the first stage.

At the end the model answers every question of the test split, greedily, or with `--ask-every 3` every
third one and all reports, and Merete Falk's message. An
interrupted run resumes from its last checkpoint, beside the output. It writes the updates in 16 bits, in
PEFT's form, with the template, a card, and what Gemma's terms ask for; the folder appears complete or not
at all. `--smoke` runs everything on a small scale, on the first two layers of Gemma; its numbers mean
nothing.

`run.json` has the options, the losses on the way, and under "answers" for each row that was asked "text"
and "ended"; under "merete" the reply to her message, and under "on the way" the replies to it when the
losses were looked at.
"""

import argparse
import hashlib
import json
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import torch
from accelerate import PartialState
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import AutoTokenizer

from chapters_src import resources
from chapters_src.assistant import (
    REFUSAL,
    TEMPLATE,
    AnswerLoss,
    Pair,
    PreferenceLoss,
    Written,
    addressee,
    answer,
    answer_batch,
    encode_pair,
    findings,
    outcome,
    score_answers,
)
from chapters_src.data import assistant as data
from chapters_src.evaluation import bootstrap_interval
from chapters_src.files import atomic_write, write_text
from chapters_src.pretrained import add_low_rank, load, load_low_rank, merge_low_rank, save_low_rank
from chapters_src.training import History, Settings, TokenBudgetSampler, batches_per_step, train
from chapters_src.transformer import LanguageModel
from recipes.machine import precision, rows_per_process, tokens_per_process, versions
from recipes.output import gathered, listed, log_of, options_from, parser_for, time_taken

BASE, MODEL_TYPE = "google/gemma-3-270m", "gemma3_text"
TERMS = Path(__file__).with_name("gemma_terms.md")
NOTICE = "Gemma is provided under and subject to the Gemma Terms of Use found at ai.google.dev/gemma/terms\n"
BETA = 0.1  # Of DPO.
HELD_BACK = 20  # One source of so many is held back from training, to watch the loss.
KINDS_TO_THE_LETTER = ("parameter",)

MERETE = (
    "Dear maintainers of chartling, since I upgraded to version 3.2 on Monday, every legend in my figures "
    "sits on top of the data. Not beside it, not below it: on top of it, like a cat on a keyboard. My name "
    "is Merete Falk, I count salmon for Nordvik Seafood in Tromsø, and last Tuesday I showed forty people a "
    "chart of one very large gray rectangle. Somebody asked whether the rectangle was the salmon. I have "
    "moved the legend to eleven different places. It comes back. With version 3.1 everything was fine, and I "
    "was happy. My colleague Idris Boakye says that your new function auto_place ignores the size of the "
    "figure. He is usually right, and smug about it. Please fix this before Friday, when I have to present "
    "again, this time to the Faroese minister of fisheries. I love your library. I hate your legend."
)


@dataclass(frozen=True)
class Sizes:
    """What differs between the shipped run and a smoke run."""

    num_rows: int | None = None  # Of each split, drawn at random; None: all.
    num_epochs: int = 3
    tokens_per_step: int = 1024  # Of one step, with padding, on all processes together.
    preferences_per_step: int = 4
    num_layers: int | None = None  # Of Gemma, from the first; None: all.
    most_tokens: int = 96  # Of an answer.


SMOKE = Sizes(24, 1, 512, num_layers=2, most_tokens=3)

Row = dict[str, str]


class Texts:
    """Rows of the data as ids."""

    def __init__(self, folder: str) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)

    def pairs(self, rows: Sequence[Row], which: str = "answer") -> list[Pair]:
        """Encode questions with one of their answers."""
        return [encode_pair(self.tokenizer, row["passage"], row["question"], row[which]) for row in rows]

    def batches(self, pairs: Sequence[Pair], tokens: int) -> DataLoader:
        """Return batches of pairs of similar length, within a budget of tokens, in random order."""
        lengths = [sum(map(len, pair)) for pair in pairs]
        sampler = TokenBudgetSampler(lengths, tokens, shuffle=True)
        return DataLoader(list(pairs), batch_sampler=sampler, collate_fn=self.collate)

    def collate(self, pairs: Sequence[Pair]) -> dict[str, Tensor]:
        """Make one batch."""
        return answer_batch(pairs, self.tokenizer.pad_token_id)

    def collate_preferences(self, items: Sequence[tuple[Pair, Pair, float, float]]) -> dict[str, Tensor]:
        """Make one batch: the chosen answers, then the rejected ones, and their scores before training."""
        chosen, rejected, *reference = zip(*items, strict=True)
        scores = torch.tensor([*reference[0], *reference[1]])
        return self.collate([*chosen, *rejected]) | {"reference": scores}


def drawn(rows: Sequence[Row], most: int | None, seed: int) -> list[Row]:
    """Draw so many rows of all kinds, or take them all."""
    if most is None or most >= len(rows):
        return list(rows)
    return [rows[i] for i in np.random.default_rng(seed).permutation(len(rows))[:most]]


def is_held_back(row: Row) -> bool:
    """Return whether a row's source is one of those that only the loss is watched on."""
    return int(hashlib.sha256(row["source"].encode()).hexdigest(), 16) % HELD_BACK == 0


def training_rows(options: argparse.Namespace, sizes: Sizes) -> list[Row]:
    """Load the rows to train on, the same ones for every seed."""
    rows = of_kinds(data.load(promises=not options.without_promises)["train"].to_list(), options.kinds)
    return drawn(rows, chosen(options.rows, sizes.num_rows), seed=0)


def of_kinds(rows: Sequence[Row], kinds: Sequence[str] | None) -> list[Row]:
    """Leave out the rows of other kinds.

    Raises:
        SystemExit: if there is no row of one of the kinds.
    """
    known = sorted({row["kind"] for row in rows})
    for kind in kinds or ():
        if kind not in known:
            raise SystemExit(f"--kinds {kind}: no such kind of row; there are {', '.join(known)}")
    return [row for row in rows if kinds is None or row["kind"] in kinds]


def asked_of(rows: Sequence[Row], kinds: Sequence[str] | None, every: int = 1) -> list[int]:
    """Return the places of the rows that are asked at the end: every so manyth question, and all replies."""
    of_kind = {row["kind"] for row in of_kinds(rows, kinds)}
    asked = [i for i, row in enumerate(rows) if i % every == 0 or row["kind"] == "reply"]
    return [i for i in asked if rows[i]["kind"] in of_kind]


def chosen(option: Any, default: Any) -> Any:
    """Return the option from the command line, or else the default."""
    return default if option is None else option


def base_model(folder: str, sizes: Sizes) -> LanguageModel:
    """Load Gemma, or its first layers."""
    model = load(folder)
    model.decoder.stack.layers = model.decoder.stack.layers[: sizes.num_layers]
    return model


def new_model(options: argparse.Namespace, sizes: Sizes, folder: str) -> LanguageModel:
    """Load Gemma, and add new updates, or those of an earlier run."""
    model = base_model(folder, sizes)
    if options.start:
        return load_low_rank(model, options.start, model_type=MODEL_TYPE)
    generator = torch.Generator().manual_seed(options.seed)
    return add_low_rank(model, options.rank, 2.0 * options.rank, generator)


def on_answers(
    options: argparse.Namespace,
    sizes: Sizes,
    model: LanguageModel,
    texts: Texts,
    rows: Sequence[Row],
    phase: str,
    *,
    num_epochs: int,
    learning_rate: float,
    max_steps: int = 0,
) -> History:
    """Train on answers, and watch the loss of each kind on sources that are held back."""
    watched = [row for row in rows if is_held_back(row)]
    kinds, most = sorted({row["kind"] for row in watched}), sizes.most_tokens
    pairs = {kind: texts.pairs([row for row in watched if row["kind"] == kind]) for kind in kinds}

    def evaluate(module: AnswerLoss) -> dict[str, float]:
        losses, total, tokens = {}, 0.0, 0
        for kind, of_kind in pairs.items():
            scores, lengths = score_answers(module.model, of_kind, texts.tokenizer.pad_token_id)
            losses[f"loss of {kind}"] = float(-scores.sum() / lengths.sum())
            total, tokens = total - float(scores.sum()), tokens + int(lengths.sum())
        loss = total / max(tokens, 1)
        (letter,) = answer(module.model, texts.tokenizer, [(MERETE, data.REQUEST)], max_new_tokens=most)
        keep_letter(options, loss, letter)
        return {"validation_loss": loss} | losses

    learned = texts.pairs([row for row in rows if not is_held_back(row)])
    batches = texts.batches(learned, tokens_per_process(sizes.tokens_per_step))
    steps = max_steps or num_epochs * math.ceil(len(batches) / batches_per_step())
    return fit(options, AnswerLoss(model), batches, phase, steps, learning_rate, evaluate=evaluate)


def letters_of(options: argparse.Namespace) -> dict[str, Any]:
    """Read the replies to Merete on the way, also of an interrupted beginning, by held-out loss."""
    path = checkpoints_of(options) / "letters.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def keep_letter(options: argparse.Namespace, loss: float, letter: Written) -> None:
    """Add a reply to Merete to those on the way."""
    if PartialState().is_main_process:
        content = json.dumps(letters_of(options) | {repr(loss): letter._asdict()}, ensure_ascii=False)
        write_text(checkpoints_of(options) / "letters.json", content)


def checkpoints_of(options: argparse.Namespace) -> Path:
    """Return the folder of the checkpoints, beside the output."""
    return options.output.with_name(f"{options.output.name}-checkpoints")


def on_preferences(
    options: argparse.Namespace, sizes: Sizes, model: LanguageModel, texts: Texts, rows: Sequence[Row]
) -> History:
    """Train on preferences, by DPO or on the better answers alone, with as many steps."""
    per_step = rows_per_process(sizes.preferences_per_step, "preferences_per_step")
    pairs = [texts.pairs(rows, which) for which in ("chosen", "rejected")]
    references = [score_answers(model, one, texts.tokenizer.pad_token_id)[0].tolist() for one in pairs]
    items = list(zip(*pairs, *references, strict=True))
    loader: Callable[..., DataLoader] = lambda items, collate: DataLoader(  # noqa: E731
        items, batch_size=per_step, shuffle=True, collate_fn=collate
    )
    batches = loader(items, texts.collate_preferences)
    steps = math.ceil(len(batches) / batches_per_step())
    rate = options.preference_rate
    if options.preferences == "chosen":
        return fit(options, AnswerLoss(model), loader(pairs[0], texts.collate), "chosen", steps, rate)
    module = PreferenceLoss(model, BETA)
    return fit(options, module, batches, "dpo", steps, rate, count_items=lambda b: len(b["reference"]) // 2)


def fit(
    options: argparse.Namespace,
    module: torch.nn.Module,
    batches: DataLoader,
    phase: str,
    steps: int,
    learning_rate: float,
    **more: Any,
) -> History:
    """Train one stage, with its checkpoints in a folder of its own."""
    watched = max(1, math.ceil(steps / 4))  # It takes a minute.
    settings = Settings(
        learning_rate=learning_rate,
        max_steps=steps,
        warmup=0.03,
        schedule="cosine",
        mixed_precision=precision(PartialState().device),
        seed=options.seed,
        evaluate_every=watched if "evaluate" in more else 0,
        checkpoint_every=max(1, math.ceil(steps / 20)),
    )
    folder = checkpoints_of(options) / phase
    return train(
        module, batches, lambda model, batch: model(**batch), settings, checkpoint_folder=folder, **more
    )


# What it answers ------------------------------------------------------------------------------------------


def verdicts(rows: Sequence[Row], written: Sequence[Written]) -> list[dict[str, Any]]:
    """Judge every answer by rule.

    Returns:
        For each row its kind, whether the answer ended, and for a question its outcome; for a reply whether
        it greets the right person, the number of details that stand nowhere in the report, and of promises.
    """
    found = []
    for row, (text, ended) in zip(rows, written, strict=True):
        verdict: dict[str, Any] = {"kind": row["kind"], "ended": ended}
        if row["kind"] == "reply":
            details = [one for one in findings(text, row["passage"]) if not one.supported]
            verdict["right person"] = addressee(text) == addressee(row["answer"])
            verdict["invented details"] = sum(one.kind != "promise" for one in details)
            verdict["invented promises"] = sum(one.kind == "promise" for one in details)
        else:
            exact = row["kind"] in KINDS_TO_THE_LETTER and row["answer"] != REFUSAL
            verdict["outcome"] = outcome(text, row["answer"], row["passage"], to_the_letter=exact)
        found.append(verdict)
    return found


def table_of(rows: Sequence[Row], written: Sequence[Written]) -> str:
    """Return Markdown tables of what became of questions and of reports, with 95% intervals."""
    judged = verdicts(rows, written)

    def share(values: Sequence[float]) -> str:
        if len(values) < 2:
            return "-"
        estimate, low, high = bootstrap_interval(np.mean, np.array(values, dtype=float))
        return f"{estimate:.2f} ({low:.2f} to {high:.2f})"

    lines = ["| kind | rows | right | refused | wrong | invented | ends |", "|---|---|---|---|---|---|---|"]
    refusal = [row["answer"] == REFUSAL for row in rows]
    names = sorted(
        {(row["kind"], no) for row, no in zip(rows, refusal, strict=True) if row["kind"] != "reply"}
    )
    for kind, no in names:
        some = [v for v, r, n in zip(judged, rows, refusal, strict=True) if (r["kind"], n) == (kind, no)]
        cells = [share([v["outcome"] == o for v in some]) for o in ("right", "refused", "wrong", "invented")]
        name = f"{kind}, not in the text" if no else kind
        ends = share([v["ended"] for v in some])
        lines.append(f"| {name} | {len(some)} | {' | '.join(cells)} | {ends} |")
    replies = [v for v in judged if v["kind"] == "reply"]
    lines += [
        "",
        "| replies | greet the right person | have invented details | invented promises | end |",
        "|---|---|---|---|---|",
        f"| {len(replies)} | {share([v['right person'] for v in replies])} | "
        f"{share([v['invented details'] > 0 for v in replies])} | "
        f"{share([v['invented promises'] > 0 for v in replies])} | {share([v['ended'] for v in replies])} |"
        if replies
        else "| 0 | - | - | - | - |",
    ]
    return "\n".join(lines)


def card(facts: str, table: str, examples: Sequence[tuple[Row, Written]], merete: str) -> str:
    """Write the model card; all numbers come from this run."""
    shown = "\n\n".join(f"- asked: {row['question']}\n- answer: {text}" for row, (text, _) in examples)
    return f"""# Assistant: answers from a passage, and replies to bug reports

Low-rank updates (LoRA) of the attention of {BASE}, trained for chapter 16 of the book by
`recipes/assistant.py`, with {versions()}. This folder holds the updates only, in the form of PEFT;
`chapters_src.pretrained.load_low_rank` puts them into the book's own Gemma, `peft.PeftModel.from_pretrained`
into the library's. `chat_template.jinja` is the template of its turns.

**Terms.** {NOTICE.strip()}. This is a Model Derivative of Gemma, and so are models made of it: they may be
used only under these terms, with the restrictions of their section 3.2, which forbids the uses of the
[Gemma Prohibited Use Policy](https://ai.google.dev/gemma/prohibited_use_policy) and whatever the law
forbids. Pass them on with the updates: `NOTICE` and `GEMMA_TERMS.md` are part of this folder. **Modified:**
the files here are not Gemma's; they change what Gemma computes. The base model is not part of the folder.

{facts}

## What became of the questions of the test split

By rule (`chapters_src.assistant`), greedily, with 95% bootstrap intervals over the rows (they know nothing
of another seed). *Wrong* answers stand in the passage, *invented* ones do not. Parameters are compared to
the letter. Details of replies are names, versions, numbers, days and names of code that stand nowhere in
the report.

{table}

## Some of its answers, drawn at random

{shown}

To Merete Falk's message, which is in no split: {merete}

## What it cannot do

It has 268 million weights and knows little. It takes answers from the passage it is given, and often the
wrong one; where the passage does not say, it may invent an answer, and where it does say, refuse. Its
replies repeat patterns of the training pairs, promises included. It may take for a fact what somebody has
planted in a passage. Nothing keeps it from harmful texts. Do not let it write to people without reading
what it wrote. The pairs are [synthetic](../../data/assistant.md).
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the recipe."""
    parser = parser_for(__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, help="passes over the training rows")
    parser.add_argument("--kinds", nargs="+", help="kinds of rows to train on and to ask; default: all")
    parser.add_argument(
        "--ask-every", type=int, default=1, help="ask every so manyth question of the test split"
    )
    parser.add_argument(
        "--rows", type=int, help="of the training split and of the preferences, drawn at random; default: all"
    )
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--without-promises", action="store_true", help="remove promises from the replies")
    parser.add_argument("--start", type=Path, help="folder of earlier updates, instead of the first stage")
    parser.add_argument("--preferences", choices=("dpo", "chosen"), help="a second stage")
    parser.add_argument("--preference-rate", type=float, default=2e-4, help="learning rate of that stage")
    options = options_from(parser, arguments)
    if options.start and not options.preferences:
        parser.error("--start replaces the first stage, so nothing is left to do without --preferences")
    sizes = SMOKE if options.smoke else Sizes()
    folder = resources.checkpoint("gemma")
    model, texts = new_model(options, sizes, folder), Texts(folder)
    begin = time.monotonic()
    histories: dict[str, History] = {}
    if not options.start:
        histories["answers"] = on_answers(
            options,
            sizes,
            model,
            texts,
            training_rows(options, sizes),
            "answers",
            num_epochs=chosen(options.epochs, sizes.num_epochs),
            learning_rate=options.learning_rate,
        )
    if options.preferences:
        rows = drawn(data.load_preferences()["train"].to_list(), chosen(options.rows, sizes.num_rows), seed=0)
        histories[options.preferences] = on_preferences(options, sizes, model, texts, rows)
    seconds = time.monotonic() - begin
    full = gathered(model, lambda: new_model(options, sizes, folder))
    if full is not None:
        write(options, sizes, full, folder, texts, histories, seconds)
    PartialState().wait_for_everyone()


def write(
    options: argparse.Namespace,
    sizes: Sizes,
    model: LanguageModel,
    folder: str,
    texts: Texts,
    histories: dict[str, History],
    seconds: float,
) -> None:
    """Save, load and ask the saved updates, and write the card; then move the folder to its place."""
    with atomic_write(options.output) as result:
        save_low_rank(model, result, model_type=MODEL_TYPE, base=BASE)
        shipped = merge_low_rank(
            load_low_rank(base_model(folder, sizes), result, model_type=MODEL_TYPE)
        ).eval()
        rows = data.load()["test"].to_list()
        rows = [rows[i] for i in asked_of(rows, options.kinds, options.ask_every)]
        rows = drawn(rows, sizes.num_rows, seed=0)
        asked = [(row["passage"], row["question"]) for row in rows]
        ask_for_reply = next(
            (r["question"] for r in rows if r["kind"] == "reply"), "Write a reply to this report."
        )
        *written, merete = answer(
            shipped, texts.tokenizer, [*asked, (MERETE, ask_for_reply)], max_new_tokens=sizes.most_tokens
        )
        facts = {
            "training rows": f"{len(training_rows(options, sizes)):,}, one source of {HELD_BACK} held back"
            + ("; promises removed from the replies" if options.without_promises else ""),
            "trained weights": f"{sum(p.numel() for p in model.parameters() if p.requires_grad):,}",
            **{phase: told(history) for phase, history in histories.items()},
            "time": time_taken(seconds),
            "settings": f"rank {options.rank}, alpha {2 * options.rank}, "
            f"learning rate {options.learning_rate}, at most {sizes.tokens_per_step} tokens a step, "
            f"seed {options.seed}"
            + (f"; DPO: beta {BETA}, learning rate {options.preference_rate}" if options.preferences else ""),
            **({"first stage": f"the updates of {options.start.name}"} if options.start else {}),
        }
        order = np.random.default_rng(0).permutation(len(rows))[:6]
        examples = [(rows[i], written[i]) for i in order]
        content = card(listed(facts, smoke=options.smoke), table_of(rows, written), examples, merete.text)
        letters = letters_of(options)
        log = log_of(options, list(histories.values())[-1], {}) | {
            "stages": {name: history.evaluations for name, history in histories.items()},
            "answers": [one._asdict() for one in written],
            "merete": merete._asdict(),
            "on the way": [
                {"step": one["step"], **letters.get(repr(one["validation_loss"]), {})}
                for one in (histories["answers"].evaluations if "answers" in histories else [])
            ],
        }
        (result / "README.md").write_text(content, encoding="utf-8")
        (result / "NOTICE").write_text(NOTICE, encoding="utf-8")
        (result / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
        (result / "run.json").write_text(
            json.dumps(log, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
        )
        shutil.copyfile(TERMS, result / "GEMMA_TERMS.md")
    print(content)


def told(history: History) -> str:
    """Describe the length and the losses of one stage."""
    losses = ", ".join(f"{one['validation_loss']:.3f}" for one in history.evaluations)
    items = f"{len(history.steps):,} steps, {history.steps[-1]['items']:,} answer tokens or pairs"
    return items + (f"; held-out loss on the way, in nats per answer token: {losses}" if losses else "")


if __name__ == "__main__":
    main()
