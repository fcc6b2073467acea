// Paper: before a page is printed, the folds that ask for it open, every view is drawn and fits the page, and the
// ink is that of light pages. Afterwards all is as it was. Browsers tell it by two events, some by one of them.
(function () {
  const MOST_LINES = 14; // of code that is kept on one page: of a longer cell, some lines fill the page before
  const MOST_LETTERS = 3000; // of a cell that is kept on one page
  const PAPER = 660; // CSS pixels: the width of the text on A4, the narrower of the two common kinds
  let undo = null; // what puts things back, while the page is ready for paper

  function prepare() {
    if (undo) return;
    undo = [];
    const put = (element, name, value) =>
      value === null ? element.removeAttribute(name) : element.setAttribute(name, value);
    const set = (element, name, value) => {
      const former = element.getAttribute(name);
      undo.push(() => put(element, name, former));
      put(element, name, value);
    };
    const root = document.documentElement;
    if (root.dataset.theme) set(root, "data-theme", "light");
    document.querySelectorAll("article .tag_print-open > details:not([open])").forEach((fold) => set(fold, "open", ""));
    const keep = (box) => {
      box.classList.add("printed-whole");
      undo.push(() => box.classList.remove("printed-whole"));
    };
    document.querySelectorAll("article .highlight").forEach((code) => {
      if (lines(code) <= MOST_LINES) keep(code.closest(".cell_input, .output") ?? code);
    });
    // What a cell shows stays with its code, or with the title of its fold.
    document.querySelectorAll("article div.cell:has(> .cell_output)").forEach((cell) => {
      const code = cell.querySelector(":scope > .cell_input"), shown = [...cell.querySelectorAll(".cell_output pre, .cell_output tr")];
      if (cell.textContent.length > MOST_LETTERS) return;
      if ((code ? lines(code) : 1) + shown.reduce((sum, part) => sum + lines(part), 0) <= MOST_LINES) keep(cell);
    });
    document.querySelectorAll("article :is(td, th)").forEach((cell) => {
      if (!/\S{30}/.test(cell.textContent)) return; // a word that may be wider than its column
      cell.classList.add("printed-broken");
      undo.push(() => cell.classList.remove("printed-broken"));
    });
    window.dispatchEvent(new Event("book:draw-all")); // views that wait until they are looked at
    const views = [...document.querySelectorAll('[id^="bertviz-"] svg')];
    views.forEach((svg) => set(svg, "viewBox", null)); // another script's, for the width of the window
    for (const [svg, { width, height }] of views.map((svg) => [svg, drawn(svg)])) {
      const size = `--drawn-width: ${width}px; --drawn-height: ${height}px; --drawn-zoom: ${Math.min(1, PAPER / width)}`;
      if (width) set(svg.parentElement, "style", `${svg.parentElement.getAttribute("style") ?? ""}; ${size}`);
      if (!svg.hasAttribute("aria-label")) {
        set(svg, "role", "img");
        set(svg, "aria-label", described(svg.closest('[id^="bertviz-"]')));
      }
    }
  }

  // How long code or printed text is; a row of a table is a line.
  function lines(box) {
    const text = box.localName === "tr" ? "" : (box.querySelector("pre") ?? box).textContent; // without its button
    return text.trimEnd().split("\n").length;
  }

  // A view in words: its settings, and the tokens that its lines join or the pictures that it is made of.
  function described(view) {
    const settings = [...view.querySelectorAll("select")].map((menu) =>
      `${menu.getAttribute("aria-label") ?? menu.id} ${menu.selectedOptions[0]?.textContent.trim()}`);
    const side = (names) => [...view.querySelectorAll(names)].map((token) => token.textContent.trim()).join(" ");
    const [left, right] = [side("#left text, #collapsed #leftText text"), side("#right text, #collapsed #rightText text")];
    const pictures = view.querySelectorAll(".attn_background").length;
    return `Attention view${["", ...settings].join(", ")}.` +
      (left ? ` Lines lead from "${left}" to "${right}", the stronger the larger the weight.` : "") +
      (pictures ? ` ${pictures} small pictures: a row for each layer, a column for each head.` : "");
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

  window.addEventListener("beforeprint", prepare);
  window.addEventListener("afterprint", restore);
  matchMedia("print").addEventListener("change", (paper) => (paper.matches ? prepare() : restore()));
})();
