// The five questions of a chapter: each becomes a form that answers a choice with that choice's explanation.
// Without this script, and on paper, the page has the same text, with the answers in folds.
document.addEventListener("DOMContentLoaded", () => {
  const section = document.getElementById("five-questions");
  if (!section || !window.kept) return;
  const page = location.pathname.split("/").pop().replace(/\.html$/, "");
  const folds = [...section.querySelectorAll(":scope > details.quiz-answers")];

  const { make, button } = shared;
  const copied = (element) => [...element.cloneNode(true).childNodes];
  // What an option or an explanation says after its letter, which is in bold.
  const said = (item) => {
    const copy = (item.querySelector(":scope > p") ?? item).cloneNode(true);
    copy.firstElementChild.remove();
    return [...copy.childNodes];
  };

  // The text of a question, its options and its answers stand one after the other.
  const questions = folds.map((fold, i) => {
    const list = fold.previousElementSibling, asked = list.previousElementSibling;
    [asked, list, fold].forEach((element) => element.classList.add("quiz-text"));
    return {
      key: `quiz/${page}/${i + 1}`,
      sign: sign(asked.textContent + list.textContent),
      right: fold.dataset.right,
      asked,
      options: [...list.children].map((item, n) =>
        ({ letter: "ABCD"[n], text: said(item), why: fold.querySelectorAll(":scope > ul > li")[n] })),
    };
  });

  // A number for a text: what was kept for a question that has been rewritten since does not count.
  function sign(text) {
    let value = 0;
    for (const letter of text) value = (31 * value + letter.codePointAt(0)) >>> 0;
    return value.toString(36);
  }

  // What the reader has answered, in order, such as ["C", "B"].
  function tries(question) {
    const value = kept.read(question.key);
    return value?.sign === question.sign && Array.isArray(value.tries) ? value.tries : [];
  }

  function answer(question, letter) {
    const { key, sign, right } = question;
    question.latest = letter;
    if (!tries(question).includes(letter)) kept.write(key, { tries: [...tries(question), letter], right, sign });
    question.show();
  }

  function form(question, number) {
    const name = `quiz-${number}`, choices = {};
    const options = question.options.map(({ letter, text }) => {
      const input = make("input", { type: "radio", name, value: letter });
      const mark = make("span", { className: "quiz-mark" });
      const words = make("span", {}, make("strong", {}, letter), ...text);
      const label = make("label", { className: "quiz-option" }, input, words, mark);
      choices[letter] = { input, label, mark };
      return label;
    });
    const submit = make("button", { type: "submit", className: "quiz-button" }, "Answer");
    const told = make("p", { className: "quiz-told", role: "status" });
    const legend = make("legend", {}, ...copied(question.asked));
    const fields = make("fieldset", {}, legend, ...options);
    const whole = make("form", { className: "quiz-question", noValidate: true }, fields, submit, told);
    whole.addEventListener("submit", (event) => {
      event.preventDefault();
      const chosen = new FormData(whole).get(name);
      if (chosen) answer(question, chosen);
      else told.replaceChildren("Choose an answer first.");
    });
    // Shows what is kept, and explains what was answered last; what stands already is not said again.
    let shown = "";
    question.show = () => {
      const made = tries(question);
      if (shown === `${made} ${question.latest}`) return;
      shown = `${made} ${question.latest}`;
      for (const [letter, { input, label, mark }] of Object.entries(choices)) {
        const state = !made.includes(letter) ? "" : letter === question.right ? "right" : "wrong";
        label.dataset.state = state;
        mark.textContent = state;
        if (!made.length) input.checked = false;
      }
      const latest = made.includes(question.latest) ? question.latest : made.at(-1);
      told.replaceChildren(...(latest ? explained(question, latest, made) : []));
      if (latest) choices[latest].input.checked = true;
      whole.dataset.done = made.includes(question.right);
    };
    return whole;
  }

  // Right or wrong, the explanation, and what can be done next.
  function explained(question, letter, made) {
    const isRight = letter === question.right, done = made.includes(question.right);
    const verdict = isRight ? `${letter} is right. ` : `${letter} is wrong. `;
    const next = isRight ? " The others say why they are wrong, if you choose them." : done ? "" : " Try again.";
    const { why } = question.options.find((option) => option.letter === letter);
    return [make("strong", {}, verdict), ...said(why), next];
  }

  const over = make("p", { className: "quiz-over", role: "status" });
  const again = button("Start over", () => {
    kept.forget(`quiz/${page}/`);
    live.querySelector("input").focus();
  }, { className: "quiz-button" });

  function showAll() {
    questions.forEach((question) => question.show());
    showEnd();
  }

  function showEnd() {
    const all = questions.map((question) => tries(question));
    const done = all.filter((made, i) => made.includes(questions[i].right)).length;
    const first = all.filter((made, i) => made[0] === questions[i].right).length;
    again.hidden = !all.some((made) => made.length);
    const line = done === questions.length
      ? `All ${done} answered, ${first} of them at the first try. This is kept in your browser only.` : "";
    if (over.textContent !== line) over.textContent = line;
  }

  const live = make("div", { className: "quiz-live" }, ...questions.map((question, i) => form(question, i + 1)), over, again);
  section.append(live);
  section.classList.add("quiz-works"); // from here on the style sheet hides the plain text on screens
  showAll();
  // Written here or in another tab, or forgotten: key is "" for everything, or how the keys begin.
  window.addEventListener("kept", ({ detail: { key } }) => {
    if (questions.some((question) => question.key.startsWith(key))) showAll();
  });

  // One page on paper: its answers come last. The whole book collects them itself.
  const last = make("section", {}, make("h2", {}, "Answers to the five questions"));
  function toTheEnd() {
    if (document.documentElement.classList.contains("whole-book") || last.isConnected) return;
    const here = folds.filter((fold) => section.contains(fold));
    if (!here.length) return;
    for (const fold of here) {
      const place = document.createComment("answer");
      fold.replaceWith(place);
      fold.open = true;
      fold.quizPlace = place;
      last.append(fold);
    }
    section.closest("article").append(last);
  }
  function back() {
    for (const fold of last.querySelectorAll("details")) {
      fold.open = false;
      fold.quizPlace.replaceWith(fold);
    }
    last.remove();
  }
  window.addEventListener("beforeprint", toTheEnd);
  window.addEventListener("afterprint", back);
});
