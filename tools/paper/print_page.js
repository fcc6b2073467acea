// Make a page of the site ready to be a part of the PDF; gives its headings. What is common to all printing is in print.js.
({ kept, number, prefix }) => {
  document.documentElement.classList.add("whole-book");
  document.getElementById("what-there-is-to-read")?.remove(); // the book has a table of contents
  // Links to what the book leaves out are plain text.
  for (const link of document.querySelectorAll("article a[href]")) {
    const url = new URL(link.getAttribute("href"), document.baseURI); // in a drawing `link.href` is no text
    if (url.protocol === "file:" && !kept.includes(url.href.split("#")[0])) link.replaceWith(...link.childNodes);
  }
  // Marks around each cell with a figure say where it went, with the headings above it, and what stands before these.
  const mark = (name) => Object.assign(document.createElement("i"), { id: name, className: "print-mark" });
  const former = (node) => {
    if (node.previousElementSibling) return node.previousElementSibling;
    return node.parentElement.matches("section") ? former(node.parentElement) : null;
  };
  const last = (node) => (node?.matches("section, ul, ol, li") && node.lastElementChild ? last(node.lastElementChild) : node);
  const cells = new Set();
  for (const figure of document.querySelectorAll("article .cell_output :is(.drawing, figure.diagram)")) {
    const cell = figure.closest("div.cell");
    if (cells.has(cell) || figure.closest("details:not([open])")) continue;
    let first = cell, before = last(former(cell));
    while (before?.matches("h1, h2, h3, h4")) [first, before] = [before, last(former(before))];
    if (!before?.matches("p, div")) continue;
    cells.add(cell);
    const number = cells.size;
    figure.dataset.figure = number;
    before.append(mark(`before-${number}`));
    first.prepend(mark(`cell-${number}`));
    cell.querySelector(":scope > :is(.cell_input, details)")?.append(mark(`code-${number}`));
    figure.prepend(mark(`figure-${number}`));
    cell.append(mark(`after-${number}`));
  }
  // A PDF has a place to go to for what its own page links to: so link to everything that has a name.
  const everything = document.createElement("div");
  everything.hidden = true;
  for (const { id } of document.querySelectorAll("article [id]:not(svg *)")) {
    const link = document.createElement("a");
    link.href = "#" + encodeURIComponent(id);
    everything.append(link);
  }
  document.body.append(everything);
  const headings = [...document.querySelectorAll("article :is(h1, h2, h3, h4, h5, h6)")];
  const titles = headings.map((heading) =>
    [...heading.childNodes].filter((node) => !node.matches?.(".headerlink")).map((node) => node.textContent).join("")
      .replace(/\s+/g, " ").trim());
  const style = document.createElement("style");
  style.textContent = `
    @page { @top-right { content: ${JSON.stringify(titles[0])}; font: 8.5pt sans-serif; color: #555; } }
    @page :first { @top-right { content: none; } }
    @page { @bottom-center { content: ${JSON.stringify(prefix)} counter(page); } }
    html { counter-reset: page ${number - 1}; }`;
  document.head.append(style);
  return titles;
}
