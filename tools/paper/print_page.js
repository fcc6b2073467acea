// Make a page of the site ready to be a part of the PDF; gives its headings. What is common to all printing is in print.js.
({ kept, number }) => {
  document.documentElement.classList.add("whole-book");
  // Links to what the book leaves out are plain text.
  for (const link of document.querySelectorAll("article a[href]")) {
    const url = new URL(link.getAttribute("href"), document.baseURI); // in a drawing `link.href` is no text
    if (url.protocol === "file:" && !kept.includes(url.href.split("#")[0])) link.replaceWith(...link.childNodes);
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
    html { counter-reset: page ${number - 1}; }`;
  document.head.append(style);
  return titles;
}
