// What the tabs of the language model show: the next token, two ways to write, attention, layers, beams. Each is a
// function of a view (view.js) that returns its title, its element, and how to show what the model says now.
window.languageModelPanels = (() => {
  const { make, button } = shared;
  const NUM_BARS = 10, NUM_DRAWS = 20, NUM_WRITTEN = 30, NUM_STEPS = 8, MOST_BEAMS = 5, NUM_GUESSES = 3;
  const TOP_K_OFF = 51; // the last place of the slider

  // The places of the largest numbers, the largest first.
  function largest(numbers, howMany) {
    const best = [];
    numbers.forEach((number, place) => {
      if (best.length === howMany && number <= numbers[best[howMany - 1]]) return;
      let i = best.length;
      while (i > 0 && numbers[best[i - 1]] < number) i--;
      best.splice(i, 0, place);
      if (best.length > howMany) best.pop();
    });
    return best;
  }

  const sampling = new WeakMap(); // the sliders of a view, which two tabs share

  function samplingSliders(view) {
    if (sampling.has(view)) return sampling.get(view);
    const { settings } = view.state;
    const set = (name, value) => {
      settings[name] = value;
      view.showPanel();
    };
    const box = make("div", { className: "lm-sliders" },
      view.slider("temperature", [0, 2, 0.1], 1, (value) => (value ? value.toFixed(1) : "0: greedy"), (value) => set("temperature", value)),
      view.slider("top-k", [1, TOP_K_OFF, 1], TOP_K_OFF, (value) => (value === TOP_K_OFF ? "off" : String(value)),
        (value) => set("topK", value === TOP_K_OFF ? 0 : value)),
      view.slider("top-p", [0.05, 1, 0.05], 1, (value) => (value === 1 ? "off" : value.toFixed(2)), (value) => set("topP", value)),
      view.slider("min-p", [0, 0.5, 0.01], 0, (value) => (value ? value.toFixed(2) : "off"), (value) => set("minP", value)));
    sampling.set(view, box);
    return box;
  }

  function seedField(view) {
    const field = make("input", { type: "number", min: 0, max: 9999, step: 1, oninput: () => {
      view.state.seed = Math.max(0, Math.floor(Number(field.value)) || 0);
      view.showPanel();
    } });
    const show = () => { if (Number(field.value) !== view.state.seed || !field.value) field.value = view.state.seed; };
    return { element: make("label", { className: "lm-seed" }, "Seed ", field), show };
  }

  // The token that a seed draws after some ids.
  function drawn(view, probabilities, seed, place) {
    return languageModel.draw(probabilities, () => view.uniform(seed, place));
  }

  // --- The next token: its distribution under the sliders, twenty draws from it; a bar can be taken.

  function next(view) {
    const { state, percent, count } = view;
    const list = make("ol", { className: "lm-bars", "aria-label": "The most probable next tokens" });
    const rows = Array.from({ length: NUM_BARS }, () => {
      const take = button("", () => view.take([row.id]), { className: "lm-token" });
      const fill = make("span", { className: "lm-fill" }), outline = make("span", { className: "lm-outline" });
      const number = make("span", { className: "lm-number", "aria-hidden": "true" });
      const row = { take, fill, outline, number };
      row.element = make("li", {}, take, make("span", { className: "lm-bar" }, fill, outline), number);
      list.append(row.element);
      return row;
    });
    const summary = make("p", { className: "lm-summary" });
    const draws = make("ul", { className: "lm-draws", "aria-label": `${NUM_DRAWS} draws` });
    const seed = seedField(view);
    const tools = make("div", { className: "lm-tools" },
      button("Back", view.back),
      button("Take best", () => view.take([largest(view.reading().logits, 1)[0]])),
      button("Draw one", () => view.take([drawn(view, view.probabilities(view.reading().logits), state.seed, state.at)])),
      seed.element);
    const right = make("div", { className: "lm-effect" }, list, summary, draws);
    const element = make("div", { className: "lm-two" }, right, tools);

    function show() {
      if (!element.contains(samplingSliders(view))) element.prepend(samplingSliders(view));
      const { logits } = view.reading(), vocabulary = logits.length;
      const said = view.probabilities(logits, {});
      const final = view.probabilities(logits);
      const most = Math.max(Math.max(...said), Math.max(...final));
      largest(logits, NUM_BARS).forEach((id, i) => {
        const row = rows[i], name = view.name(id), isOut = final[id] === 0;
        row.id = id;
        row.take.replaceChildren(make("bdi", {}, name));
        row.take.setAttribute("aria-label", `take ${name}, ${isOut ? "out" : percent(final[id])}; the model says ${percent(said[id])}`);
        row.element.classList.toggle("lm-out", isOut);
        row.fill.style.width = `${(100 * final[id]) / most}%`;
        row.outline.style.width = `${(100 * said[id]) / most}%`;
        row.number.textContent = isOut ? "out" : percent(final[id]);
      });
      let numLeft = 0, out = 0;
      final.forEach((share, id) => { if (share) numLeft++; else out += said[id]; });
      summary.textContent = `${count(numLeft)} of ${count(vocabulary)} tokens left, ${percent(out)} ruled out. ${NUM_DRAWS} draws:`;
      draws.replaceChildren(...Array.from({ length: NUM_DRAWS }, (_, i) =>
        make("li", {}, make("bdi", {}, view.name(drawn(view, final, state.seed + i, state.at))))));
      seed.show();
      const best = rows[0];
      view.sayLater(`${count(numLeft)} tokens are left. First: ${view.name(best.id)}, ${percent(final[best.id])}.`);
    }
    return { title: "Next", element, show };
  }

  // --- Greedy beside sampling.

  function write(view) {
    const { state } = view;
    const columns = [
      { title: "Greedy", choose: (logits) => largest(logits, 1)[0] },
      { title: "Sampled", choose: (logits, place) => drawn(view, view.probabilities(logits), state.seed, place) },
    ];
    for (const column of columns) {
      column.head = make("b", {}, column.title);
      column.text = make("p", { className: "lm-written" });
      column.take = button("Take it", () => view.take(column.ids, `Took what ${column.title.toLowerCase()} search wrote.`), { "aria-label": `Take it: the ${column.title.toLowerCase()} text`, disabled: true });
      column.element = make("div", { className: "lm-column" }, column.head, column.text, column.take);
    }
    const seed = seedField(view);
    const start = button(`Write ${NUM_WRITTEN} tokens`, () => run(true));
    const stop = button("Stop", () => { turn++; stop.disabled = true; }, { disabled: true });
    const right = make("div", { className: "lm-effect" }, make("div", { className: "lm-columns" }, ...columns.map((column) => column.element)));
    const element = make("div", { className: "lm-two" }, right, make("div", { className: "lm-tools" }, start, stop, seed.element));
    let turn = 0, from = ""; // the beginning that was written on

    async function run(slowly) {
      const mine = ++turn, beginning = view.beginning();
      from = beginning.join();
      stop.disabled = false;
      for (const column of columns) {
        const memory = view.model.emptyMemory();
        Object.assign(column, { ids: [], memory, logits: view.model.read(beginning, memory).logits });
      }
      for (let i = 0; i < NUM_WRITTEN; i++) {
        for (const column of columns) step(column, beginning.length + i - 1);
        if (slowly && !view.still()) {
          columns.forEach(showColumn);
          await view.pause(view.PACE);
        } else if (i % 5 === 4) await view.pause(0);
        if (mine !== turn) return;
      }
      columns.forEach(showColumn);
      stop.disabled = true;
      view.sayLater(columns.map(({ title, ids }) => `${title}: ${view.written(ids)}`).join(". "));
    }

    function step(column, place) {
      if (column.ids.at(-1) === view.endId || view.isFull([...view.beginning(), ...column.ids])) return;
      const id = column.choose(column.logits, place);
      column.ids.push(id);
      column.logits = view.model.read([id], column.memory).logits;
    }

    function showColumn(column) {
      const ended = column.ids.at(-1) === view.endId ? " ⟨end⟩" : "";
      const before = view.withSigns(view.written(view.beginning()).slice(-24));
      column.text.replaceChildren(make("span", {}, `…${before}`), make("mark", {}, view.withSigns(view.written(column.ids)) + ended));
      column.take.disabled = !column.ids.length;
    }

    function show() {
      if (!element.contains(samplingSliders(view))) element.prepend(samplingSliders(view));
      seed.show();
      columns[1].head.textContent = `Sampled, seed ${state.seed}`;
      if (from && from === view.beginning().join()) return run(false); // a slider was moved
      turn++;
      from = "";
      stop.disabled = true;
      for (const column of columns) showColumn(Object.assign(column, { ids: [] }));
    }
    return { title: "Write", element, show };
  }

  // --- Attention: on the chips, and the largest weights as bars.

  function attention(view) {
    const { state, percent } = view, { numLayers, numHeads } = view.model.config;
    Object.assign(state, { layer: 1, head: 1 });
    const set = (name) => (value) => {
      state[name] = value;
      view.showChips(weights());
      show();
    };
    const list = make("ol", { className: "lm-bars", "aria-label": "Where it looks" });
    const sentence = make("p", { className: "lm-summary" });
    const sliders = make("div", { className: "lm-sliders" },
      view.slider("layer", [1, numLayers, 1], 1, String, set("layer")),
      view.slider("head", [0, numHeads, 1], 1, (value) => (value ? String(value) : "mean of all"), set("head")));
    const map = make("div", { className: "lm-map", "aria-hidden": "true", onclick: choose }); // for the sliders, by hand
    const element = make("div", { className: "lm-two" }, make("div", {}, sliders, map), make("div", { className: "lm-effect" }, sentence, list));
    map.style.setProperty("--heads", numHeads);

    function weights() {
      const heads = view.reading().attention[state.layer - 1];
      if (state.head) return heads[state.head - 1];
      return heads[0].map((_, place) => heads.reduce((sum, head) => sum + head[place], 0) / heads.length);
    }

    // A small strip for each head, a row for each layer: where its attention goes, from the first token to the last.
    function showMap() {
      map.replaceChildren(...view.reading().attention.flatMap((heads, layer) => heads.map((row, head) => {
        const stripes = Array.from(row, (weight, place) => `rgb(59 104 200 / ${weight.toFixed(2)}) ${(100 * place) / row.length}% ${(100 * (place + 1)) / row.length}%`);
        const cell = make("span", { title: `layer ${layer + 1}, head ${head + 1}` });
        cell.style.backgroundImage = `linear-gradient(to right, ${stripes.join(", ")})`;
        cell.classList.toggle("lm-on", layer + 1 === state.layer && (head + 1 === state.head || !state.head));
        Object.assign(cell.dataset, { layer: layer + 1, head: head + 1 });
        return cell;
      })));
    }

    function choose({ target }) {
      if (!target.dataset.layer) return;
      sliders.querySelectorAll("input").forEach((input, i) => {
        input.value = i ? target.dataset.head : target.dataset.layer;
        input.dispatchEvent(new Event("input"));
      });
    }

    function show() {
      showMap();
      const found = weights(), best = largest(found, 6).filter((place) => found[place] >= 0.005);
      const who = state.head ? `head ${state.head}` : "the mean of all heads";
      sentence.textContent = `Layer ${state.layer}, ${who}: ${view.name(state.ids[state.at])} attends to`;
      list.replaceChildren(...best.map((place) => {
        const fill = make("span", { className: "lm-fill" });
        fill.style.width = `${100 * found[place]}%`;
        return make("li", {}, make("span", { className: "lm-token" }, make("bdi", {}, view.name(state.ids[place])), make("small", {}, ` ${place + 1}`)),
          make("span", { className: "lm-bar" }, fill), make("span", { className: "lm-number" }, percent(found[place])));
      }));
      view.sayLater(`${sentence.textContent} ${best.slice(0, 3).map((place) => `${view.name(state.ids[place])} ${percent(found[place])}`).join(", ")}.`);
    }
    return { title: "Attention", element, show, weights };
  }

  // --- The way through the layers: what the head of the model would predict from each layer's vector.

  function layers(view) {
    const { state, percent, count } = view;
    const rows = make("tbody"), target = make("th", { scope: "col" });
    const sentence = make("p", { className: "lm-summary" });
    const table = make("table", { className: "lm-layers" },
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "after"), make("th", { scope: "col" }, "what it would predict"), target)), rows);
    const element = make("div", {}, sentence, table);

    function show() {
      const { hidden, logits } = view.reading();
      const following = state.ids[state.at + 1] ?? largest(logits, 1)[0];
      target.replaceChildren("rank of ", make("bdi", {}, view.name(following)));
      sentence.textContent = `The vector of ${view.name(state.ids[state.at])} on its way, read by the model’s last norm and head:`;
      rows.replaceChildren(...hidden.map((vector, layer) => {
        const said = view.model.layerLogits(vector);
        const shares = view.probabilities(said, {});
        const rank = 1 + said.reduce((above, logit) => above + (logit > said[following]), 0);
        const guesses = largest(said, NUM_GUESSES).map((id) => {
          const guess = make("span", { className: "lm-guess" }, make("bdi", {}, view.name(id)), make("small", {}, ` ${percent(shares[id])}`));
          guess.style.setProperty("--share", shares[id]);
          return guess;
        });
        return make("tr", {}, make("th", { scope: "row" }, layer ? `layer ${layer}` : "embedding"), make("td", {}, ...guesses), make("td", {}, count(rank)));
      }));
    }
    return { title: "Layers", element, show };
  }

  // --- Beams: a tree that grows step by step; any of its tokens can be taken with those before it.

  function beams(view) {
    let numBeams = 3, numSteps = NUM_STEPS; // as the sliders say
    let steps = [], greedy = [], searched = "";
    const tree = make("div", { className: "lm-tree" });
    const lines = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    lines.setAttribute("aria-hidden", "true");
    const sentence = make("p", { className: "lm-summary" });
    const stepSlider = view.slider("steps", [1, NUM_STEPS, 1], NUM_STEPS, String, (value) => { numSteps = value; showTree(); });
    const element = make("div", { className: "lm-two" },
      make("div", { className: "lm-sliders" },
        view.slider("beams", [1, MOST_BEAMS, 1], numBeams, String, (value) => { numBeams = value; show(); }), stepSlider,
        button("Let it grow", grow)),
      make("div", { className: "lm-effect" }, tree, sentence));

    async function show() {
      const beginning = view.beginning(), wanted = `${beginning} ${numBeams}`;
      if (searched === wanted) return showTree();
      searched = wanted;
      const most = Math.min(NUM_STEPS, view.model.config.maxPositions - beginning.length);
      const search = async (number) => most < 1 ? [] : (await languageModel.beams(view.model, beginning, { numBeams: number, numSteps: most })).steps;
      const found = await search(numBeams), alone = await search(1);
      if (searched !== wanted) return;
      [steps, greedy] = [found, alone];
      showTree();
    }

    // The places on the way to a node, one for each step.
    function wayTo(step, place) {
      const way = [];
      for (let i = step, at = place; i >= 0; at = steps[i--][at].parent) way.unshift(at);
      return way;
    }
    const path = (step, place) => wayTo(step, place).map((at, i) => steps[i][at].id);

    function showTree() {
      const shown = steps.slice(0, numSteps), last = shown.length - 1;
      sentence.textContent = "There is no room for another token.";
      tree.replaceChildren();
      redraw = () => {};
      if (last < 0) return;
      const ends = shown.flatMap((nodes, step) => nodes.map((node, place) => ({ ...node, step, place }))).filter(({ step, finished }) => finished || step === last);
      const best = ends.reduce((one, other) => (other.score > one.score ? other : one));
      const bestWay = wayTo(best.step, best.place);
      const alive = new Set(ends.flatMap(({ step, place }) => wayTo(step, place).map((at, i) => `${i} ${at}`)));
      const columns = columnsOf(shown);
      tree.style.setProperty("--beams", Math.max(...shown.map((nodes) => nodes.length)));
      tree.append(lines, ...shown.flatMap((nodes, step) => nodes.map((node, place) => {
        const kind = bestWay[step] === place ? "lm-best" : alive.has(`${step} ${place}`) ? "" : "lm-lost";
        const words = `${view.name(node.id)} ${minus(node.total)}, step ${step + 1}${kind === "lm-lost" ? ", left behind" : ""}: ${view.written(path(step, place))}`;
        const box = button("", () => view.take(path(step, place)), { className: `lm-node ${kind}`, "aria-label": words });
        box.append(make("bdi", {}, view.name(node.id)), " ", make("small", {}, minus(node.total)));
        Object.assign(box.style, { gridRow: step + 1, gridColumn: columns[step][place] + 1 });
        Object.assign(box.dataset, { step, place });
        return box;
      })));
      drawLines(shown, bestWay);
      const other = greedy[Math.min(best.step, greedy.length - 1)][0];
      sentence.textContent = `After ${last + 1} steps the best beam has log-probability ${minus(best.total)}, greedy search ${minus(other.total)}.`;
      view.sayLater(`${sentence.textContent} Best: ${view.written(path(best.step, best.place))}`);
    }
    const minus = (number) => number.toFixed(1).replace("-", "−");

    // A child stands below its parent; a brother or sister as near as there is room.
    function columnsOf(shown) {
      const columns = [];
      shown.forEach((nodes, step) => {
        const free = new Set(nodes.map((_, column) => column).concat(step ? columns[step - 1] : []));
        columns.push(nodes.map(({ parent }, place) => {
          const wanted = step ? columns[step - 1][parent] : place;
          const nearest = [...free].sort((one, other) => Math.abs(one - wanted) - Math.abs(other - wanted))[0];
          free.delete(nearest);
          return nearest;
        }));
      });
      return columns;
    }

    let redraw = () => {};
    new ResizeObserver(() => redraw()).observe(tree);

    function drawLines(shown, bestWay) {
      redraw = () => drawLines(shown, bestWay);
      const node = (step, place) => tree.querySelector(`[data-step="${step}"][data-place="${place}"]`);
      const paths = shown.flatMap((nodes, step) => step === 0 ? [] : nodes.map(({ parent }, place) => {
        const from = node(step - 1, parent), to = node(step, place);
        const [x, y] = [from.offsetLeft + from.offsetWidth / 2, from.offsetTop + from.offsetHeight];
        const [u, v] = [to.offsetLeft + to.offsetWidth / 2, to.offsetTop];
        const isBest = bestWay[step] === place;
        return `<path class="${isBest ? "lm-best" : ""}" d="M${x},${y} C${x},${(y + v) / 2} ${u},${(y + v) / 2} ${u},${v}"/>`;
      }));
      lines.setAttribute("width", tree.scrollWidth);
      lines.setAttribute("height", tree.scrollHeight);
      lines.innerHTML = paths.join("");
    }

    async function grow() {
      const input = stepSlider.querySelector("input");
      for (let step = view.still() ? NUM_STEPS : 1; step <= NUM_STEPS; step++) {
        input.value = step;
        input.dispatchEvent(new Event("input"));
        if (step < NUM_STEPS) await view.pause(6 * view.PACE);
      }
    }
    return { title: "Beams", element, show };
  }

  return { next, write, attention, layers, beams };
})();
