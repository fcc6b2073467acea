// Byte-pair merges, one at a time, on a word of the reader's own.
machine.start("merges", "Byte-pair encoding: merge one pair at a time", (body, data) => {
  const { add } = machine;

  // Two vocabularies: the small one by hand, from the page, and the chapter's own, loaded when it is chosen ------

  function vocabulary(symbols, merges, first, words) {
    const ids = new Map([...symbols].sort().map((symbol, i) => [symbol, first + i]));
    const joined = new Map(merges.map((pair, i) => [pair, first + symbols.length + i]));
    joined.forEach((id, pair) => ids.set(pair.replace(" ", ""), id));
    return { ids, joined, words };
  }
  const small = vocabulary([...data.alphabet], data.merges, 0, (text) => text.split(/\s+/).filter(Boolean).map((word) => [...word]));
  let used = small;

  // The machine itself: the pair with the lowest id is joined, the leftmost of equals ----------------------------

  let words = [], past = [];
  const idOf = (word, i) => used.joined.get(`${word[i]} ${word[i + 1]}`) ?? Infinity;
  const join = (word, i) => [...word.slice(0, i), word[i] + word[i + 1], ...word.slice(i + 2)];

  function lowest() {
    let best = { id: Infinity };
    words.forEach((word, at) => word.forEach((_, i) => {
      const id = idOf(word, i);
      if (id < best.id) best = { id, at, i };
    }));
    return best;
  }

  function mergeOnce() {
    const { id, at, i } = lowest();
    if (id === Infinity) return null;
    past.push(words);
    const pair = words[at].slice(i, i + 2);
    words = words.map((word, place) => (place === at ? join(word, i) : word));
    return `${pair.join(" + ")} = ${pair.join("")}, id ${id}. `;
  }

  // What is on the page ------------------------------------------------------------------------------------------

  const fields = add(body, "div", { class: "machine-fields" });
  const wordLabel = add(fields, "label", {}, "Your word ");
  const input = add(wordLabel, "input", { type: "text", maxlength: 60, autocomplete: "off", autocapitalize: "off", spellcheck: "false" });
  const choiceLabel = add(fields, "label", {}, "Merges ");
  const choice = add(choiceLabel, "select");
  data.choices.forEach((text, i) => add(choice, "option", { value: i }, text));
  const chips = add(body, "div", { class: "machine-chips", role: "group", "aria-label": "pieces" });
  const tools = add(body, "div", { class: "machine-tools" });
  machine.button(tools, "Merge one pair", () => after(mergeOnce() ?? ""));
  machine.button(tools, "Merge all", () => {
    while (mergeOnce());
    after("");
  });
  const back = machine.button(tools, "Back", () => {
    if (past.length) words = past.pop();
    after("");
  });
  machine.button(tools, "Start again", () => begin());
  const said = machine.said(body);

  function begin() {
    words = used.words(input.value);
    past = [];
    after("");
  }

  // A reader who presses a pair guesses that it is next.
  function guess(at, i) {
    const best = lowest(), id = idOf(words[at], i);
    if (id > best.id) return tell(`Not yet: ${id} is not the lowest id. `);
    if (at !== best.at || i !== best.i) return tell("Almost: of equal pairs, the leftmost comes first. ");
    after(`Right. ${mergeOnce()}`);
  }

  function after(sentence) {
    chips.replaceChildren();
    words.forEach((word, at) => {
      const group = add(chips, "span", { class: "machine-word" });
      word.forEach((piece, i) => {
        const chip = add(group, "span", { class: "machine-chip" });
        add(chip, "bdi", {}, piece);
        add(chip, "small", {}, used.ids.get(piece) ?? "no id");
        if (i + 1 === word.length) return;
        const id = idOf(word, i);
        if (id === Infinity) return add(group, "span", { class: "machine-joint", "aria-hidden": true }, "·");
        const joint = machine.button(group, id, () => guess(at, i));
        joint.className = "machine-joint";
        joint.setAttribute("aria-label", `join ${piece} and ${word[i + 1]}: id ${id}`);
      });
    });
    back.setAttribute("aria-disabled", !past.length);
    tell(sentence);
  }

  function tell(sentence) {
    const number = words.flat().length, left = words.flatMap((word) => word.filter((_, i) => idOf(word, i) < Infinity)).length;
    const pairs = left ? `${shared.count(left, "pair")} could be merged.` : "No pair is left to merge.";
    said.textContent = `${sentence}${shared.count(number, "piece")}. ${pairs}`;
  }

  input.addEventListener("input", begin);
  choice.addEventListener("change", async () => {
    if (choice.value === "0") used = small;
    else {
      said.textContent = "Loading the merges of this chapter.";
      await Promise.all(["merges_data.js", "../language_model/tokenizer.js"].map(machine.load));
      const merges = window.machineMerges.split("\n"); // id 0 is the end token, then come the bytes
      const { alphabet, words, spell } = languageModel;
      used = vocabulary(alphabet, merges, 1, (text) => words(text).map(spell));
    }
    begin();
  });
  input.value = data.word;
  begin();
});
