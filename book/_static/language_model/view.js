// The language model at work: a text, its tokens as chips, one of them to look from, and tabs that say what the
// model does there (panels.js). The model itself is in tokenizer.js, model.js, kernels.js and decoding.js.
window.languageModelView = (() => {
  const PACE = 60; // milliseconds between two tokens that are written before the reader's eyes
  const MOST_BRANCHES = 4;
  const MOST_BITS = 16; // the darkest chip

  const { make } = shared;

  // --- Small tools, also of the panels.

  const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
  const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
  const count = (number) => number.toLocaleString("en-US");
  const visible = (text) => text.replaceAll(" ", "␣").replaceAll("\n", "⏎").replaceAll("\t", "⇥");
  const withSigns = (text) => text.replaceAll("\n", "⏎");

  function percent(share) {
    if (share === 0) return "0%";
    if (share < 0.001) return "<0.1%";
    return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`;
  }

  // A slider with its name and its value: `told` says the value in words.
  function slider(name, [from, to, step], value, told, moved) {
    const shown = make("output", { "aria-hidden": "true" });
    const input = make("input", { type: "range", min: from, max: to, step, value, "aria-label": name });
    const tell = () => {
      shown.textContent = told(Number(input.value));
      input.setAttribute("aria-valuetext", shown.textContent);
    };
    input.addEventListener("input", () => { tell(); moved(Number(input.value)); });
    tell();
    return make("label", { className: "lm-slider" }, make("span", {}, name), shown, input);
  }

  // The number that a seed draws at a place of a text, from 0 to 1: the same seed draws the same text again.
  function uniform(seed, place) {
    let bits = Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(place + 1, 0x85ebca77);
    for (const factor of [0x21f0aaad, 0x735a2d97, 0x21f0aaad]) bits = Math.imul(bits ^ (bits >>> 16), factor) + 0x6d2b79f5;
    return ((bits ^ (bits >>> 15)) >>> 0) / 2 ** 32;
  }

  // What a token costs: minus the binary logarithm of the probability that the logits give it.
  function bits(logits, id) {
    let most = -Infinity, sum = 0;
    for (const logit of logits) most = Math.max(most, logit);
    for (const logit of logits) sum += Math.exp(logit - most);
    return (Math.log(sum) - (logits[id] - most)) / Math.LN2;
  }

  // --- The view of one model at one place of a page.

  function open(place, section, model) {
    const END = model.config.endId ?? 0; // the token that ends a document; every text begins after one
    const text = section.querySelector("textarea")?.value ?? place.dataset.text ?? "The number of";
    section.querySelector(".lm-body")?.remove();
    section.querySelector(".lm-choice").hidden = true;

    const state = {
      ids: [END], // the text, after the token that begins it
      numTyped: 1, // those that the reader typed; the model wrote the others
      at: 0, // the token to look from
      readings: [], // what the model says after each token: logits, attention, hidden
      bits: [], // what each token cost
      branches: [], // texts that were left for another one
      seed: 1,
      settings: { temperature: 1, topK: 0, topP: 1, minP: 0 }, // nothing is changed or cut
      tab: place.dataset.preset ?? "next",
    };
    const memory = model.emptyMemory();
    const read = []; // the ids that are in the memory
    let turn = 0; // a new text ends the reading of the former one

    const view = { model, state, endId: END, slider, uniform, percent, count, visible, withSigns, pause, still, PACE };
    view.name = (id) => (id === END ? "⟨end⟩" : visible(model.tokenizer.piece(id)) || "∅");
    view.written = (ids) => model.tokenizer.decode(ids.filter((id) => id !== END));
    view.reading = () => state.readings[state.at];
    view.beginning = () => state.ids.slice(0, state.at + 1); // of the text, up to where the reader looks from
    view.isFull = (ids) => ids.length >= model.config.maxPositions;
    view.probabilities = (logits, settings = state.settings) => languageModel.probabilities(logits, settings);

    // --- What can be done with the text.

    async function become(ids, { numTyped = state.numTyped, said = "" } = {}) {
      const mine = ++turn, most = model.config.maxPositions;
      Object.assign(state, { ids: ids.slice(0, most), numTyped: Math.min(numTyped, ids.length) });
      state.at = state.ids.length - 1;
      error.textContent = ids.length > most ? `The model reads ${most} tokens; what comes after them is left out.` : "";
      let common = 0;
      while (common < read.length && read[common] === state.ids[common]) common++;
      memory.cut(common);
      read.length = state.readings.length = state.bits.length = common;
      for (const id of state.ids.slice(common)) {
        state.bits.push(read.length ? bits(state.readings.at(-1).logits, id) : null);
        state.readings.push(model.read([id], memory, { details: true }));
        read.push(id);
        if (read.length % 8 === 0) await pause(0); // a reader may type on
        if (mine !== turn) return;
      }
      show();
      if (said) view.say(said);
    }

    view.type = (typed) => {
      const ids = [END, ...model.tokenizer.encode(typed)];
      state.branches = [];
      return become(ids, { numTyped: ids.length });
    };
    // Go on from where the reader looks: what stood after it stays as a branch.
    view.take = (ids, said) => {
      const next = [...view.beginning(), ...ids];
      leaveFor(next);
      return become(next, { numTyped: Math.min(state.numTyped, state.at + 1), said: said ?? `Took ${ids.map(view.name).join(" ")}. ${count(next.length - 1)} tokens.` }).then(writeText);
    };
    view.back = () => {
      if (state.at === 0) return view.say("The text begins here.");
      const gone = state.ids[state.at], ids = state.ids.slice(0, state.at);
      leaveFor(ids);
      return become(ids, { said: `Back before ${view.name(gone)}.` }).then(writeText);
    };
    view.lookFrom = (at) => {
      state.at = at;
      show();
    };
    const writeText = () => { field.value = view.written(state.ids); };

    const begins = (text, beginning) => beginning.every((id, i) => text[i] === id);
    function leaveFor(next) {
      const left = [state.ids, ...state.branches].filter((ids) => !begins(next, ids));
      const isIn = (ids, i) => (other, j) => i !== j && begins(other, ids) && (other.length > ids.length || j < i);
      state.branches = left.filter((ids, i) => !left.some(isIn(ids, i))).slice(0, MOST_BRANCHES);
    }

    // --- What is seen: the text, its chips, the tabs.

    const error = section.querySelector(".lm-error"), status = section.querySelector(".lm-status");
    let saying = 0;
    view.say = (words) => { clearTimeout(saying); status.textContent = words; };
    view.sayLater = (words) => { clearTimeout(saying); saying = setTimeout(() => view.say(words), 600); };

    const { numLayers, numHeads, name } = model.config;
    const about = make("p", { className: "lm-about" }, make("b", {}, name),
      ` · ${numLayers} layers, ${numHeads} heads · ${model.engine}`);
    const field = make("textarea", { rows: 2, value: text, spellcheck: false, "aria-label": "Text", oninput: () => view.type(field.value) });
    const measure = make("p", { className: "lm-measure" });
    const chips = make("div", { className: "lm-chips", role: "radiogroup", "aria-label": "Tokens: choose one to look from", onkeydown: moveAlong });
    const branches = make("p", { className: "lm-branches" });

    const panels = Object.entries(languageModelPanels).map(([key, makePanel]) => ({ key, ...makePanel(view) }));
    if (!panels.some(({ key }) => key === state.tab)) state.tab = panels[0].key;
    const list = make("div", { className: "lm-tabs", role: "tablist", "aria-label": "What to look at", onkeydown: moveTab });
    for (const panel of panels) {
      const id = `lm-${Math.random().toString(36).slice(2)}`;
      panel.tab = make("button", { type: "button", role: "tab", id: `${id}-tab`, "aria-controls": id, onclick: () => choose(panel) }, panel.title);
      panel.box = make("div", { className: `lm-panel lm-${panel.key}`, role: "tabpanel", id, "aria-labelledby": `${id}-tab` }, panel.element);
      if (!panel.element.querySelector("input")) panel.box.tabIndex = 0; // a stop for the Tab key, where there is no other
      list.append(panel.tab);
    }
    const body = make("div", { className: "lm-body" }, about, field, chips, measure, branches, list, ...panels.map((panel) => panel.box));
    section.querySelector(".lm-own").before(body);

    function choose(panel) {
      state.tab = panel.key;
      show();
    }
    function moveTab(event) {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const now = panels.findIndex(({ key }) => key === state.tab);
      const next = panels[(now + step + panels.length) % panels.length];
      choose(next);
      next.tab.focus();
      event.preventDefault();
    }
    function moveAlong(event) {
      const last = state.ids.length - 1;
      const to = { ArrowRight: state.at + 1, ArrowDown: state.at + 1, ArrowLeft: state.at - 1, ArrowUp: state.at - 1, Home: 0, End: last }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      if (to < 0 || to > last) return;
      view.lookFrom(to);
      chips.children[to].focus({ preventScroll: true });
    }

    function showChips(weights) {
      chips.replaceChildren(...state.ids.map((id, place) => {
        const look = weights ? weights[place] ?? null : state.bits[place];
        const small = look === null ? "" : !weights ? look.toFixed(0) : look < 0.005 ? "" : percent(look);
        const words = look === null ? "" : weights ? `, ${percent(look)} of the attention` : `, ${look.toFixed(1)} bits`;
        const chip = make("button", {
          type: "button", role: "radio", "aria-checked": String(place === state.at), tabIndex: place === state.at ? 0 : -1,
          className: `lm-chip ${weights ? "lm-weight" : "lm-bits"}${place >= state.numTyped ? " lm-new" : ""}`,
          "aria-label": `${view.name(id)}${words}`, onclick: () => { view.lookFrom(place); chips.children[place].focus({ preventScroll: true }); },
        }, make("bdi", {}, view.name(id)), " ", make("small", {}, small));
        chip.style.setProperty("--share", weights ? look ?? 0 : Math.min((look ?? 0) / MOST_BITS, 1));
        return chip;
      }));
      const here = chips.children[state.at];
      if (here.offsetTop < chips.scrollTop) chips.scrollTop = here.offsetTop - 4;
      const below = here.offsetTop + here.offsetHeight - chips.clientHeight;
      if (below > chips.scrollTop) chips.scrollTop = below + 4;
      const sum = state.bits.slice(1).reduce((total, cost) => total + cost, 0);
      const numBytes = new TextEncoder().encode(view.written(state.ids)).length;
      measure.textContent = state.ids.length === 1 ? "Type a text." :
        `${count(state.ids.length - 1)} tokens, ${sum.toFixed(1)} bits${numBytes ? `: ${(sum / numBytes).toFixed(2)} a byte` : ""}. Looking from ${view.name(state.ids[state.at])}.`;
    }

    function showBranches() {
      branches.replaceChildren();
      if (!state.branches.length) return;
      branches.append("Other branches: ");
      for (const ids of state.branches) {
        let common = 0;
        while (common < state.ids.length && ids[common] === state.ids[common]) common++;
        const tail = withSigns(view.written(ids.slice(common)));
        const shown = `…${tail.length > 24 ? `${tail.slice(0, 24)}…` : tail}`;
        const back = () => {
          leaveFor(ids);
          become(ids, { numTyped: Math.min(state.numTyped, common), said: `Returned to: ${view.written(ids)}` }).then(writeText);
        };
        branches.append(make("button", { type: "button", className: "lm-branch", "aria-label": `${shown}, return to this branch`, onclick: back }, shown), " ");
      }
    }

    function show() {
      const panel = panels.find(({ key }) => key === state.tab);
      for (const other of panels) {
        other.tab.setAttribute("aria-selected", String(other === panel));
        other.tab.tabIndex = other === panel ? 0 : -1;
        other.box.hidden = other !== panel;
      }
      const hadFocus = chips.contains(document.activeElement);
      showChips(panel.weights?.());
      if (hadFocus) chips.children[state.at].focus({ preventScroll: true });
      showBranches();
      panel.show();
    }
    view.showChips = showChips;
    view.showPanel = () => panels.find(({ key }) => key === state.tab).show();

    const told = `The model is ready: ${name}.`;
    section.tabIndex = -1;
    return view.type(text).then(() => { view.say(told); section.focus({ preventScroll: true }); });
  }

  return { open, uniform };
})();
