"""The language model that runs in the page is the one of chapter 12: token for token, number for number."""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import Error, Page, Route
from scipy.stats import chisquare
from site_visits import Tab, opened
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from chapters_src import decoding
from chapters_src.data import docstrings
from paths import PACKAGE
from website.language_model import quantized

pytestmark = pytest.mark.site

PAGE = "book/colophon.html"  # any page
CHECKPOINT = PACKAGE / "weights" / "language-model"
FILES = ("config.json", "model.safetensors", "tokenizer.json")
SCRIPTS = ("tokenizer", "model", "kernels", "decoding", "checkpoint")
PROMPTS = (
    "Return the mean of the array",
    "If the input is a sparse matrix,",
    "Plot a histogram of",
    "The number of layers in the encoder",
    "This function is deprecated",
    "Compute the eigenvalues of a",
    "Raises a ValueError when",
    "The axis along which",
    "Draw samples from a",
    "Convert the DataFrame to",
    "The learning rate",
    "Note that the graph must be",
)
ODD_PROMPTS = (
    "",
    "\n\n",
    "Möchten Sie die Tür öffnen?",
    "👩‍👩‍👧‍👦 שלום עולם",
    "x = np.zeros((3, 4))\n    return x[:, 0]",
    "the the the the the the the the",
    "3.14159 26535 89793",
    "A tensor of shape (batch_size, sequence_length). " * 20,
)
SEEDED = """seed => () => {
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
}"""


def with_scripts(tab: Tab) -> Page:
    folder = tab.page.url[: -len(PAGE)] + "_static/language_model/"
    for name in SCRIPTS:
        tab.page.add_script_tag(url=f"{folder}{name}.js")
    return tab.page


def with_model(tab: Tab) -> Page:
    """A page that has loaded the book's model, in 8 bits, as `model`."""
    page = with_scripts(tab)
    page.evaluate("async () => { window.model = await languageModel.load() }")
    return page


def choose_files(page: Page, paths: list[Path] | Path) -> Page:
    """Load the checkpoint in these files, or in this folder, as `model`, in 32 bits."""
    page.evaluate(
        """folder => {
      window.chooser = Object.assign(document.createElement("input"), {type: "file", multiple: true});
      chooser.webkitdirectory = folder;
      chooser.id = "chooser";
      document.querySelector("#chooser")?.remove();
      document.body.append(chooser);
    }""",
        isinstance(paths, Path),
    )
    page.locator("#chooser").set_input_files(paths)
    page.evaluate("async () => { window.model = await languageModel.fromFiles(chooser.files) }")
    return page


scripts = opened(PAGE, scope="module", see=with_scripts)
shipped = opened(PAGE, scope="module", see=with_model)
exact = opened(PAGE, scope="module", see=lambda tab: choose_files(with_scripts(tab), CHECKPOINT))


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_file(str(CHECKPOINT / "tokenizer.json"))


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """PyTorch's threads would wait for each other where the browser needs the processor."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def from_library():
    options = {"dtype": torch.float32, "attn_implementation": "eager"}
    return AutoModelForCausalLM.from_pretrained(CHECKPOINT, **options).eval()


@pytest.fixture(scope="module")
def model(quiet_library):
    """The model, by the library."""
    return from_library()


@pytest.fixture(scope="module")
def rounded(quiet_library):
    """The library's model with the weights that the site carries: rounded to 8 bits."""
    found = from_library()
    for parameter in found.parameters():
        if parameter.ndim == 2:
            weights, scales = quantized(parameter.detach().numpy())
            parameter.data = torch.from_numpy(weights * scales[:, None])
    return found


def ids_of(tokenizer, text: str) -> list[int]:
    return [0, *tokenizer.encode(text).ids][:256]


# --- Tokens ---------------------------------------------------------------------------------------------


def nasty_texts() -> list[str]:
    draw = random.Random(0)
    pool = "aabcde  \n\t\r's'tré\u0301🎉👩\u200d🇩שلם12٣½.,<|>\u00a0\u3000\u0085\ufeff\u2028\u180eĠĊ\x00\x1c"
    mixed = ["".join(draw.choice(pool) for _ in range(draw.randrange(1, 60))) for _ in range(1500)]
    anything = [chr(n) for n in range(0x32000) if not 0xD800 <= n < 0xE000]
    return [
        *PROMPTS,
        *ODD_PROMPTS,
        "don't can't we're I'll he'd I've I'm 'S 'RE ''s'''",
        "a  b   c\n\n\n d \t e\r\n   ",
        "e\u0301e\u0300 Z̸̛̰a̵͝l̷g̶o 🏳️‍🌈🇩🇪👨🏽‍🚀",
        "\u202eשלום\u202c مرحبا بالعالم",
        "1 22 333 ٣٤ ½ Ⅷ ²",
        "中文字符 日本語テキスト 한국어",
        "<|endoftext|>a <|endoftext|> b<|endoftext|><|endoftext|> <|endoftext",
        "a" * 100_000,
        "ab" * 50_000,
        " " * 100_000,
        "".join(draw.choice("etaoinshrdlu") for _ in range(100_000)),
        *mixed,
        *("".join(draw.choice(anything) for _ in range(30)) for _ in range(500)),
    ]


def test_tokens_are_those_of_the_library(shipped, tokenizer):
    texts = nasty_texts()
    found = shipped.evaluate(
        """texts => texts.map(text => {
          const start = performance.now();
          const ids = model.tokenizer.encode(text);
          return [ids, model.tokenizer.decode(ids), performance.now() - start];
        })""",
        texts,
    )
    expected = tokenizer.encode_batch(texts)
    wrong = [
        text[:80]
        for text, (ids, back, _), wanted in zip(texts, found, expected, strict=True)
        if ids != wanted.ids or back != tokenizer.decode(wanted.ids)
    ]
    assert wrong == []
    slowest = max(found, key=lambda each: each[2])
    assert slowest[2] < 8_000, f"{slowest[2] / 1000:.1f} s for {slowest[1][:40]!r}"


def test_every_character_is_cut_as_by_the_library(shipped, tokenizer):
    numbers = [n for n in range(0x20000) if not 0xD800 <= n < 0xE000]
    found = shipped.evaluate(
        """() => Array.from({length: 0x20000}, (_, n) => n).filter(n => n < 0xd800 || n >= 0xe000)
          .map(n => String.fromCodePoint(n))
          .map(c => model.tokenizer.encode(` ${c}a${c}1${c} ${c}`).join(" ")).join("\\n")"""
    ).split("\n")
    wanted = tokenizer.encode_batch([f" {chr(n)}a{chr(n)}1{chr(n)} {chr(n)}" for n in numbers])
    # A browser may know a newer Unicode than the library, or an older one.
    wrong = [
        hex(number)
        for number, ids, expected in zip(numbers, found, wanted, strict=True)
        if ids != " ".join(map(str, expected.ids))
    ]
    assert len(wrong) <= 20, wrong


def test_half_a_surrogate_pair_is_read_as_the_replacement_character(shipped, tokenizer):
    found = shipped.evaluate(
        r"""() => ["a\ud83d b", "\udc4d", "\ud83d\ud83d\udc4d x", "a\udc00\ud800"]
          .map(text => model.tokenizer.encode(text))"""
    )
    whole = ["a\ufffd b", "\ufffd", "\ufffd👍 x", "a\ufffd\ufffd"]
    assert found == [tokenizer.encode(text).ids for text in whole]


def test_any_ids_are_decoded_as_by_the_library(shipped, tokenizer):
    draw = random.Random(1)
    rows = [[draw.randrange(6144) for _ in range(40)] for _ in range(300)]
    found = shipped.evaluate("rows => rows.map(ids => model.tokenizer.decode(ids))", rows)
    assert found == [tokenizer.decode(ids) for ids in rows]


def test_a_piece_can_be_seen(shipped, tokenizer):
    wanted = {" the": "␣the", "\n": "⏎", "\t": "⇥", "the": "the", "<|endoftext|>": "<|endoftext|>"}
    for text, shown in wanted.items():
        (id_,) = tokenizer.encode(text).ids
        assert shipped.evaluate("id => model.tokenizer.piece(id)", id_) == shown
    first, *_ = tokenizer.encode("\U0001f9ff").ids
    assert shipped.evaluate("id => model.tokenizer.piece(id)", first) == "<F0>"
    pieces = shipped.evaluate("() => Array.from({length: 6144}, (_, id) => model.tokenizer.piece(id))")
    assert all(piece.strip() and piece.isprintable() for piece in pieces)


# --- The model in 32 bits -------------------------------------------------------------------------------

DETAILS = """texts => texts.map(ids => {
  const {logits, attention, hidden} = model.read(ids, model.emptyMemory(), {details: true});
  const arrays = rows => rows.map(row => [...row]);
  return {logits: [...logits], attention: attention.map(arrays), hidden: arrays(hidden),
          seen: [...model.layerLogits(hidden[3])]};
})"""


def assert_equals_library(found: dict, model, ids: list[int], tolerance: float) -> None:
    with torch.inference_mode():
        wanted = model(torch.tensor([ids]), output_attentions=True, output_hidden_states=True)
        seen = model.lm_head(model.model.norm(wanted.hidden_states[3][0, -1]))
    np.testing.assert_allclose(found["logits"], wanted.logits[0, -1], rtol=0, atol=tolerance)
    np.testing.assert_allclose(found["seen"], seen, rtol=0, atol=tolerance)
    attention = [layer[0, :, -1] for layer in wanted.attentions]
    np.testing.assert_allclose(found["attention"], torch.stack(attention), rtol=0, atol=tolerance)
    # The library's last hidden state comes after the final norm.
    hidden = torch.stack([state[0, -1] for state in wanted.hidden_states[:-1]])
    np.testing.assert_allclose(found["hidden"][:-1], hidden, rtol=0, atol=tolerance)


def test_logits_attention_and_hidden_states_are_those_of_pytorch(exact, model, tokenizer):
    texts = [ids_of(tokenizer, text) for text in PROMPTS + ODD_PROMPTS]
    assert len(texts) == 20 and max(map(len, texts)) > 200
    for ids, found in zip(texts, exact.evaluate(DETAILS, texts), strict=True):
        assert_equals_library(found, model, ids, 1e-3)


def test_a_chosen_folder_says_what_it_is(exact):
    assert exact.evaluate("model.engine") == "JavaScript, 32 bits"
    config = exact.evaluate("model.config")
    assert (
        config.items()
        >= {
            "name": "language-model",
            "numLayers": 6,
            "numHeads": 8,
            "hiddenSize": 256,
            "maxPositions": 256,
            "vocabularySize": 6144,
            "parameters": 6_282_496,
            "endId": 0,
        }.items()
    )


def test_memory_grows_is_cut_and_copied(exact):
    same = exact.evaluate(
        """() => {
      const whole = model.read([0, 5, 6, 7, 8, 9], model.emptyMemory()).logits;
      const equal = logits => logits.every((logit, i) => logit === whole[i]);
      const memory = model.emptyMemory();
      model.read([0, 5, 6, 400, 401], memory);
      memory.cut(3);
      const copied = memory.copy();
      model.read([300, 301], memory);
      const lengths = [memory.length, copied.length];
      return [equal(model.read([7, 8, 9], copied).logits), ...lengths, memory.length, copied.length];
    }"""
    )
    assert same == [True, 5, 3, 5, 6]


def test_a_checkpoint_in_float32_with_shared_keys_and_a_head_of_its_own(scripts, tmp_path, quiet_library):
    """What else the architecture allows, random and tiny; in single files."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=6200,
        hidden_size=48,
        intermediate_size=72,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
        initializer_range=0.3,
        attn_implementation="eager",
    )
    small = LlamaForCausalLM(config).eval()
    small.save_pretrained(tmp_path)
    shutil.copyfile(CHECKPOINT / "tokenizer.json", tmp_path / "tokenizer.json")
    choose_files(scripts, [tmp_path / name for name in FILES])
    ids = [0, 5, 6199, 7, 8, 8, 9]
    (found,) = scripts.evaluate(DETAILS, [ids])
    assert_equals_library(found, small, ids, 1e-3)
    assert scripts.evaluate("model.config.name") == "your checkpoint"


def test_too_many_tokens_and_no_tokens_are_refused(exact):
    for ids, said in (
        (list(range(257)), "257 tokens are too many: the context of this model is 256"),
        ([], "no token to read"),
        ([6144], "6144 is no token of this model"),
    ):
        with pytest.raises(Error, match=said):
            exact.evaluate("ids => { model.read(ids, model.emptyMemory()) }", ids)


# --- The model in 8 bits --------------------------------------------------------------------------------


def test_the_site_runs_its_weights_in_web_assembly(shipped, rounded, tokenizer):
    assert shipped.evaluate("model.engine") == "WebAssembly, 8 bits"
    texts = [ids_of(tokenizer, text) for text in PROMPTS + ODD_PROMPTS]
    for ids, found in zip(texts, shipped.evaluate(DETAILS, texts), strict=True):
        assert_equals_library(found, rounded, ids, 0.02)  # vectors are rounded, to 16 bits


def test_without_web_assembly_the_same_weights_run_in_javascript(open_tab, rounded, tokenizer):
    tab = open_tab("file", PAGE)
    tab.page.context.add_init_script("delete window.WebAssembly")
    tab.page.reload()
    assert with_model(tab).evaluate("model.engine") == "JavaScript, 32 bits"
    texts = [ids_of(tokenizer, text) for text in PROMPTS[:3] + ODD_PROMPTS[:5]]
    for ids, found in zip(texts, tab.page.evaluate(DETAILS, texts), strict=True):
        assert_equals_library(found, rounded, ids, 1e-3)


WRITE = """numNew => {
  const memory = model.emptyMemory();
  let {logits} = model.read([0], memory);
  for (let i = 0; i < numNew; i++) {
    const next = languageModel.draw(languageModel.probabilities(logits, {temperature: 0}));
    logits = model.read([next], memory).logits;
  }
}"""


def held_out(tokenizer, num_tokens: int) -> list[tuple[str, list[int]]]:
    """Texts of modules that the model has not read, and their ids, each at most a context long."""
    found, total = [], 0
    for paragraph in docstrings.split(docstrings.paragraphs())["test"]:
        ids = ids_of(tokenizer, paragraph.text)
        if total < num_tokens and 40 < len(ids) < 256:
            found.append((paragraph.text, ids))
            total += len(ids)
    return found


SURPRISE = """texts => texts.map(ids => {
  const memory = model.emptyMemory();
  let sum = 0;
  for (let i = 0; i + 1 < ids.length; i++) {
    sum -= Math.log2(languageModel.probabilities(model.read([ids[i]], memory).logits)[ids[i + 1]]);
  }
  return sum;
})"""


def test_8_bits_cost_less_than_two_thousandths_of_a_bit_per_byte(shipped, model, tokenizer):
    texts = held_out(tokenizer, 6_000)
    num_bytes = sum(len(text.encode()) for text, _ in texts)
    assert num_bytes > 15_000
    ours = sum(shipped.evaluate(SURPRISE, [ids for _, ids in texts])) / num_bytes
    theirs = 0.0
    for _, ids in texts:
        with torch.inference_mode():
            log_probabilities = model(torch.tensor([ids])).logits[0, :-1].double().log_softmax(dim=-1)
        theirs -= log_probabilities.gather(1, torch.tensor(ids[1:])[:, None]).sum().item()
    theirs /= np.log(2) * num_bytes
    assert abs(ours - theirs) < 0.002, (ours, theirs)


def test_it_writes_300_tokens_a_second(shipped):
    """In seconds of the page's own thread: other programs may be running."""
    session = shipped.context.new_cdp_session(shipped)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def seconds() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")

    speeds = []
    for _ in range(5):
        before = seconds()
        shipped.evaluate(WRITE, 200)
        speeds.append(200 / (seconds() - before))
    assert max(speeds) > 300, speeds


# --- Decoding -------------------------------------------------------------------------------------------


def settings_drawn(draw: random.Random) -> dict:
    return {
        "temperature": draw.choice([0.3, 0.7, 1, 1.3, 2]),
        "topK": draw.choice([0, 1, 5, 40, 10_000]),
        "topP": draw.choice([1, 0.05, 0.5, 0.9, 0.99]),
        "minP": draw.choice([0, 0.02, 0.2, 1]),
    }


def expected_probabilities(logits: np.ndarray, settings: dict) -> np.ndarray:
    filters = [decoding.temperature(settings["temperature"])]
    if settings["topK"] > 0:
        filters.append(decoding.top_k(settings["topK"]))
    if settings["topP"] < 1:
        filters.append(decoding.top_p(settings["topP"]))
    if settings["minP"] > 0:
        filters.append(decoding.min_p(settings["minP"]))
    given = torch.from_numpy(logits)[None]
    for each in filters:
        given = each(given, torch.zeros(1, 0, dtype=torch.long))
    return given.softmax(dim=-1)[0].numpy()


def test_filters_are_those_of_the_package(scripts):
    draw, generator = random.Random(0), np.random.default_rng(0)
    cases = []
    for number in range(120):
        logits = generator.normal(0, draw.choice([0.5, 2, 6]), draw.choice([3, 50, 800]))
        if number % 3 == 0:
            logits = logits.round()  # with ties
        cases.append((logits.tolist(), settings_drawn(draw)))
    found = scripts.evaluate(
        "cases => cases.map(([logits, settings]) => [...languageModel.probabilities(logits, settings)])",
        cases,
    )
    for (logits, settings), ours in zip(cases, found, strict=True):
        theirs = expected_probabilities(np.array(logits), settings)
        if len(set(logits)) < len(logits):  # Which of equal tokens the nucleus keeps is left open.
            ours, theirs = np.sort(ours), np.sort(theirs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-15, err_msg=str(settings))


def test_temperature_0_is_greedy_and_senseless_settings_are_refused(scripts):
    assert scripts.evaluate("[...languageModel.probabilities([1, 3, 3, 2], {temperature: 0})]") == [
        0,
        1,
        0,
        0,
    ]
    tied = scripts.evaluate("[...languageModel.probabilities([1, 3, 3, 2], {topP: 0.2})]")
    assert tied == [0, 1, 0, 0], "the nucleus of one token is the greedy one"
    for settings in ({"temperature": -1}, {"topK": 1.5}, {"topP": 0}, {"topP": 1.1}, {"minP": 2}):
        with pytest.raises(Error, match="RangeError"):
            scripts.evaluate("settings => languageModel.probabilities([1, 2], settings)", settings)


def test_draws_are_as_frequent_as_they_are_probable(shipped, tokenizer):
    num_draws = 20_000
    for number, settings in enumerate(({"temperature": 1}, {"temperature": 1.5, "topP": 0.8, "topK": 30})):
        probabilities, counts = shipped.evaluate(
            f"""([ids, settings, numDraws, seed]) => {{
          const random = ({SEEDED})(seed);
          const logits = model.read(ids, model.emptyMemory()).logits;
          const probabilities = languageModel.probabilities(logits, settings);
          const counts = new Array(probabilities.length).fill(0);
          for (let i = 0; i < numDraws; i++) counts[languageModel.draw(probabilities, random)] += 1;
          return [[...probabilities], counts];
        }}""",
            [ids_of(tokenizer, PROMPTS[0]), settings, num_draws, number],
        )
        p, seen = np.array(probabilities), np.array(counts)
        assert seen[p == 0].sum() == 0 and (p > 0).sum() > 10
        often = num_draws * p >= 5
        observed = [*seen[often], seen[~often].sum()]
        expected = num_draws * np.array([*p[often], p[~often].sum()])
        if expected[-1] == 0:
            observed, expected = observed[:-1], expected[:-1]
        assert chisquare(observed, expected * sum(observed) / sum(expected)).pvalue > 0.001


def test_rounding_never_draws_what_is_ruled_out(scripts):
    drawn = scripts.evaluate(
        "[0, 0.5, 1 - 2 ** -53].map(x => languageModel.draw([0, 0.3, 0.3, 0.3999, 0, 0], () => x))"
    )
    assert drawn == [1, 2, 3]


BEAMS = """async ([ids, numBeams, numSteps, endId]) => {
  const seen = [];
  const onStep = nodes => seen.push(nodes.length);
  const found = await languageModel.beams(model, ids, {numBeams, numSteps, endId, onStep});
  return {...found, seen};
}"""


@pytest.mark.parametrize("num_beams", [1, 3, 5])
def test_beams_are_those_of_the_package(exact, model, tokenizer, num_beams):
    comma = tokenizer.encode(",").ids[0]  # an end that comes early
    for text, num_steps, end_id in [
        (PROMPTS[0], 6, 0),
        (PROMPTS[3], 9, comma),
        (PROMPTS[7], 8, comma),
        (ODD_PROMPTS[1], 5, 0),
    ]:
        ids = ids_of(tokenizer, text)
        found = exact.evaluate(BEAMS, [ids, num_beams, num_steps, end_id])
        options = {"num_beams": num_beams, "max_new_tokens": num_steps, "num_hypotheses": num_beams}
        (expected,) = decoding.beam_search(model, [ids], stop=decoding.Stop(end_id), **options)
        assert [h["ids"] for h in found["hypotheses"]] == [list(each.ids) for each in expected]
        for ours, theirs in zip(found["hypotheses"], expected, strict=True):
            assert ours["score"] == pytest.approx(theirs.score, abs=1e-4)
            assert ours["finished"] == (theirs.ids[-1] == end_id)
        assert found["seen"] == [len(nodes) for nodes in found["steps"]]
        assert_is_tree(found["steps"], [h["ids"] for h in found["hypotheses"]])


def assert_is_tree(steps: list[list[dict]], hypotheses: list[list[int]]) -> None:
    paths = [((), 0.0, False)]
    known = []
    for number, nodes in enumerate(steps):
        reached = []
        for node in nodes:
            assert (node["parent"] == -1) == (number == 0)
            ids, total, finished = paths[node["parent"]]
            assert not finished, "what has ended goes no further"
            assert node["total"] == pytest.approx(total + node["logProbability"])
            assert node["score"] == pytest.approx(node["total"] / (number + 1))
            reached.append(((*ids, node["id"]), node["total"], node["finished"]))
        assert [node["total"] for node in nodes] == sorted((n["total"] for n in nodes), reverse=True)
        paths = reached
        known += [list(ids) for ids, _, _ in reached]
    assert all(ids in known for ids in hypotheses)


# --- Loading --------------------------------------------------------------------------------------------


def test_nothing_is_loaded_before_load_and_progress_moves(open_tab, scheme):
    tab = open_tab(scheme, PAGE)
    asked = []
    tab.page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    with_scripts(tab)
    at_once = [name for name in asked if name != "logo.svg"]  # the icon: the browser decides when
    assert sorted(at_once) == sorted(f"{name}.js" for name in SCRIPTS)
    progress, same = tab.page.evaluate(
        """async () => {
      const progress = [];
      const models = await Promise.all([languageModel.load(x => progress.push(x)), languageModel.load()]);
      return [progress, models[0] === models[1]];
    }"""
    )
    assert same and progress == sorted(progress) and progress[0] == 0 and progress[-1] == 1
    assert len(set(progress)) > 5
    assert len(asked) == len(set(asked)), "each file once"
    tab.close()


def answering(text: str | None) -> Callable[[Route], None]:
    """What answers a request with a script, or with nothing."""
    answer = {"status": 404} if text is None else {"body": text, "content_type": "text/javascript"}
    return lambda route: route.fulfill(**answer)


def test_missing_and_damaged_weights_are_named_and_a_second_try_is_possible(open_tab, site):
    tab = open_tab("http", PAGE)
    with_scripts(tab)
    load = "languageModel.load().then(model => model.engine)"
    part = (site / "_static" / "language_model" / "weights-3.js").read_text(encoding="utf-8")
    middle = len(part) // 2
    other = "A" if part[middle] != "A" else "B"
    damaged = {
        "the file weights-3.js is missing": None,
        "the file weights-3.js is cut off": part[:middle],
        "the file weights-3.js is damaged": part[:middle] + other + part[middle + 1 :],
    }
    for said, text in damaged.items():
        tab.page.route("**/weights-3.js", answering(text))
        with pytest.raises(Error, match=said):
            tab.page.evaluate(load)
        tab.page.unroute("**/weights-3.js")
    assert tab.page.evaluate(load) == "WebAssembly, 8 bits"


def changed_json(path: Path, target: Path, **changes) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    target.write_text(json.dumps(content | changes), encoding="utf-8")


def test_what_is_wrong_with_a_checkpoint_is_said(scripts, tmp_path):
    for name in FILES:
        shutil.copyfile(CHECKPOINT / name, tmp_path / name)
    weights = (CHECKPOINT / "model.safetensors").read_bytes()

    def loading(said: str, *, without: str | None = None) -> None:
        with pytest.raises(Error, match=said):
            choose_files(scripts, [tmp_path / name for name in FILES if name != without])
        for name in FILES:
            shutil.copyfile(CHECKPOINT / name, tmp_path / name)

    for name in FILES:
        loading(f"Missing: {name}. Choose the folder that the recipe wrote", without=name)
    (tmp_path / "model.safetensors").write_bytes(weights[:9_000_000])
    loading("model.safetensors is cut off: it has 9000000 bytes, and .* would end at")
    (tmp_path / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\n")
    loading("is no file of weights in the format safetensors")
    (tmp_path / "model.safetensors").write_bytes(weights.replace(b"model.norm.weight", b"model.morn.weight"))
    loading("model.safetensors has no model.norm.weight")
    (tmp_path / "model.safetensors").write_bytes(weights.replace(b'"BF16"', b'"I16" '))
    loading("is stored as I16: save the model in float32 or bfloat16")
    (tmp_path / "config.json").write_text('{"model_type": "lla')
    loading("config.json cannot be read: it is damaged or cut off")
    for changes, said in (
        ({"model_type": "gpt2"}, 'a model of the type "gpt2": this page runs models of Llama'),
        ({"hidden_act": "gelu"}, 'the activation "gelu"'),
        ({"attention_bias": True}, "projections with biases"),
        ({"rope_parameters": {"rope_type": "yarn"}}, 'rotary positions of the type "yarn"'),
        ({"num_hidden_layers": None}, "no valid num_hidden_layers"),
        ({"intermediate_size": 688}, "has the shape 680 x 256, and config.json asks for 688 x 256"),
        ({"vocab_size": 6000}, "tokenizer.json has 6144 tokens and the model only 6000"),
    ):
        changed_json(CHECKPOINT / "config.json", tmp_path / "config.json", **changes)
        loading(said)
    changed_json(CHECKPOINT / "tokenizer.json", tmp_path / "tokenizer.json", model={"type": "Unigram"})
    loading("tokenizer.json is of a kind that this page cannot run")
