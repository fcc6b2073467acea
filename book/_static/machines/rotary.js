// Rotary positions: a query's and a key's arrow turn with their positions; the product knows only the distance.
machine.start("rotary", "Rotary positions: move the query and the key", (body, data) => {
  const { add, set } = machine;
  const { width, base } = data, RADIUS = 40, DURATION = 2500; // milliseconds of a walk
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let query = data.query, key = data.key, walk = 0;

  // The machine itself: pair i of a vector of ones turns by its frequency times the position ----------------------

  const frequencies = Array.from({ length: width / 2 }, (_, i) => base ** ((-2 * i) / width));

  // Of each pair the share of the product, and their sum over the width.
  function product() {
    const rotate = (position) => frequencies.map((frequency) => {
      const [cosine, sine] = [Math.cos(frequency * position), Math.sin(frequency * position)];
      return [cosine - sine, sine + cosine]; // (1, 1), turned
    });
    const turned = rotate(key);
    const shares = rotate(query).map(([x, y], i) => x * turned[i][0] + y * turned[i][1]);
    return { shares, score: shares.reduce((sum, share) => sum + share, 0) / width };
  }

  // What is on the page ------------------------------------------------------------------------------------------

  const dials = add(body, "div", { class: "machine-dials" });
  const hands = frequencies.map((frequency, i) => {
    const box = add(dials, "div", { class: "machine-dial" });
    const dial = add(box, "svg", { viewBox: "-46 -46 92 92", "aria-hidden": true });
    add(dial, "circle", { class: "rim", r: RADIUS });
    const wedge = add(dial, "path", { class: "wedge" });
    const keyHand = add(dial, "path", { class: "key", d: `M0 0H${RADIUS - 3}` });
    const queryHand = add(dial, "path", { class: "query", d: `M0 0H${RADIUS - 12}m-7-5l7 5-7 5` });
    add(box, "span", {}, `pair ${i}`);
    return { wedge, keyHand, queryHand, share: add(box, "b") };
  });
  machine.legend(body, [["blue", "→", "query"], ["orange", "━", "key"], ["green", "◢", "their angle; its cosine is below"]]);
  const sliders = add(body, "div", { class: "machine-sliders" });
  const positions = { min: 0, max: data.last, step: 1 };
  const moveQuery = machine.slider(sliders, "position of the query", { ...positions, value: query }, (value) => put(value, key));
  const moveKey = machine.slider(sliders, "position of the key", { ...positions, value: key }, (value) => put(query, value));
  const tools = add(body, "div", { class: "machine-tools" });
  machine.button(tools, `Move both by ${data.by}`, () => walkTo(data.by));
  machine.button(tools, `Move both by −${data.by}`, () => walkTo(-data.by));
  machine.button(tools, "Start again", () => put(data.query, data.key));
  const said = machine.said(body);

  function put(newQuery, newKey) {
    cancelAnimationFrame(walk);
    [query, key] = [newQuery, newKey];
    moveQuery(query);
    moveKey(key);
    show();
    tell();
  }

  // Both walk together, as far as there are positions; for readers who want no motion they jump.
  function walkTo(by) {
    by = Math.max(-Math.min(query, key), Math.min(by, data.last - Math.max(query, key)));
    const [fromQuery, fromKey] = [query, key], began = performance.now();
    const step = (now) => {
      const gone = Math.min(1, (now - began) / DURATION) * by;
      if (still.matches || Math.abs(gone) >= Math.abs(by)) return put(fromQuery + by, fromKey + by);
      [query, key] = [fromQuery + gone, fromKey + gone];
      show();
      walk = requestAnimationFrame(step);
    };
    cancelAnimationFrame(walk);
    step(began);
  }

  function show() {
    const { shares } = product();
    hands.forEach(({ wedge, keyHand, queryHand, share }, i) => {
      const [to, from] = [query, key].map((position) => frequencies[i] * position);
      const turn = (angle) => `rotate(${(-angle * 180) / Math.PI})`; // counterclockwise, as angles are counted
      set(queryHand, { transform: turn(to) });
      set(keyHand, { transform: turn(from) });
      wedge.setAttribute("d", slice(from, to));
      share.textContent = (shares[i] / 2).toFixed(2).replace("-", "−");
    });
  }

  // The angle between the hands, the shorter way.
  function slice(from, to) {
    const angle = Math.atan2(Math.sin(to - from), Math.cos(to - from)), radius = 22;
    const point = (at) => `${radius * Math.cos(at)} ${-radius * Math.sin(at)}`;
    return `M0 0L${point(from)}A${radius} ${radius} 0 0 ${angle > 0 ? 0 : 1} ${point(from + angle)}z`;
  }

  function tell() {
    const { score } = product();
    said.textContent = `Query at ${query}, key at ${key}: distance ${query - key}. The mean of the cosines, q · k / ${width}: ${score.toFixed(2).replace("-", "−")}.`;
  }
  put(query, key);
});
