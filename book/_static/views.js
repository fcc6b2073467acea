// What BertViz's views leave out: a legend that says what is drawn, numbers on the color boxes, names and keys
// for everything that a mouse can do, and room for all columns. A view may be drawn late, and is drawn anew
// when its menus change, so whatever appears is looked at.
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const WIDTHS = { neuron: 420, expanded: 1004, model: 970 }; // what each needs, in its own units
  const SMALLEST = 0.8; // a view is made smaller by so much, rather than scrolled
  const tell = (element, type, bubbles = true) => element.dispatchEvent(new MouseEvent(type, { bubbles }));
  const all = (place, query) => [...place.querySelectorAll(query)];

  const name = (element, role, label) => {
    element.setAttribute("role", role);
    element.setAttribute("aria-label", label);
  };

  // A path around what has the focus, in the same group, so that it moves with it.
  function frame(item) {
    const box = item.getBBox();
    const ring = document.createElementNS(NS, "path");
    ring.setAttribute("class", "view-focus");
    ring.setAttribute("d", `M${box.x},${box.y} h${box.width} v${box.height} h${-box.width} z`);
    item.parentNode.append(ring);
    return ring;
  }

  // One stop for the Tab key in a group of items; the arrows go from item to item.
  // `step` says how far each arrow goes, `reached` and `left` follow the focus, `press` answers other keys.
  function rove(items, { step, reached = () => {}, left = () => {}, press = () => false }) {
    items.forEach((item, i) => {
      item.setAttribute("tabindex", i === 0 ? 0 : -1);
      let ring = null;
      item.addEventListener("focus", () => {
        if (!item.matches(":focus-visible")) return; // a mouse points and clicks by itself
        items.forEach((other) => other.setAttribute("tabindex", other === item ? 0 : -1));
        ring = frame(item);
        reached(item, i);
      });
      item.addEventListener("blur", () => {
        if (!ring) return;
        ring.remove();
        ring = null;
        left(item, i);
      });
      item.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const to = { Home: 0, End: items.length - 1 }[event.key] ?? i + (step[event.key] || NaN);
        if (items[to]) items[to].focus();
        else if (!(event.key in step) && !press(item, i, event)) return;
        event.preventDefault(); // arrows and the space bar would scroll the page
        event.stopPropagation();
      });
    });
  }
  const across = { ArrowLeft: -1, ArrowRight: 1 };
  const down = { ArrowUp: -1, ArrowDown: 1 };
  const pressed = (event) => event.key === "Enter" || event.key === " ";

  // --- The head view: boxes for the heads, tokens on both sides.

  function headView(svg) {
    const boxes = all(svg, ":scope > g:last-child > rect");
    const lines = (head) => all(svg, `.headAttention[head-index="${head}"] line`);
    const isOn = (head) => lines(head).some((line) => +line.getAttribute("stroke-opacity") > 0);
    const update = () => boxes.forEach((box, i) => box.setAttribute("aria-checked", isOn(i)));
    name(boxes[0].parentNode, "group", "heads");
    boxes.forEach((box, i) => {
      name(box, "checkbox", `head ${i}`);
      const number = document.createElementNS(NS, "text");
      number.setAttribute("class", "view-number");
      number.setAttribute("aria-hidden", true);
      number.setAttribute("x", +box.getAttribute("x") + box.getAttribute("width") / 2);
      number.setAttribute("y", 14);
      number.textContent = i;
      box.parentNode.append(number);
      box.addEventListener("click", update);
      box.addEventListener("dblclick", update);
    });
    rove(boxes, {
      step: across,
      press: (box, i, event) => pressed(event) && (tell(box, event.shiftKey ? "dblclick" : "click"), true),
    });
    update();
    for (const side of ["left", "right"]) {
      const list = svg.querySelector(`#${side}`);
      const tokens = all(list, ":scope > g:last-of-type > g");
      const other = all(svg, `#${side === "left" ? "right" : "left"} text`).map((text) => text.textContent);
      name(list, "group", side === "left" ? "tokens that attend" : "tokens that are attended to");
      tokens.forEach((token) => name(token, "img", token.textContent));
      rove(tokens, {
        step: down,
        reached: (token, i) => {
          tell(token, "mouseover");
          token.setAttribute("aria-label", `${token.querySelector("text").textContent}: ${strongest(i)}`);
        },
        left: () => tell(list, "mouseleave", false),
      });
      // In words what the lines of a token show: the largest weights, as a mean over the heads that are on.
      function strongest(i) {
        const weights = other.map((text, j) => {
          const [from, to] = side === "left" ? [i, j] : [j, i];
          const between = `line[left-token-index="${from}"][right-token-index="${to}"]`;
          const weight = all(svg, between).reduce((sum, line) => sum + +line.getAttribute("stroke-opacity"), 0);
          return { text, weight };
        });
        weights.sort((one, two) => two.weight - one.weight);
        return weights.slice(0, 3).map(({ text, weight }) => `${text} ${weight.toFixed(2)}`).join(", ");
      }
    }
    const shared = boxes.slice(10).map((_, i) => `${i + 10} that of ${i}`);
    return `A line joins a token that attends, on the left, with one that is attended to. All lines are equally
      wide; the more opaque one is, the larger the weight. With several heads on, each weight is divided by their
      number. The boxes are the heads of the layer; faint ones are off.
      ${shared.length ? `There are ten colors: head ${shared.join(", ").replace(" that", " has that")}.` : ""}
      <span class="view-keys">Keys: Tab goes from group to group, arrows move within one, Enter switches a head
      on or off, Shift and Enter leave it alone.</span>`;
  }

  // --- The model view: a small picture of each head, and a large one of the head that was chosen.

  function modelView(svg) {
    const pictures = all(svg, ":scope > g:has(> .attn_background)");
    const [, rows] = all(svg, "[id^='attn_background_']").at(-1).id.match(/_(\d+)_\d+$/);
    const heads = pictures.length / (+rows + 1);
    const open = (picture) => picture.querySelector(".attn_background").getAttribute("stroke-opacity") !== "0";
    const update = () => pictures.forEach((picture) => picture.setAttribute("aria-expanded", open(picture)));
    const labels = all(svg, ":scope > text:not(.detail)").map((text) => text.textContent);
    const layerNames = labels.slice(-(+rows + 1)), headNames = labels.slice(1, heads + 1);
    pictures.forEach((picture, i) => {
      name(picture, "button", `layer ${layerNames[Math.floor(i / heads)]}, head ${headNames[i % heads]}`);
      picture.addEventListener("click", update);
    });
    const click = (picture) => tell(picture.querySelector(":scope > rect:last-of-type"), "click");
    rove(pictures, {
      step: { ...across, ArrowUp: -heads, ArrowDown: heads },
      press: (picture, i, event) => {
        if (!pressed(event) && !(event.key === "Escape" && open(picture))) return false;
        click(picture);
        return true;
      },
    });
    update();
    return `Each row is a layer, each column a head; the color is the layer's. A line joins a token that attends, on
      the left, with one that is attended to; the more opaque it is, the larger the weight.
      <span class="view-keys">Keys: arrows go from picture to picture, Enter enlarges one, and Tab then leads to
      its tokens.</span>`;
  }

  // The tokens of a large picture, which appears when a small one is chosen. It comes into view where the whole has
  // no room.
  function detail(group) {
    const root = group.closest('[id^="bertviz-"]');
    const frame = group.parentNode.querySelector("rect.detail").getBoundingClientRect();
    const place = root.getBoundingClientRect();
    const beyond = Math.max(0, frame.right + 8 - place.right) + Math.min(0, frame.left - 8 - place.left);
    if (beyond) root.scrollBy({ left: beyond, behavior: "instant" });
    const tokens = all(group, ":scope > g");
    const attends = group === group.parentNode.querySelector("g.detail:has(text.token)");
    name(group, "group", attends ? "tokens that attend" : "tokens that are attended to");
    if (!attends) return;
    tokens.forEach((token) => name(token, "img", token.textContent));
    rove(tokens, {
      step: down,
      reached: (token) => tell(token, "mouseover"),
      left: (token) => tell(token, "mouseleave", false),
    });
  }

  // --- The neuron view: tokens, and for one of them its query, all keys, and their products.

  function neuronView(svg) {
    const sides = {};
    for (const form of ["collapsed", "expanded"]) {
      const list = svg.querySelector(`#${form} #leftText`);
      const tokens = (sides[form] = all(list, ":scope > g"));
      const other = form === "collapsed" ? "expanded" : "collapsed";
      name(list, "group", "tokens that attend");
      tokens.forEach((token) => {
        name(token, "button", token.textContent);
        token.setAttribute("aria-expanded", form === "expanded");
      });
      rove(tokens, {
        step: down,
        reached: (token) => tell(token, "mouseover"),
        left: (token) => tell(token, "mouseleave", false),
        press: (token, i, event) => {
          if (!pressed(event) && !(event.key === "Escape" && form === "expanded")) return false;
          tell(token.querySelector("rect:not(.highlight)"), "click");
          sides[other][i].focus();
          return true;
        },
      });
    }
    return `The more opaque a line, the larger the weight. The plus sign beside a token opens the columns: its query,
      all keys, and their products, a stripe for each dimension; then the sum of each row, divided by the square
      root of the number of dimensions; last the weight, as the shade behind a token. Blue is positive, orange
      negative; the stronger the color, the larger the number.
      <span class="view-keys">Keys: arrows go from token to token, Enter opens the columns and closes
      them.</span>`;
  }

  // --- Every view: a legend, and as much room as it needs.

  const KINDS = [
    ["neuron", "#collapsed", neuronView],
    ["head", ":scope > #left", headView],
    ["model", ".attn_background", modelView],
  ];

  const hints = new WeakMap();

  function prepare(svg) {
    const root = svg.closest('[id^="bertviz-"]');
    const [kind, , make] = KINDS.find(([, sign]) => svg.querySelector(sign)) || [];
    if (!kind) return;
    svg.dataset.view = kind;
    const legend = make(svg);
    if (!root.dataset.view) {
      root.dataset.view = kind;
      const hint = document.createElement("p");
      Object.assign(hint, { className: "view-hint off", textContent: "Scroll sideways to see all of it." });
      root.before(hint);
      hints.set(root, hint);
      root.insertAdjacentHTML("afterend", `<p class="view-legend">${legend}</p>`);
      root.addEventListener("scroll", () => mark(root), { passive: true });
      new ResizeObserver(() => fit(root)).observe(root);
    }
    fit(root);
  }

  function fit(root) {
    const svg = root.querySelector("#vis svg"), vis = root.querySelector("#vis");
    if (!svg || printing) return;
    const isOpen = svg.querySelector("#expanded")?.getAttribute("visibility") === "visible";
    const wanted = WIDTHS[isOpen ? "expanded" : root.dataset.view] || headWidth(svg);
    vis.style.minHeight = ""; // the build has kept this place free
    // The neuron view has one scale, open or not: a row that moved under a finger would be another token.
    const room = (width) => Math.min(1, vis.clientWidth / width);
    const isNeuron = root.dataset.view === "neuron";
    const scale = isNeuron && room(WIDTHS.expanded) < SMALLEST ? room(WIDTHS.neuron) : room(isNeuron ? WIDTHS.expanded : wanted);
    const height = parseFloat(svg.getAttribute("height"));
    if (scale < 1 && scale >= SMALLEST) {
      svg.setAttribute("viewBox", `0 0 ${wanted} ${height}`);
      Object.assign(svg.style, { width: `${wanted * scale}px`, height: `${height * scale}px`, minWidth: "" });
    } else {
      free(svg);
      svg.style.minWidth = `${wanted}px`;
    }
    mark(root);
  }

  // The head view takes as much room as there was when it was drawn.
  function headWidth(svg) {
    const right = svg.querySelector("#right .background");
    return +right.getAttribute("x") + +right.getAttribute("width") + 5;
  }

  function free(svg) {
    svg.removeAttribute("viewBox");
    Object.assign(svg.style, { width: "", height: "", minWidth: "" });
  }

  // Paper has its own way to make views fit, which begins with what BertViz draws.
  let printing = false;
  function paper(begins) {
    if (begins === printing) return;
    printing = begins;
    if (begins) all(document, "svg[data-view]").forEach(free);
    else setTimeout(() => all(document, '[id^="bertviz-"][data-view]').forEach(fit));
  }
  addEventListener("beforeprint", () => paper(true), { capture: true });
  addEventListener("afterprint", () => paper(false));
  matchMedia("print").addEventListener("change", (print) => paper(print.matches));

  function mark(root) {
    const hidden = root.scrollWidth - root.clientWidth;
    hints.get(root).classList.toggle("off", hidden <= 1); // its room stays, so that nothing moves under a finger
    root.classList.toggle("goes-on", root.scrollLeft < hidden - 1);
  }

  const look = () => {
    all(document, '[id^="bertviz-"] svg:not([data-view])').forEach(prepare);
    all(document, '[id^="bertviz-"] g.detail:has(text.token):not([role])').forEach(detail);
  };
  document.addEventListener("DOMContentLoaded", () => {
    look();
    new MutationObserver((changes) => {
      if (changes.some((change) => change.type === "childList")) look();
      const columns = changes.filter((change) => change.target.id === "expanded" && change.type === "attributes");
      columns.forEach((change) => fit(change.target.closest('[id^="bertviz-"]')));
    }).observe(document.querySelector("main"), { childList: true, subtree: true, attributeFilter: ["visibility"] });
  });
})();
