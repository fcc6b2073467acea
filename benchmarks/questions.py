"""A model made for answers against Gemma 3 with five examples, on the same sentences (chapter 01).

    python -m benchmarks.questions [--questions 217] [--draws 4]

Both get 100 questions of the test split of `chapters_src.data.question_answers`, and of its paragraph the
sentence that is closest to the question in meaning (one text at a time, the mean of the encoder's states).
The book's reader takes the span with the highest sum of two scores, or none. Gemma 3 270M reads five
questions of the training split with their sentences and answers, then this one, and writes greedily until the
line ends, at most 16 tokens. Every draw takes five other examples. The same draws show it five labeled
messages of the emotions, and ask for the feeling of 60 test messages. The record is written after each draw,
and an interrupted run goes on after the last one.

The figures of the record are a dictionary with
- "questions": for each question "paragraph", "question", "sentence", "wanted", and "reader", the
  reader's answer;
- "draws": for each draw "seed", "examples" (the numbers of the training questions) and "answers", Gemma's;
- "messages": the numbers of the 60 messages in the test split;
- "feelings": for each draw "seed", "examples" (the numbers of the training messages) and "answers".
"""

import argparse
import json
import random
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import torch
from torch.nn.functional import normalize
from transformers import AutoModel, AutoModelForQuestionAnswering, AutoTokenizer

from chapters_src import pretrained, records, resources
from chapters_src.data import emotions, question_answers
from chapters_src.data.question_answers import Question
from chapters_src.decoding import start_decoding
from chapters_src.tokenization.sentences import split_sentences
from recipes.output import write_record

BATCH, LONGEST = 8, 16  # Prompts of equal length at once; tokens of an answer.
MESSAGES = 60


def main(arguments: list[str] | None = None) -> None:
    """Ask both, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=records.FOLDER / "questions.json")
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--questions", type=int, default=100, help="how many are drawn")
    options = parser.parse_args(arguments)
    torch.set_grad_enabled(False)
    data = question_answers.questions()
    asked = random.Random(0).sample(data["test"], options.questions)
    reader, gemma = Reader(), Gemma()
    sentences = [reader.closest_sentence(one.question, one.context) for one in asked]
    figures: dict[str, list] = {"questions": [], "draws": [], "messages": [], "feelings": []}
    for one, sentence in zip(asked, sentences, strict=True):
        row = {
            "paragraph": one.paragraph,
            "question": one.question,
            "sentence": sentence,
            "wanted": one.answer,
        }
        figures["questions"].append(row | {"reader": reader.answer(one.question, sentence)})
    prompts = [
        question_prompt(one.question, sentence) for one, sentence in zip(asked, sentences, strict=True)
    ]
    train, test = messages("train"), random.Random(MESSAGES).sample(messages("test"), MESSAGES)
    figures["messages"] = [number for number, _, _ in test]
    what = (
        "Answers of the book's reader and of Gemma 3 270M with five examples, and Gemma's labels of feelings."
    )
    if options.output.is_file():
        before = json.loads(options.output.read_text(encoding="utf-8"))["figures"]
        if before["questions"] == figures["questions"]:
            figures = before
    for seed in range(len(figures["draws"]), options.draws):
        numbers = random.Random(seed).sample(range(len(data["train"])), 5)
        examples = "".join(solved(data["train"][number]) for number in numbers)
        answers = gemma.answers(examples, prompts)
        figures["draws"].append({"seed": seed, "examples": numbers, "answers": answers})
        labeled = random.Random(seed).sample(train, 5)
        examples = "".join(f"Message: {text}\nFeeling: {name}\n\n" for _, text, name in labeled)
        answers = gemma.answers(examples, [f"Message: {text}\nFeeling:" for _, text, _ in test], longest=3)
        numbers = [number for number, _, _ in labeled]
        figures["feelings"].append({"seed": seed, "examples": numbers, "answers": answers})
        write_record(options.output, what, "benchmarks/questions.py", figures)
        print(f"draw {seed}: written", flush=True)


def question_prompt(question: str, sentence: str) -> str:
    """Write what Gemma reads after its examples."""
    return f"Text: {sentence}\nQuestion: {question}\nAnswer:"


def solved(one: Question) -> str:
    """Write a question with the sentence that holds its answer, and the answer."""
    begin = 0
    for sentence in split_sentences(one.context):
        begin = one.context.index(sentence, begin)
        if begin <= one.start < begin + len(sentence):
            return f"{question_prompt(one.question, sentence)} {one.answer}\n\n"
    raise ValueError(f"no sentence of {one.paragraph!r} holds the answer {one.answer!r}")


def messages(part: str) -> list[tuple[int, str, str]]:
    """Return the number, text and feeling of messages; without surprise, which may be either feeling.

    Args:
        part: "train", without the labels that are wrong on purpose, or "test".
    """
    names = dict.fromkeys(("joy", "love"), "positive") | dict.fromkeys(
        ("sadness", "anger", "fear"), "negative"
    )
    wrong = emotions.planted_errors()
    false = set(wrong[wrong.split == part].row)
    found = emotions.load()[part]
    labels = [emotions.LABELS[label] for label in found["label"]]
    rows = enumerate(zip(found["text"], labels, strict=True))
    return [(i, text, names[label]) for i, (text, label) in rows if label in names and i not in false]


class Reader:
    """The encoder that finds the closest sentence, and the model that reads it."""

    def __init__(self) -> None:
        folder, finder = resources.checkpoint("encoder"), resources.checkpoint("answer-finder")
        self.encoder_tokenizer = AutoTokenizer.from_pretrained(folder)
        self.encoder = AutoModel.from_pretrained(folder).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(finder)
        self.model = AutoModelForQuestionAnswering.from_pretrained(finder).eval()

    def embed(self, text: str) -> torch.Tensor:
        """Return a vector of length 1, (D,)."""
        inputs = self.encoder_tokenizer(text, truncation=True, return_tensors="pt")
        return normalize(self.encoder(**inputs).last_hidden_state[0].mean(dim=0), dim=0)

    def closest_sentence(self, question: str, context: str) -> str:
        """Return the sentence that is closest to the question in meaning."""
        query = self.embed(question)
        return max(split_sentences(context), key=lambda sentence: float(self.embed(sentence) @ query))

    def answer(self, question: str, sentence: str) -> str:
        """Return the best span of at most 30 tokens; empty if "no answer" is better."""
        inputs = self.tokenizer(question, sentence, return_offsets_mapping=True, return_tensors="pt")
        inside = torch.tensor([place == 1 for place in inputs.sequence_ids(0)])
        offsets = inputs.pop("offset_mapping")[0].tolist()
        outputs = self.model(**inputs)
        starts, ends = outputs.start_logits[0], outputs.end_logits[0]
        allowed = (inside[:, None] & inside).triu() & ~inside.new_ones(len(inside), len(inside)).triu(30)
        sums = (starts[:, None] + ends).masked_fill(~allowed, -torch.inf)
        first, last = divmod(int(sums.argmax()), len(starts))
        return (
            "" if sums[first, last] <= starts[0] + ends[0] else sentence[offsets[first][0] : offsets[last][1]]
        )


class Gemma:
    """Gemma 3 270M, which goes on from examples."""

    def __init__(self) -> None:
        folder = resources.checkpoint("gemma")
        self.model = pretrained.load(folder).eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)

    def answers(self, examples: str, prompts: Sequence[str], longest: int = LONGEST) -> list[str]:
        """Return the line that it writes after the examples and each prompt, without spaces around it."""
        ids = self.tokenizer(examples, return_tensors="pt").input_ids
        rows = [self.tokenizer(prompt, add_special_tokens=False).input_ids for prompt in prompts]
        room = max(map(len, rows)) + longest
        state = start_decoding(self.model, ids, None, max_new_tokens=room)
        found = [""] * len(prompts)
        order = sorted(range(len(prompts)), key=lambda number: len(rows[number]))
        for _, of_length in groupby(order, key=lambda number: len(rows[number])):
            numbers = list(of_length)
            for chosen in (numbers[i : i + BATCH] for i in range(0, len(numbers), BATCH)):
                if state.length > ids.size(1):
                    state.crop(ids.size(1))  # Back to the examples, which all rows share.
                state.select(torch.zeros(len(chosen), dtype=torch.long))
                with torch.inference_mode():  # `step` would compute the logits of every token, not the last.
                    states = state._read(torch.tensor([rows[number] for number in chosen]))
                    written = [state._logits(states[:, -1]).argmax(dim=-1)]
                while len(written) < longest and any("\n" not in text for text in self._texts(written)):
                    written.append(state.step(written[-1]).argmax(dim=-1))
                for number, text in zip(chosen, self._texts(written), strict=True):
                    found[number] = text.partition("\n")[0].strip()
        return found

    def _texts(self, written: list[torch.Tensor]) -> list[str]:
        return self.tokenizer.batch_decode(torch.stack(written, dim=1), skip_special_tokens=True)


if __name__ == "__main__":
    main()
