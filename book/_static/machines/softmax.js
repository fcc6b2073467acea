// Softmax and temperature: every score has a slider; where there is a temperature, it divides them all.
machine.start("softmax", "Softmax: move the scores", (body, data) => {
  const { add } = machine;
  const digits = data.digits ?? 2;
  const told = (score) => score.toFixed(data.scores.every(Number.isInteger) ? 1 : 2).replace("-", "−");
  let scores, temperature;

  // The machine itself ---------------------------------------------------------------------------------------------

  const weigh = () => machine.softmax(scores.map((score) => score / temperature));

  // What is on the page ------------------------------------------------------------------------------------------

  const heats = { min: 0.1, max: 5, step: 0.1, value: 1, told: (value) => value.toFixed(1) };
  const heat = (value) => ((temperature = value), show());
  const moveHeat = data.temperature ? machine.slider(body, "temperature", heats, heat) : null;
  const table = add(body, "table", { class: "machine-table machine-rows" });
  const head = add(add(table, "thead"), "tr");
  [data.what, data.score, "weight"].forEach((name, i) => add(head, "th", { scope: "col", ...(i && { colspan: 2 }) }, name));
  const rows = add(table, "tbody");
  const lines = data.names.map((name, i) => {
    const line = add(rows, "tr");
    add(line, "th", { scope: "row" }, name);
    const options = { ...data.range, value: data.scores[i], told, bare: true };
    const move = machine.slider(add(line, "td", { class: "machine-move" }), `${data.score} of ${name}`, options, (value) => {
      scores[i] = value;
      show();
    });
    const score = add(line, "td");
    const bar = add(add(line, "td", { class: "machine-bar" }), "span", { "aria-hidden": true });
    return { move, score, bar, weight: add(line, "td") };
  });
  const tools = add(body, "div", { class: "machine-tools" });
  machine.button(tools, `All ${data.score}s + 1`, () => raise(1));
  machine.button(tools, `All ${data.score}s − 1`, () => raise(-1));
  machine.button(tools, "Start again", () => begin());
  const said = machine.said(body);

  // All scores move together, as far as their sliders go.
  function raise(step) {
    const moved = scores.map((score) => Number((score + step).toFixed(6)));
    if (moved.every((score) => score >= data.range.min && score <= data.range.max)) scores = moved;
    show();
  }

  function begin() {
    scores = [...data.scores];
    temperature = data.temperature ?? 1;
    moveHeat?.(temperature);
    show();
  }

  function show() {
    const weights = weigh(), largest = Math.max(...weights), smallest = Math.min(...weights);
    lines.forEach(({ move, score, bar, weight }, i) => {
      move(scores[i]);
      score.textContent = told(scores[i]);
      bar.style.width = `${100 * weights[i]}%`;
      weight.textContent = weights[i].toFixed(digits);
    });
    const ratio = largest / smallest, best = data.names[weights.indexOf(largest)];
    const times = ratio < 1e5 ? Number(ratio.toPrecision(3)).toLocaleString("en-US") : "over 100,000";
    const answer = data.values ? ` Answer: ${weights.reduce((sum, weight, i) => sum + weight * data.values[i], 0).toFixed(1)}.` : "";
    said.textContent = (ratio < 1.0005 ? "All weights are equal." : `Largest weight: ${best}, ${largest.toFixed(digits)}, which is ${times} times the smallest.`) + answer;
  }
  begin();
});
