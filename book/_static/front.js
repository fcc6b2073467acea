// The picture of the start page: a typed sentence becomes tokens, and a token shows whom it attends to. The data
// are in front_data.js, which the build writes (tools/website/front.py), and the tokenizer is the language model's
// (language_model/tokenizer.js); without this script the page shows a still picture.
(function () {
  const { make, button, count } = shared;
  const data = window.frontData;
  const byId = (id) => document.getElementById(id);

  // The ids of the bytes come first, then one for each merge.
  const merges = data.merges.split("\n");
  const pieces = [...[...languageModel.alphabet].sort(), ...merges.map((pair) => pair.replace(" ", ""))];
  const tokenizer = new languageModel.Tokenizer({
    model: { type: "BPE", merges, vocab: Object.fromEntries(pieces.map((piece, i) => [piece, data.first - 256 + i])) },
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false },
  });

  // The two panels ---------------------------------------------------------------------------------------------

  const chip = (shown, below) => make("li", { className: "front-chip" }, shown, make("small", {}, below));

  function showTokens() {
    const text = byId("front-text").value;
    const ids = tokenizer.encode(text);
    byId("front-tokens").replaceChildren(...ids.map((id) => chip(make("bdi", {}, tokenizer.piece(id)), id)));
    byId("front-count").textContent = `${count(ids.length, "token")} for ${count([...text].length, "character")}`;
  }

  const look = () => data.looks[byId("front-sentence").selectedIndex];
  const percent = (weight) => `${(weight / 10).toFixed(0)}%`;
  const capitalized = (name) => name[0].toUpperCase() + name.slice(1);

  // A sentence, without its weights, and a question: whom does the pronoun mean?
  function ask() {
    const { tokens, from } = look();
    const question = make("span", { id: "front-question" }, `Who is “${tokens[from]}”?`);
    const names = [1, 3].map((place) =>
      button(capitalized(tokens[place]), () => choose(from, tokens[place]), { className: "front-name" }));
    byId("front-ask").replaceChildren(question, " ", ...names);
    draw(from, null);
    byId("front-look").textContent = "";
    toggleQuestion(true);
  }

  function toggleQuestion(isOpen) {
    byId("front-ask").hidden = !isOpen;
    byId("front-look").hidden = isOpen;
  }

  function showAttention(from, answer) {
    const { tokens, weights, meant } = look();
    const row = weights[from];
    draw(from, row);
    toggleQuestion(false);
    const most = tokens.map((_, place) => place).sort((one, other) => row[other] - row[one]).slice(0, 3);
    const verdict = answer ? `${answer === meant ? "Yes" : "No"}, ${capitalized(meant)}. ` : "";
    byId("front-look").textContent =
      `${verdict}${tokens[from]} attends to ` + most.map((place) => `${tokens[place]} ${percent(row[place])}`).join(", ");
  }

  // The buttons are drawn anew, and the focus goes to the one of the token.
  function choose(from, answer) {
    showAttention(from, answer);
    byId("front-attention").children[from].querySelector("button").focus();
  }

  // The tokens as buttons, with the weights of a row, or without.
  function draw(from, row) {
    byId("front-attention").replaceChildren(
      ...look().tokens.map((token, place) => {
        const shown = button(token, () => choose(place), { "aria-pressed": place === from });
        const item = chip(shown, row ? percent(row[place]) : "?");
        item.classList.add("front-weight");
        item.style.setProperty("--weight", row ? row[place] / 1000 : 0);
        if (place === from) item.setAttribute("aria-current", "true");
        return item;
      })
    );
  }

  const figure = byId("front-picture");
  figure.querySelectorAll(".front-field").forEach((field) => (field.hidden = false));
  figure.querySelectorAll(".front-still").forEach((title) => (title.hidden = true));
  byId("front-text").addEventListener("input", showTokens);
  byId("front-sentence").addEventListener("change", ask);
  showTokens();
  ask();

  // Paper takes no answer, so it shows the weights.
  let wasOpen = false;
  addEventListener("beforeprint", () => {
    wasOpen = !byId("front-ask").hidden;
    if (wasOpen) showAttention(look().from, null);
  });
  addEventListener("afterprint", () => wasOpen && ask());
})();
