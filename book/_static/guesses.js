// Guesses before results. Where a chapter asks, the build has put the question's data below it (tools/website/guesses.py).
// Here they become a form, and the output waits under a cover until the reader has guessed or wants to see it.
(function () {
  const { make, button } = shared;
  const CLASS = "tag_guessed-"; // and the id of the question: the cells whose outputs wait
  const chapter = location.pathname.split("/").pop().replace(/\.html$/, "");
  const keyOf = (id) => `guess/${chapter}/${id}`;
  const asks = () => kept.read("setting/guesses") !== false;

  // Until the page is read to its end, outputs that wait are not shown: nobody wants to see an answer flash by.
  const early = make("style");
  const answered = Object.keys(kept.all(`guess/${chapter}/`)).map((key) => CSS.escape(CLASS + key.split("/").pop()));
  if (asks()) {
    const others = `[class*="${CLASS}"]${answered.map((name) => `:not(.${name})`).join("")}`;
    early.textContent = `@media screen { ${others} > .cell_output { display: none } }`;
    document.head.append(early);
  }

  // A text in which `backticks` make code, and *asterisks* emphasis.
  const marked = (text) =>
    text.split(/(`[^`]+`|\*[^*]+\*)/).map((part, i) =>
      i % 2 ? make(part[0] === "`" ? "code" : "em", {}, part.slice(1, -1)) : part);

  const shown = (number) => number.toLocaleString("en-US", { maximumSignificantDigits: 6 });

  // What a reader typed, as a number: 1,200 and 12% are numbers, a comma may also be a decimal point. Where a share
  // from 0 to 1 is asked for, 12% is 0.12.
  function numberFrom(text, unit) {
    const plain = text.trim().replace(/[%×x]$/, "").replace(/−/g, "-").replace(/,(?=\d{3}\b)/g, "").replace(",", ".");
    const share = text.trim().endsWith("%") && unit.endsWith("from 0 to 1");
    return /\d/.test(plain) ? Number(plain) / (share ? 100 : 1) : NaN;
  }

  // How a guess compares with the answer: whether it counts as right, and a sentence.
  function judged(data, guess) {
    if (data.options) {
      const right = guess === data.options[data.right];
      return { right, said: right ? "That is right." : `It is this one: ${data.options[data.right]}` };
    }
    const { value } = data, sign = data.unit.startsWith("%") ? "%" : "";
    const it = `You said ${shown(guess)}${sign}, it is ${shown(value)}${sign}`;
    if (shown(guess) === shown(value)) return { right: true, said: `Exactly: ${shown(value)}${sign}.` };
    const right = data.factor
      ? guess > 0 && Math.max(guess / value, value / guess) <= data.factor * (1 + 1e-9)
      : Math.abs(guess - value) <= data.within + 1e-9;
    return { right, said: `${right ? "Close." : "Not close."} ${it}${distance(data, guess)}.` };
  }

  function distance({ value, factor }, guess) {
    const times = guess / value;
    if (factor && guess > 0) {
      const most = Math.max(times, 1 / times);
      return most < 1.05 ? "" : `: ${shown(Number(most.toPrecision(2)))} times too ${times > 1 ? "high" : "low"}`;
    }
    const off = Number(Math.abs(guess - value).toPrecision(3));
    return `: ${shown(off)} too ${guess > value ? "high" : "low"}`;
  }

  // One question ------------------------------------------------------------------------------------------------

  class Question {
    constructor(script) {
      this.data = JSON.parse(script.textContent);
      this.key = keyOf(this.data.id);
      const cells = (this.cells = [...document.querySelectorAll(`.${CSS.escape(CLASS + this.data.id)}`)]);
      this.told = cells.flatMap((cell) => [...cell.querySelectorAll(":scope > .cell_input pre")].flatMap(toldByCode));
      const outputs = cells.flatMap((cell) => [...cell.querySelectorAll(":scope > .cell_output")]);
      this.covered = [...outputs, ...after(cells.at(-1))];
      this.notes = outputs.map((output) => this.note(output));
      const text = script.previousElementSibling?.textContent ?? "";
      this.asked = (text.match(/[^.?!]*\?/g) ?? []).pop()?.trim() ?? "";
      this.form = make("div", { className: "guess", role: "group", "aria-label": "Your guess" });
      script.after(this.form);
      this.show();
    }

    // What stands in the place of an output that waits.
    note(output) {
      const show = button("Show it", () => this.skip());
      const note = make("p", { className: "guess-note", hidden: true }, "The output waits for your guess. ", show);
      output.before(note);
      return note;
    }

    // The guess that counts: none if the options have changed since.
    guess() {
      const { guess, skipped } = kept.read(this.key) ?? {};
      if (skipped) return { skipped };
      const valid = this.data.options ? this.data.options.includes(guess) : Number.isFinite(guess);
      return valid ? { guess } : {};
    }

    keep(more) {
      kept.write(this.key, { asked: this.asked, ...more, on: new Date().toISOString().slice(0, 10) });
    }

    answer(guess) {
      this.keep({ guess, right: judged(this.data, guess).right });
      this.said.focus({ preventScroll: true });
    }

    skip() {
      this.keep({ skipped: true });
      this.said.focus({ preventScroll: true });
    }

    // Shows form and output as they are kept.
    show() {
      const { guess, skipped } = this.guess();
      const done = skipped || guess !== undefined;
      this.form.replaceChildren(...(done ? this.result(guess) : this.question()));
      this.form.classList.toggle("guess-done", done);
      this.cover(!done);
    }

    question() {
      const title = make("p", { className: "guess-title" }, "Your guess");
      const skip = button("Show me", () => this.skip(), { className: "guess-skip" });
      if (this.data.options) {
        const options = this.data.options.map((text) =>
          make("li", {}, button(marked(text), () => this.answer(text), { className: "guess-option" })));
        return [title, make("ul", { className: "guess-options" }, ...options), skip];
      }
      const field = make("input", { type: "text", inputMode: "decimal", autocomplete: "off", size: 8 });
      const label = make("label", {}, title.textContent, " ", field, ...(this.data.unit ? [` ${this.data.unit}`] : []));
      const told = make("p", { className: "guess-told", role: "status" });
      const form = make("form", { noValidate: true }, label, make("button", { type: "submit" }, "Check"), skip, told);
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        const number = numberFrom(field.value, this.data.unit);
        if (Number.isFinite(number)) return this.answer(number);
        told.textContent = "Type a number.";
        field.focus();
      });
      return [form];
    }

    result(guess) {
      const { right, said } = guess === undefined ? {} : judged(this.data, guess);
      const verdict = guess === undefined ? "Shown without a guess." : said;
      this.said = make("p", { className: "guess-said", tabIndex: -1 }, ...marked(verdict), " ");
      const again = button("Ask me again", () => {
        kept.forget(this.key);
        this.form.querySelector("button, input").focus({ preventScroll: true });
      }, { className: "guess-skip" });
      if (guess === undefined) return [this.said, again];
      this.said.dataset.right = right;
      if (!this.data.options) return [this.said, again];
      const options = this.data.options.map((text, i) => {
        const state = i === this.data.right ? "right" : text === guess ? "wrong" : "";
        const own = text === guess ? [make("small", {}, " (your guess)")] : [];
        const item = make("li", { className: "guess-option" }, ...marked(text), ...own);
        if (state) item.dataset.state = state;
        return item;
      });
      const score = make("span", { className: "guess-score" }, scored());
      return [make("ul", { className: "guess-options" }, ...options), this.said, score, again];
    }

    cover(on) {
      this.isCovered = on;
      this.draw(on);
    }

    draw(on) {
      this.notes.forEach((note) => (note.hidden = !on));
      this.cells.forEach((cell) => cell.classList.toggle("guess-waits", on));
      for (const element of this.covered) {
        // Browsers that know the value find words in it, and open it.
        if (on) element.setAttribute("hidden", "until-found");
        else {
          element.removeAttribute("hidden");
          for (const box of [element, ...element.querySelectorAll(".output, pre")]) reachable(box);
        }
      }
    }

    // Opens it for somebody who follows a link into it, or finds a word in it; the question stays.
    openAt(place) {
      if (!place || !this.isCovered || ![...this.covered, ...this.told].some((element) => element.contains(place))) return false;
      this.cover(false);
      return true;
    }
  }

  // What scrolls sideways can be reached by keyboard: the theme measured it while it was covered.
  function reachable(box) {
    if (box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowX !== "visible") box.tabIndex = 0;
  }

  // The paragraph right after an output mostly tells it, so it waits too; not one that asks the next question.
  function after(cell) {
    let next = cell?.nextElementSibling;
    while (next?.matches(".cell.tag_hide-cell")) next = next.nextElementSibling;
    return next?.localName === "p" && !next.nextElementSibling?.matches(".guess-data") ? [next] : [];
  }

  // A claim or an assertion in the code says what comes out: these statements of a cell, each in an element of its
  // own, which the style sheet blackens while the output waits. The text stays, for whoever copies the code.
  function toldByCode(pre) {
    const found = [];
    let run = null, depth = 0, starts = true;
    for (const node of [...pre.childNodes]) {
      const text = node.textContent;
      if (!run && starts && /^(claim|assert)$/.test(text)) {
        run = [];
        depth = 0;
      }
      if (run && depth === 0 && /^\s*\n/.test(text)) {
        found.push(run);
        run = null;
      }
      run?.push(node);
      if (node.className === "p") depth += count(text, /[([{]/g) - count(text, /[)\]}]/g);
      starts = /^\s*$/.test(text.split("\n").pop()) && (starts || text.includes("\n"));
    }
    if (run) found.push(run);
    return found.map((nodes) => {
      const inner = make("span"), outer = make("span", { className: "guess-told-by-code" }, inner);
      nodes[0].before(outer);
      inner.append(...nodes);
      return outer;
    });
  }

  const count = (text, pattern) => text.match(pattern)?.length ?? 0;

  // All guesses of this browser, in a sentence.
  function scored() {
    const all = Object.values(kept.all("guess/")).filter((one) => one.guess !== undefined);
    const right = all.filter((one) => one.right).length;
    return all.length > 1 ? `Right or close so far: ${right} of ${all.length}. ` : "";
  }

  // The page -------------------------------------------------------------------------------------------------------

  document.addEventListener("DOMContentLoaded", () => {
    let questions = [];
    try {
      if (!asks()) return;
      questions = [...document.querySelectorAll("script.guess-data")].map((script) => new Question(script));
    } finally {
      early.remove();
    }
    if (!questions.length) return;

    const openAll = (place) => questions.map((question) => question.openAt(place)).some(Boolean);
    const openTarget = () => {
      const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (openAll(target)) target.scrollIntoView();
    };
    openTarget();
    addEventListener("hashchange", openTarget);
    document.addEventListener("beforematch", (event) => openAll(event.target), { capture: true });
    addEventListener("load", () => { // after the search has marked what was searched for
      const [first] = [...document.querySelectorAll("article mark")].filter((mark) => openAll(mark));
      first?.scrollIntoView({ block: "center" });
    });
    addEventListener("kept", ({ detail: { key } }) => {
      questions.filter((question) => question.key.startsWith(key)).forEach((question) => question.show());
    });

    // On paper nothing waits, and nobody is asked.
    const places = new Map();
    const open = () => questions.forEach((question) => question.draw(false));
    const prepare = () => {
      open();
      for (const question of questions.filter((one) => !places.has(one))) {
        places.set(question, document.createComment("guess"));
        question.form.replaceWith(places.get(question));
      }
    };
    const restore = () => {
      places.forEach((place, question) => {
        place.replaceWith(question.form);
        question.draw(question.isCovered);
      });
      places.clear();
    };
    addEventListener("beforeprint", prepare, { capture: true });
    addEventListener("afterprint", restore);
    matchMedia("print").addEventListener("change", (paper) => (paper.matches ? prepare() : restore()));
    addEventListener("book:draw-all", open);
  });
})();
