// Paper: before a page is printed, what is folded opens, every view is drawn and fits the page, and the ink is
// that of light pages. Afterwards all is as it was. Browsers tell it by two events, some by one of them.
(function () {
  const MOST_LINES = 30; // of code that is kept on one page
  let undo = null; // what puts things back, while the page is ready for paper

  function prepare() {
    if (undo) return;
    undo = [];
    const set = (element, name, value) => {
      const former = element.getAttribute(name);
      undo.push(() => (former === null ? element.removeAttribute(name) : element.setAttribute(name, former)));
      element.setAttribute(name, value);
    };
    const root = document.documentElement;
    if (root.dataset.theme) set(root, "data-theme", "light");
    document.querySelectorAll("article details").forEach((folded) => {
      const summary = folded.querySelector("summary");
      const name = (summary?.querySelector(".collapsed") ?? summary)?.textContent.trim() ?? "";
      if (summary) set(summary, "data-printed", capitalized(name.replace(/^show /i, "")));
      if (!folded.open) set(folded, "open", "");
    });
    document.querySelectorAll("article .highlight").forEach((code) => {
      if (code.textContent.split("\n").length > MOST_LINES) return;
      const box = code.closest(".cell_input, .output") ?? code;
      box.classList.add("printed-whole");
      undo.push(() => box.classList.remove("printed-whole"));
    });
    window.dispatchEvent(new Event("book:draw-all")); // views that wait until they are looked at
    const views = [...document.querySelectorAll('[id^="bertviz-"] svg:not([viewBox])')];
    for (const [svg, { width, height }] of views.map((svg) => [svg, drawn(svg)])) {
      if (!width || !height) continue;
      set(svg, "viewBox", `0 0 ${width} ${height}`);
      if (!svg.hasAttribute("aria-label")) {
        set(svg, "role", "img");
        set(svg, "aria-label", described(svg.closest('[id^="bertviz-"]')));
      }
      set(svg, "style", `${svg.getAttribute("style") ?? ""}; --drawn-width: ${width}px`);
    }
  }

  // A view in words: its settings and the tokens that its lines join.
  function described(view) {
    const settings = [...view.querySelectorAll("select")].map((menu) =>
      `${menu.getAttribute("aria-label") ?? menu.id} ${menu.selectedOptions[0]?.textContent.trim()}`);
    const sides = ["left", "right"].map((side) =>
      [...view.querySelectorAll(`#${side} text`)].map((token) => token.textContent.trim()).join(" "));
    const joined = sides[0] && `Lines lead from "${sides[0]}" to "${sides[1]}", the stronger the larger the weight.`;
    return [`Attention view${settings.length ? `, ${settings.join(", ")}` : ""}.`, joined].filter(Boolean).join(" ");
  }

  // How wide and high a view is. The head and the neuron view say 100 %: then as far as one can see something.
  function drawn(svg) {
    const [width, height] = ["width", "height"].map((name) => svg.getAttribute(name) ?? "100%");
    if (!width.endsWith("%")) return { width: parseFloat(width), height: parseFloat(height) };
    const from = svg.getBoundingClientRect();
    const boxes = [...svg.querySelectorAll("line, path, rect, text")]
      .filter((element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
      .map((element) => element.getBoundingClientRect());
    const most = (side, start) => Math.ceil(Math.max(0, ...boxes.map((box) => box[side] - start)));
    return { width: most("right", from.left), height: most("bottom", from.top) };
  }

  function restore() {
    undo?.reverse().forEach((step) => step());
    undo = null;
  }

  const capitalized = (text) => text.charAt(0).toUpperCase() + text.slice(1);

  window.addEventListener("beforeprint", prepare);
  window.addEventListener("afterprint", restore);
  matchMedia("print").addEventListener("change", (paper) => (paper.matches ? prepare() : restore()));
})();
