// Where was I: which sections of a chapter were read, where to go on, and all that this browser keeps, in one box.
(function () {
  const { make, button, count } = shared;
  const LOOK = 300; // milliseconds between two looks at a page that scrolls
  const chapter = location.pathname.match(/\/notebooks\/([^/]+)\.html$/)?.[1];
  const root = () => document.documentElement.dataset.content_root || "./";

  const titleOf = (heading) => {
    const copy = heading.cloneNode(true);
    copy.querySelectorAll(".headerlink").forEach((link) => link.remove());
    return copy.textContent.trim();
  };

  // Calls `act` later, once for all the times that it was asked until then.
  function gathered(act, later) {
    let waits = false;
    return () => {
      if (waits) return;
      waits = true;
      later(() => {
        waits = false;
        act();
      });
    };
  }

  // What is read: the chapters, in order, each with the anchors of its sections.
  const chapters = () =>
    Object.entries(kept.all("read/")).map(([key, value]) => ({ name: key.slice("read/".length), ...value }))
      .filter(({ sections, title }) => Array.isArray(sections) && title);

  // Guesses, and answers to the questions at a chapter's end: how many there are, and how many are right.
  function guessed(name = "") {
    const all = Object.values(kept.all(name ? `guess/${name}/` : "guess/")).filter((one) => one.guess !== undefined);
    return { all: all.length, right: all.filter((one) => one.right).length };
  }

  function answered(name = "") {
    const all = Object.values(kept.all(name ? `quiz/${name}/` : "quiz/")).filter((one) => one.tries?.length);
    return { all: all.length, right: all.filter((one) => one.tries[0] === one.right).length };
  }

  // A chapter ----------------------------------------------------------------------------------------------------

  function watch() {
    const sections = [...document.querySelectorAll("article section[id]")];
    const headings = sections.map((section) => section.querySelector(":scope > :is(h1, h2, h3, h4)"));
    const key = `read/${chapter}`;
    const stored = kept.read(key);
    const known = new Set(stored?.sections ?? []);
    const started = new Set(); // sections whose heading was seen on this visit
    let here = stored?.here ?? null;

    // A section without its subsections: it ends where the first of them begins.
    const end = (section) => {
      const inner = section.querySelector(":scope > section");
      return inner ? inner.getBoundingClientRect().top : section.getBoundingClientRect().bottom;
    };

    // A section is read when its heading was seen, and its end stands in the window.
    function look() {
      const before = known.size, place = here?.anchor;
      sections.forEach((section, i) => {
        const top = headings[i]?.getBoundingClientRect().top ?? Infinity;
        const bottom = end(section);
        if (top >= 0 && top < innerHeight) started.add(section);
        if (started.has(section) && bottom > 0 && bottom <= innerHeight + 1) known.add(section.id);
        if (top < innerHeight / 3) here = { anchor: section.id, title: headings[i] ? titleOf(headings[i]) : "" };
      });
      if (known.size !== before || here?.anchor !== place) save();
    }

    function save() {
      const valid = sections.map((section) => section.id).filter((id) => known.has(id)); // after a new edition
      const at = new Date().toISOString();
      kept.write(key, { title: titleOf(headings[0]), sections: valid, of: sections.length, here, at });
    }

    addEventListener("scroll", gathered(look, (act) => setTimeout(act, LOOK)), { passive: true });
    addEventListener("kept", ({ detail: { key: written } }) => {
      if (key.startsWith(written) && kept.read(key) === undefined) {
        known.clear();
        started.clear();
        here = null;
      }
      if (key.startsWith(written)) mark(known);
    });
    mark(known);
  }

  // Marks in the list of sections. The screen reader hears the same in the name of the link.
  function mark(known) {
    for (const link of document.querySelectorAll(".bd-sidebar-secondary .page-toc a, .bd-sidebar-secondary nav a")) {
      const read = known.has(decodeURIComponent((link.hash || "#").slice(1)));
      link.classList.toggle("was-read", read);
      if (read) link.title = "read";
      else link.removeAttribute("title");
    }
  }

  // Beside each chapter in the side bar: how many of its sections were read.
  function share() {
    document.querySelectorAll(".bd-sidebar-primary .read-share").forEach((one) => one.remove());
    for (const { name, sections, of } of chapters()) {
      const links = [...document.querySelectorAll(".bd-sidebar-primary a.reference.internal")];
      const link = links.find((one) => one.pathname.endsWith(`/notebooks/${name}.html`));
      if (!link || !sections.length) continue;
      const text = sections.length >= of ? "✓" : `${sections.length}/${of}`;
      const said = sections.length >= of ? "read" : `${sections.length} of ${of} sections read`;
      link.append(make("span", { className: "read-share" },
        make("span", { "aria-hidden": "true" }, text), make("span", { className: "visually-hidden" }, ` (${said})`)));
    }
  }

  // The start page -------------------------------------------------------------------------------------------------

  function sums() {
    const sections = chapters().reduce((sum, { sections }) => sum + sections.length, 0);
    const guesses = guessed(), answers = answered();
    return [
      sections ? `${count(sections, "section")} read` : "",
      guesses.all ? `${guesses.right} of ${count(guesses.all, "guess", "guesses")} right or close` : "",
      answers.all ? `${answers.right} of ${count(answers.all, "question")} right at the first try` : "",
    ].filter(Boolean);
  }

  function lead(start) {
    const latest = chapters().filter(({ here }) => here?.anchor).sort((one, other) => (one.at < other.at ? 1 : -1))[0];
    if (!latest) return; // after forgetting, the line stays and offers to undo it
    let line = document.querySelector(".kept-line");
    if (!line) {
      line = make("p", { className: "kept-line" });
      start.after(line);
    }
    line.replaceChildren(...ahead(latest, line));
  }

  // The link to where the reader was, and what is known of the reader.
  function ahead({ name, title, here }, line) {
    const place = here.title && here.title !== title ? `, ${here.title}` : "";
    const link = make("a", { href: `${root()}notebooks/${name}.html#${encodeURIComponent(here.anchor)}` }, `Continue: ${title}${place}`);
    const about = make("a", { href: `${root()}book/how_to_use.html#what-the-site-remembers` }, "only this browser");
    const forgets = button("Forget it", () => forget((undo) => {
      line.replaceChildren("Forgotten. ", undo);
      undo.focus();
    }));
    return [link, ". ", ...(sums().length ? [`${sums().join(", ")}; `] : []), about, " knows it. ", forgets];
  }

  // The box ----------------------------------------------------------------------------------------------------------

  function fill(box) {
    const sum = make("p"), list = make("div", { className: "pst-scrollable-table-container" });
    const asks = make("input", { type: "checkbox" });
    const file = make("input", { type: "file", accept: ".json,application/json", hidden: true });
    const told = make("p", { className: "kept-told", role: "status" });
    const forgets = button("Forget everything", () => forget((undo) => told.replaceChildren("Forgotten. ", undo), () => {
      told.replaceChildren("All of it is back.");
      forgets.focus();
    }));
    asks.addEventListener("change", () => kept.write("setting/guesses", asks.checked));
    file.addEventListener("change", async () => told.replaceChildren(await restored(file.files[0])));
    const buttons = [button("Save as a file", save), button("Bring back from a file", () => file.click()), file, forgets];
    const warning = kept.lasts() ? [] : [make("p", {}, "This browser keeps nothing from one visit to the next: it is a private window, or it was told so.")];
    box.replaceChildren(...warning, sum, list, make("label", {}, asks, " Cover an output until I have guessed"),
      make("p", { className: "kept-buttons" }, ...buttons), told);
    return () => {
      const known = chapters();
      sum.textContent = sums().length ? `${sums().join(", ")}.` : "Nothing yet.";
      list.replaceChildren(...(known.length ? [table(known)] : []));
      asks.checked = kept.read("setting/guesses") !== false;
    };
  }

  function table(known) {
    const row = (kind, ...cells) => make("tr", {}, ...cells.map((cell) => make(kind, {}, cell)));
    const shown = ({ all, right }) => (all ? `${right} of ${all}` : "–");
    const rows = known.map(({ name, title, sections, of }) => {
      const link = make("a", { href: `${root()}notebooks/${name}.html` }, title);
      return row("td", link, `${sections.length} of ${of}`, shown(guessed(name)), shown(answered(name)));
    });
    const head = row("th", "Chapter", "Sections read", "Guesses right or close", "Questions right at once");
    return make("table", { className: "table" }, make("thead", {}, head), make("tbody", {}, ...rows));
  }

  function save() {
    const url = URL.createObjectURL(new Blob([JSON.stringify(kept.all(), null, 2)], { type: "application/json" }));
    const link = make("a", { href: url, download: "transformers-taken-apart.json" });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }

  // One click forgets everything; until the page is left, a second one brings it back.
  function forget(offer, done = () => {}) {
    const former = kept.all();
    kept.forget();
    offer(button("Undo", () => {
      Object.entries(former).forEach(([key, value]) => kept.write(key, value));
      done();
    }));
  }

  async function restored(file) {
    try {
      const all = JSON.parse(await file.text());
      const entries = Object.entries(all).filter(([key]) => /^(guess|quiz|read|setting)\//.test(key));
      if (!entries.length) return "This file has nothing of this book.";
      entries.forEach(([key, value]) => kept.write(key, value));
      return `Brought back: ${count(entries.length, "entry", "entries")}.`;
    } catch {
      return "This file cannot be read.";
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    if (chapter) watch();
    const start = document.querySelector(".front-buttons"), box = document.getElementById("kept-box");
    const updates = [share, ...(start ? [() => lead(start)] : []), ...(box ? [fill(box)] : [])];
    const update = () => updates.forEach((one) => one());
    update();
    addEventListener("kept", gathered(update, queueMicrotask)); // many keys may change at once
  });
})();
