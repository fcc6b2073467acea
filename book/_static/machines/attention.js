// Attention as a weighted average: a query is dragged among keys in the plane; weights and output follow.
machine.start("attention", "Attention: move the query", (body, data) => {
  const { add, set } = machine;
  const UNIT = 64, STEP = 0.1; // pixels of one unit; how finely the query moves
  const [left, right, bottom, top] = data.range;
  const toX = (value) => (value - left) * UNIT, toY = (value) => (top - value) * UNIT;
  const values = data.values ?? data.keys, dimensions = data.dimensions ?? data.axes;
  const width = data.query.length, largest = Math.max(...values.flat());
  let query = data.query, divided = true;

  // The machine itself: scores, softmax, weighted average -----------------------------------------------------

  const dot = (one, other) => one.reduce((sum, number, i) => sum + number * other[i], 0);

  function attend() {
    const scores = data.keys.map((key) => dot(query, key) / (divided ? Math.sqrt(width) : 1));
    const weights = machine.softmax(scores);
    const output = dimensions.map((_, i) => dot(weights, values.map((value) => value[i])));
    return { scores, weights, output };
  }

  // The plane -------------------------------------------------------------------------------------------------

  const sides = add(body, "div", { class: "machine-sides" });
  const size = [(right - left) * UNIT, (top - bottom) * UNIT];
  const plane = add(sides, "svg", { class: "machine-plane", viewBox: `0 0 ${size.join(" ")}`, role: "group", "aria-label": "plane" });
  for (let x = Math.ceil(left); x <= right; x++) add(plane, "path", { class: x ? "grid" : "axis", d: `M${toX(x)} 0V${size[1]}` });
  for (let y = Math.ceil(bottom); y <= top; y++) add(plane, "path", { class: y ? "grid" : "axis", d: `M0 ${toY(y)}H${size[0]}` });
  add(plane, "text", { x: size[0] - 6, y: toY(0) + 44, "text-anchor": "end", class: "faint" }, `${data.axes[0]} →`);
  add(plane, "text", { x: toX(0) + 8, y: 16, class: "faint" }, `↑ ${data.axes[1]}`);
  if (!data.values) add(plane, "path", { class: "between", d: `M${data.keys.map(([x, y]) => `${toX(x)} ${toY(y)}`).join("L")}z` });
  const arrow = add(plane, "path", { class: "query" });
  const lines = data.keys.map(() => add(plane, "path", { class: "line" }));
  const dots = data.keys.map(([x, y]) => add(plane, "circle", { class: "key", cx: toX(x), cy: toY(y) }));
  data.keys.forEach(([x, y], i) => {
    const [dx, dy, anchor] = data.labels[i];
    add(plane, "text", { x: toX(x) + dx, y: toY(y) + dy, "text-anchor": anchor }, data.words[i]);
  });
  const mean = data.values ? null : add(plane, "path", { class: "output", d: "M0-8L8 0 0 8-8 0z" });
  const handle = add(plane, "g", { class: "handle", tabindex: 0, role: "slider", "aria-label": "query", "aria-valuemin": left, "aria-valuemax": right });
  add(handle, "circle", { r: 24, class: "reach" });
  add(handle, "circle", { r: 11, class: "ring" });

  const beside = add(sides, "div");
  machine.legend(beside, [["orange", "◯", "query"], ["blue", "●", "key, larger with its weight"], ...(mean ? [["green", "◆", "output"]] : [])]);

  // The numbers ------------------------------------------------------------------------------------------------

  const table = add(beside, "table", { class: "machine-table" });
  const row = (parent, name) => {
    const line = add(parent, "tr");
    add(line, "th", { scope: "row" }, name);
    const score = add(line, "td"), number = add(line, "td");
    const bar = add(add(line, "td", { class: "machine-bar" }), "span", { "aria-hidden": true });
    return (first, second, share) => {
      [score.textContent, number.textContent] = [first, second];
      bar.style.width = `${100 * share}%`;
    };
  };
  const head = (names) => {
    const line = add(add(table, "thead"), "tr");
    names.forEach((name) => add(line, name ? "th" : "td", name ? { scope: "col" } : {}, name));
    return add(table, "tbody");
  };
  const keyRows = head(["key", "score", "weight", ""]), tellKey = data.words.map((word) => row(keyRows, word));
  const outputRows = head(["output", "", "", ""]), tellOutput = dimensions.map((name) => row(outputRows, name));
  outputRows.className = "output";

  // What can be moved ------------------------------------------------------------------------------------------

  const tools = add(body, "div", { class: "machine-tools" });
  add(tools, "span", {}, "query of");
  Object.entries(data.queries).forEach(([word, place]) => machine.button(tools, word, () => move(place)));
  const label = add(tools, "label", { class: "machine-check" });
  const box = add(label, "input", { type: "checkbox" });
  box.checked = true;
  label.append(` divide by √${width}`);
  box.addEventListener("change", () => ((divided = box.checked), show()));
  const said = machine.said(body);

  function move([x, y]) {
    const within = (value, low, high) => Number(Math.min(high, Math.max(low, Math.round(value / STEP) * STEP)).toFixed(1));
    query = [within(x, left, right), within(y, bottom, top)];
    show();
  }
  function moveTo(event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(plane.getScreenCTM().inverse());
    move([left + point.x / UNIT, top - point.y / UNIT]);
  }
  handle.addEventListener("pointerdown", (event) => handle.setPointerCapture(event.pointerId));
  handle.addEventListener("pointermove", (event) => handle.hasPointerCapture(event.pointerId) && moveTo(event));
  handle.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false }); // else the page scrolls
  plane.addEventListener("click", moveTo);
  const STEPS = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] };
  handle.addEventListener("keydown", (event) => {
    if (event.key === "Home") move(data.query);
    else if (STEPS[event.key]) move(query.map((value, i) => value + STEPS[event.key][i] * (event.shiftKey ? 10 : 1)));
    else return;
    event.preventDefault();
  });

  function show() {
    const { scores, weights, output } = attend(), [x, y] = [toX(query[0]), toY(query[1])];
    arrow.setAttribute("d", `M${toX(0)} ${toY(0)}L${x} ${y}`);
    data.keys.forEach((key, i) => {
      set(lines[i], { d: `M${toX(key[0])} ${toY(key[1])}L${x} ${y}`, "stroke-width": 9 * weights[i] });
      dots[i].setAttribute("r", 3 + 11 * Math.sqrt(weights[i]));
      tellKey[i](scores[i].toFixed(2), weights[i].toFixed(2), weights[i]);
    });
    output.forEach((number, i) => tellOutput[i]("", number.toFixed(2), number / largest));
    mean?.setAttribute("transform", `translate(${toX(output[0])} ${toY(output[1])})`);
    const place = `${data.axes[0]} ${query[0].toFixed(1)}, ${data.axes[1]} ${query[1].toFixed(1)}`;
    set(handle, { transform: `translate(${x} ${y})`, "aria-valuenow": query[0], "aria-valuetext": place });
    said.textContent = `Query (${query.map((number) => number.toFixed(1)).join(", ")}), length ${Math.hypot(...query).toFixed(2)}. Weights: ` +
      `${data.words.map((word, i) => `${word} ${weights[i].toFixed(2)}`).join(", ")}.`;
  }
  show();
});
