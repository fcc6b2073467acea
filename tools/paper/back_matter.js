// What a book has at its end: the solutions of a chapter's exercises and the answers to its questions. They move into a
// section behind the article, and a link in their place says where they are. Gives that section's parts, if there are any.
({ appendix, sheets = {} }) => {
  document.documentElement.classList.add("whole-book");
  const article = document.querySelector("article"), own = document.baseURI.split("#")[0];
  const number = article.querySelector("h1").textContent.match(/^\d+/)?.[0];
  const add = (parent, name, text = "", more = {}) => {
    const element = Object.assign(document.createElement(name), more);
    element.append(text);
    parent.append(element);
    return element;
  };
  const link = (href, text) => Object.assign(document.createElement("a"), { href, textContent: text });

  // Nobody types on paper: a cell to try in shows what to write, not that nothing is written yet.
  for (const output of article.querySelectorAll(".cell_output")) {
    const shown = [...output.querySelectorAll("pre")].map((text) => text.textContent.trim());
    if (/^\d+\.\d+: nothing to check yet$/.test(shown.join())) output.remove();
  }

  // A hint stands open below its task.
  for (const fold of article.querySelectorAll("details")) {
    if (fold.querySelector("summary").textContent.trim() !== "Hint") continue;
    const hint = document.createElement("div");
    hint.className = "hint";
    fold.querySelector("summary").remove();
    hint.append(...fold.childNodes);
    const title = document.createElement("em");
    title.append("Hint: ");
    (hint.querySelector(":scope > p:first-child") ?? hint).prepend(title);
    fold.replaceWith(hint);
  }

  const section = add(document.body, "section", "", { id: "back-matter", hidden: true });
  const heading = article.querySelector("h1").cloneNode(true);
  heading.querySelectorAll(".headerlink").forEach((sign) => sign.remove());
  add(section, "h2", link(own, heading.textContent.trim()), { id: `solutions-${number}` });
  const parts = [];

  function begin(id, from, title) {
    const part = add(section, "section", "", { id, className: "back-part" });
    add(part, "h3", link(`${own}#${from}`, title));
    parts.push(id);
    return part;
  }

  // Where something stood: its name, which leads to it, and its sheet, once known.
  function leave(place, id, name) {
    const line = document.createElement("p");
    line.className = "to-the-end";
    line.append(link(`${appendix}#${id}`, name));
    if (sheets[id]) line.append(`, page ${sheets[id]}`);
    place.before(line);
  }

  const answers = [...article.querySelectorAll("details.quiz-answers")];
  if (answers.length) {
    const id = `answers-${number}`, from = answers[0].closest("section[id]").id;
    leave(answers.at(-1).nextSibling ?? answers.at(-1), id, "Answers");
    const part = begin(id, from, `Answers to the questions of chapter ${number}`);
    part.classList.add("back-answers");
    answers.forEach((fold, i) => {
      const answer = add(part, "div", "", { className: "back-answer" });
      add(answer, "p", "").append(Object.assign(document.createElement("strong"), { textContent: `${i + 1}` }));
      fold.querySelector("summary").remove();
      answer.append(...fold.childNodes);
      fold.remove();
    });
  }

  for (const fold of [...article.querySelectorAll("details")]) {
    const [, exercise] = fold.querySelector("summary").textContent.match(/^\s*Solution (\d+\.\d+)/) ?? [];
    if (!exercise) continue;
    const name = exercise.replace(".", "-"), id = `solution-${name}`;
    const whole = fold.closest("div.cell") ?? fold; // a cell of code, or a fold of text
    let part = section.querySelector(`#${id}`);
    if (!part) {
      leave(whole, id, `Solution ${exercise}`);
      part = begin(id, `exercise-${name}`, `Solution ${exercise}`);
    }
    fold.querySelector("summary").remove();
    whole.remove();
    const box = whole.localName === "details" ? add(part, "div") : whole;
    if (box !== whole) box.append(...whole.childNodes);
    else fold.replaceWith(...fold.childNodes);
    part.append(box);
    const code = box.querySelector(":scope > .cell_input pre"); // whose first line is its title
    while (code?.textContent.startsWith("# @title")) code.firstChild.remove();
    if (code?.firstChild) code.firstChild.textContent = code.firstChild.textContent.trimStart();
  }
  if (!parts.length) return section.remove() ?? null;

  // What moved keeps a name that no other chapter has, and its links lead where they led.
  const moved = new Map();
  for (const element of section.querySelectorAll(".back-part [id]")) {
    moved.set(element.id, `from-${number}-${element.id}`);
    element.id = moved.get(element.id);
  }
  for (const anchor of document.querySelectorAll("article a[href], #back-matter a[href]")) {
    if (anchor.namespaceURI.endsWith("svg")) continue;
    const [page, name] = anchor.href.split("#");
    if (page === own && moved.has(name)) anchor.href = `${appendix}#${moved.get(name)}`;
    else if (section.contains(anchor)) anchor.href = anchor.href; // also from another page
  }
  section.querySelectorAll("img").forEach((image) => (image.src = image.src));
  const rules = [...document.styleSheets].filter((sheet) => sheet.ownerNode.id === "MJX-CHTML-styles");
  return {
    parts,
    html: section.innerHTML,
    letters: rules.flatMap((sheet) => [...sheet.cssRules].map((rule) => rule.cssText)).join("\n"), // of formulas
  };
}
