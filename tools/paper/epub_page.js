// A page of the site as EPUB shows it: the article as well-formed XHTML, with formulas as MathML, folds open or as
// titles, drawings as drawn, and without all that needs a script. The page was made ready as for printing before.
({ kept, own, files, root }) => {
  const XHTML = "http://www.w3.org/1999/xhtml", MATHML = "http://www.w3.org/1998/Math/MathML";
  const LEFT_OUT = `script, style, link, template, noscript, button:not(.front-chip *), input, label.dt-search, .dt-search, .headerlink,
    .copybtn, .only-dark, .diagram-tools, .toggle-button, .exercise-link, .view-hint, .view-keys, .front-field, .set-up,
    .quiz-live, .machine-body, .model-view,
    [hidden]:not(.front-still)`;
  const KEPT = new Set(`a abbr aside b blockquote br caption code col colgroup dd del dfn div dl dt em figcaption figure
    h1 h2 h3 h4 h5 h6 hr i img kbd li mark ol p pre q s samp section small span strong sub sup table tbody td tfoot th
    thead tr u ul var`.split(/\s+/));
  const STYLED = 'svg:has([fill^="var("])'; // a drawing whose colors are variables, which few readers of books know
  const PAINT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-weight", "text-anchor", "opacity"];
  const WIDE = 7; // columns from which on a table needs small letters
  const ATTRIBUTES = new Set(["id", "class", "title", "lang", "colspan", "rowspan", "scope", "start", "value"]);
  const result = document.implementation.createDocument(XHTML, "div");
  const images = {}; // of the book -> where they lie
  const ids = new Set();

  function add(parent, name, text = "", namespace = XHTML) {
    const element = result.createElementNS(namespace, name);
    if (text) element.textContent = text;
    parent.append(element);
    return element;
  }

  function copyAll(nodes, parent) {
    for (const node of nodes) copy(node, parent);
  }

  function copy(node, parent) {
    if (node.nodeType === Node.TEXT_NODE) parent.append(result.createTextNode(clean(node.data)));
    if (node.nodeType !== Node.ELEMENT_NODE) return;
    const name = node.localName;
    const number = files.findIndex((file) => node.matches(file.selector));
    if (number >= 0) return picture(parent, files[number].name, files[number].alt);
    if (node.matches(LEFT_OUT)) return;
    if (name === "mjx-container") return formula(node, parent);
    if (name === "svg") return drawing(node, parent);
    if (name === "details") return fold(node, parent);
    if (name === "img") return image(node, parent);
    if (name === "a") return link(node, parent);
    if (!KEPT.has(name)) return copyAll(node.childNodes, parent);
    const element = add(parent, name.replace(/^h[2-6]$/, (h) => (root === "article" ? h : `h${h[1] - 1}`)));
    describe(node, element);
    if (name === "table" && node.rows[0]?.cells.length >= WIDE) element.classList.add("wide");
    copyAll(node.childNodes, element);
  }

  // XML has no place for some characters that a page may show.
  const clean = (text) => text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");

  function describe(node, element) {
    for (const { name, value } of node.attributes) {
      if (!ATTRIBUTES.has(name) || !value.trim()) continue;
      if (name === "id" && (ids.has(value) || /\s/.test(value))) continue;
      if (name === "id") ids.add(value);
      element.setAttribute(name, clean(value));
    }
    const style = node.getAttribute("style") ?? ""; // of chips and the like; tables were sized for this window
    if (style && !/--|var\(/.test(style) && !node.closest("table")) element.setAttribute("style", style);
  }

  function formula(node, parent) {
    const math = result.importNode(node.querySelector("mjx-assistive-mml > math"), true);
    for (const element of [math, ...math.querySelectorAll("*")]) {
      for (const { name } of [...element.attributes]) {
        if (/^data-|^class$|^style$/.test(name)) element.removeAttribute(name);
      }
    }
    math.setAttribute("alttext", (node.dataset.tex ?? math.textContent).replace(/\s+/g, " ").trim());
    parent.append(math);
  }

  function drawing(node, parent) {
    const svg = result.importNode(node, true);
    const all = (drawn) => [drawn, ...drawn.querySelectorAll("*")];
    if (node.matches(STYLED)) {
      all(svg).forEach((element, i) => element.setAttribute("style", styled(element, paint(all(node)[i]))));
      svg.setAttribute("style", styled(svg, "background: #ffffff")); // also where pages are dark: the ink is not
    }
    svg.querySelectorAll("script, foreignObject").forEach((element) => element.remove());
    for (const element of all(svg)) {
      for (const { name, value } of [...element.attributes]) {
        const unfit = /^(id|class|tabindex|aria-labelledby|aria-describedby|data-.*|on.*)$/.test(name);
        if (unfit || value.startsWith("var(")) element.removeAttribute(name);
      }
    }
    for (const anchor of svg.querySelectorAll("a")) {
      const target = leadsTo(anchor);
      if (target) anchor.setAttribute("href", target);
      else {
        const group = result.createElementNS(svg.namespaceURI, "g"); // it keeps the place of what is in the link
        if (anchor.hasAttribute("transform")) group.setAttribute("transform", anchor.getAttribute("transform"));
        if (anchor.hasAttribute("style")) group.setAttribute("style", anchor.getAttribute("style"));
        group.append(...anchor.childNodes);
        anchor.replaceWith(group);
      }
    }
    parent.append(svg);
  }

  const styled = (element, style) => [element.getAttribute("style"), style].filter(Boolean).join("; ");
  const paint = (element) => {
    const style = getComputedStyle(element);
    const values = PAINT.map((name) => [name, style.getPropertyValue(name).replace("rgba(0, 0, 0, 0)", "none")]);
    return values.map(([name, value]) => `${name}: ${value}`).join("; ");
  };

  // As on paper: a closed fold is its title, and the words with which the style sheet for print goes on.
  function fold(node, parent) {
    const box = add(parent, "div");
    box.setAttribute("class", "fold");
    const summary = node.querySelector(":scope > summary");
    const title = add(box, "p");
    title.setAttribute("class", "fold-title");
    add(title, "b", summary.textContent.trim());
    if (node.open) copyAll([...node.childNodes].filter((child) => child !== summary), box);
    else title.append(JSON.parse(getComputedStyle(summary, "::after").content));
  }

  function picture(parent, file, alt) {
    const image = add(parent, "img");
    image.setAttribute("src", `images/${file}`);
    image.setAttribute("alt", alt);
    return image;
  }

  function image(node, parent) {
    const file = decodeURIComponent(new URL(node.src).pathname.split("/").pop());
    images[file] = node.src;
    describe(node, picture(parent, file, clean(node.alt)));
  }

  // Inside the book a link leads to another of its files, elsewhere over the network; else it is plain text.
  function leadsTo(node) { // in a drawing `node.href` is no text
    const { href } = new URL(node.getAttribute("href") ?? "", document.baseURI);
    const [address, anchor] = href.split("#");
    const inside = address === own ? "" : kept[address];
    return inside === undefined ? (/^https?:/.test(href) ? href : "") : inside + (anchor ? `#${anchor}` : "");
  }

  function link(node, parent) {
    const target = leadsTo(node);
    if (!target || parent.closest?.("a")) {
      const plain = node.id && !ids.has(node.id) ? add(parent, "span") : parent;
      if (plain !== parent) describe(node, plain);
      return copyAll(node.childNodes, plain);
    }
    const element = add(parent, "a");
    describe(node, element);
    element.setAttribute("href", target);
    copyAll(node.childNodes, element);
  }

  copyAll(document.querySelector(root).childNodes, result.documentElement);
  const body = [...result.documentElement.childNodes].map((node) => new XMLSerializer().serializeToString(node)).join("");
  const heading = (element) => ({
    level: Number(element.localName[1]),
    id: element.closest("[id]")?.id ?? "",
    title: element.textContent.replace(/\s+/g, " ").trim(),
  });
  return {
    body,
    images,
    headings: [...result.querySelectorAll("h1, h2, h3")].map(heading),
    math: result.getElementsByTagNameNS(MATHML, "math").length > 0,
    svg: result.querySelector("svg") !== null,
  };
}
