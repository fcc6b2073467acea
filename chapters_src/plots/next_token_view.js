// The next-token view: sliders change the distribution of the next token, and the draws from it; choosing a token
// moves along a small tree of continuations. All numbers are in the page. Made by next_token_view.py.
(function () {
  document.querySelectorAll("figure.next-token-view:not(.ready)").forEach(makeView);

  function makeView(figure) {
    figure.classList.add("ready");
    const data = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
    const NUM_ROWS = 20, NUM_DRAWS = 20, OFF = data.exact + 1; // the last place of the slider for top-k
    const settings = { temperature: 1, topK: OFF, topP: 1 };
    const path = []; // places of the chosen tokens, each in the list of its node
    let seed = 1;

    const make = (tag, className, parent, text = "") => {
      const element = document.createElement(tag);
      element.className = className;
      element.textContent = text;
      parent.append(element);
      return element;
    };
    const shown = (text) => text.replaceAll(" ", "␣").replaceAll("\n", "⏎").replaceAll("\t", "⇥") || "∅";
    const percent = (share) => {
      const number = 100 * share;
      return (number >= 9.95 || number === 0 ? number.toFixed(0) : number.toPrecision(2).slice(0, 5)) + " %";
    };
    const count = (number) => number.toLocaleString("en-US");

    // Where we are, and what the settings make of it -------------------------------------------------------

    function nodeAt(steps) {
      return steps.reduce((node, place) => data.nodes[node.next[place]], data.nodes[0]);
    }

    // Tokens by rank, the first of them one by one, the others in groups of about the same probability.
    function entries(node) {
      return node.tokens.map((text, place) => ({
        place,
        text: data.texts[text],
        logit: node.logits[place],
        count: data.counts[place],
        next: node.next[place],
      }));
    }

    // Temperature, then top-k, then top-p: the order of the Transformers library.
    function distribution(node) {
      const list = entries(node);
      const weighed = (t) => {
        const weights = list.map((entry) => Math.exp(entry.logit / t)); // of one token; the best logit is 0
        const total = weights.reduce((sum, weight, i) => sum + weight * list[i].count, 0);
        return weights.map((weight) => weight / total);
      };
      const raw = weighed(1), heated = weighed(settings.temperature);
      let rank = 0, mass = 0;
      list.forEach((entry, i) => {
        const room = settings.topK === OFF ? entry.count : Math.max(0, settings.topK - rank);
        entry.raw = raw[i];
        entry.heated = heated[i];
        entry.kept = Math.min(entry.count, room);
        rank += entry.count;
        mass += entry.kept * entry.heated;
      });
      let before = 0;
      list.forEach((entry) => {
        const each = entry.heated / mass;
        if (settings.topP < 1) {
          const wanted = Math.ceil((settings.topP - before) / each - 1e-9);
          entry.kept = Math.min(entry.kept, Math.max(entry.place ? 0 : 1, wanted));
        }
        before += each * entry.kept;
      });
      const left = list.reduce((sum, entry) => sum + entry.kept * entry.heated, 0);
      list.forEach((entry) => (entry.final = entry.kept ? entry.heated / left : 0));
      return { list, left, numKept: list.reduce((sum, entry) => sum + entry.kept, 0) };
    }

    // The same random numbers whatever the sliders say: so one sees what a slider does to the draws.
    function uniforms() {
      let state = seed * 0x9e3779b9;
      return Array.from({ length: NUM_DRAWS }, () => {
        state = (state + 0x6d2b79f5) | 0;
        let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
        mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
        return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
      });
    }

    function draw(list, uniform) {
      let sum = 0, last = list[0];
      for (const entry of list) {
        if (!entry.kept) continue;
        last = entry;
        sum += entry.kept * entry.final;
        if (uniform < sum) break;
      }
      return last;
    }

    // What is on the page ------------------------------------------------------------------------------------

    const body = figure.querySelector(".ntv-body");
    body.textContent = "";
    const text = make("p", "ntv-text", body);
    const tools = make("div", "ntv-tools", body);
    const back = make("button", "ntv-back", tools, "← Back");
    const restart = make("button", "ntv-restart", tools, "Start again");
    const place = make("span", "ntv-place", tools);
    const sliders = make("div", "ntv-sliders", body);
    const summary = make("p", "ntv-summary", body);
    summary.setAttribute("role", "status");
    const share = make("div", "ntv-share", body);
    const kept = make("div", "ntv-kept", share);
    const rows = make("ol", "ntv-rows", body);
    const others = make("p", "ntv-others", body);
    const drawn = make("div", "ntv-drawn", body);
    const again = make("button", "ntv-again", drawn, "Draw again");
    const drawnTitle = make("p", "ntv-title", drawn, `${NUM_DRAWS} next tokens, drawn from what is left:`);
    const chips = make("ol", "ntv-chips", drawn);
    drawn.insertBefore(drawnTitle, again);
    const note = make("p", "ntv-note", drawn);
    for (const button of [back, restart, again]) button.type = "button";

    function slider(name, key, from, to, step, told) {
      const label = make("label", "ntv-slider", sliders);
      make("span", "ntv-name", label, name);
      const value = make("span", "ntv-value", label); // not an output: the label would be for that
      const input = make("input", "", label);
      input.setAttribute("aria-label", name);
      value.setAttribute("aria-hidden", "true");
      Object.assign(input, { type: "range", min: from, max: to, step, value: settings[key] });
      const tell = () => {
        value.textContent = told(settings[key]);
        input.setAttribute("aria-valuetext", value.textContent);
      };
      input.addEventListener("input", () => {
        settings[key] = Number(input.value);
        tell();
        show();
      });
      tell();
    }
    slider("temperature", "temperature", 0.1, 2, 0.1, (value) => value.toFixed(1));
    slider("top-k", "topK", 1, OFF, 1, (value) => (value === OFF ? "all tokens" : String(value)));
    slider("top-p", "topP", 0.05, 1, 0.05, (value) => (value === 1 ? "off" : value.toFixed(2)));

    const lines = Array.from({ length: NUM_ROWS }, (_, i) => {
      const row = make("li", "ntv-row", rows);
      const button = make("button", "ntv-token", row);
      button.type = "button";
      const bar = make("span", "ntv-bar", row);
      const fill = make("span", "ntv-fill", bar);
      const outline = make("span", "ntv-outline", bar);
      const number = make("span", "ntv-number", row);
      button.addEventListener("click", () => {
        if (nodeAt(path).next[i] === undefined) return;
        path.push(i);
        show();
      });
      return { row, button, fill, outline, number };
    });
    back.addEventListener("click", () => { path.pop(); show(); });
    restart.addEventListener("click", () => { path.length = 0; show(); });
    again.addEventListener("click", () => { seed += 1; show(); });

    function show() {
      const node = nodeAt(path), { list, left, numKept } = distribution(node);
      text.textContent = "";
      make("span", "ntv-prompt", text, data.prompt);
      let at = data.nodes[0];
      for (const step of path) {
        make("mark", "", text, data.texts[at.tokens[step]]);
        at = data.nodes[at.next[step]];
      }
      make("span", "ntv-cursor", text, "▏").setAttribute("aria-hidden", "true");
      for (const button of [back, restart]) button.setAttribute("aria-disabled", String(!path.length));
      const numNext = Object.keys(node.next).length;
      place.textContent = numNext ? "" : "The tree ends here: go back.";
      const out = 1 - left;
      summary.textContent =
        `${count(numKept)} of ${count(data.vocab_size)} tokens are left; ` +
        `ruled out: ${percent(out > 1e-6 ? out : 0)} of the probability.`;
      kept.style.width = `${100 * left}%`;
      const most = Math.max(...list.slice(0, NUM_ROWS).map((entry) => Math.max(entry.raw, entry.final)));
      lines.forEach(({ row, button, fill, outline, number }, i) => {
        const entry = list[i], leads = entry.next !== undefined;
        row.classList.toggle("out", !entry.kept);
        button.textContent = shown(entry.text);
        button.setAttribute("aria-disabled", String(!leads));
        const saying = `${JSON.stringify(entry.text)}, ${percent(entry.final)}`;
        button.setAttribute("aria-label", leads ? `go on with ${saying}` : `${saying}, not in the tree`);
        fill.style.width = `${(100 * entry.final) / most}%`;
        outline.style.width = `${(100 * entry.raw) / most}%`;
        number.textContent = entry.kept ? percent(entry.final) : "out";
      });
      const rest = list.slice(NUM_ROWS);
      const restKept = rest.reduce((sum, entry) => sum + entry.kept, 0);
      const restMass = rest.reduce((sum, entry) => sum + entry.kept * entry.final, 0);
      others.textContent = `All others: ${count(restKept)} tokens are left, with ${percent(restMass)} together.`;
      chips.textContent = "";
      let grouped = false;
      for (const uniform of uniforms()) {
        const entry = draw(list, uniform);
        const chip = make("li", entry.count > 1 ? "ntv-chip rare" : "ntv-chip", chips, shown(entry.text));
        grouped ||= entry.count > 1;
        chip.dataset.place = entry.place;
      }
      note.textContent = grouped
        ? "A dotted token stands for a group of rare ones with about the same probability."
        : "";
    }
    show();
  }
})();
