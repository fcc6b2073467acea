// The search of the book. What is searched, and MiniSearch, which searches, are scripts that are loaded when
// somebody begins to type: so it works from a folder too, and costs nothing to those who only read.
(() => {
  const here = document.currentScript.src.replace(/_static\/search\.js.*/, ""); // where the site begins
  const NUM_IN_DIALOG = 8;
  const NUM_ON_PAGE = 40;
  const EXCERPT = 170; // characters
  const IGNORED = new Set(
    "a an and are as at be by can do does for from how i in is it its of on or that the this to what when which why with".split(" "),
  );
  const WORD = /[\p{L}\p{N}]+/gu;
  const wordsOf = (text) => text.toLowerCase().match(WORD) || [];

  // --- Finding

  let loading = null;
  const loadScript = (address) =>
    new Promise((resolve, reject) => {
      const script = Object.assign(document.createElement("script"), { src: here + address, onload: resolve, onerror: reject });
      document.head.append(script);
    });

  const load = () =>
    (loading ||= Promise.all(["_static/vendor/minisearch.js", "_static/search_index.js"].map(loadScript)).then(() => {
      const { pages, sections, synonyms } = window.bookIndex;
      const documents = sections.map(([page, anchor, title, text, code], id) => {
        const [address, pageTitle, isReference] = pages[page];
        return { id, address, pageTitle, isReference, anchor, title, text, code };
      });
      const engine = new MiniSearch({
        fields: ["title", "pageTitle", "text", "code"],
        tokenize: wordsOf,
        processTerm: (word) => (IGNORED.has(word) ? null : word),
      });
      engine.addAll(documents);
      const groups = synonyms.map((names) => names.map(wordsOf));
      return { documents, engine, groups };
    }));

  // A word with two neighboring letters exchanged, in every way: one typing error, though two letters differ.
  const exchanged = (word) =>
    [...word].slice(1).map((letter, i) => word.slice(0, i) + letter + word[i] + word.slice(i + 2));

  const ofWord = (engine, word, forgiving) => {
    const plain = { queries: [word], prefix: word.length > 1, fuzzy: false };
    if (word.length < 4 || (!forgiving && engine.search(plain).length)) return plain;
    return {
      combineWith: "OR",
      queries: [plain, { queries: [word], prefix: false, fuzzy: 1 }, { queries: exchanged(word), prefix: false, fuzzy: false }],
    };
  };

  // What is asked, as MiniSearch has it: a name that has synonyms, or a word; all of them must be in a section.
  const queryOf = ({ engine, groups }, text, forgiving) => {
    const words = wordsOf(text);
    const queries = [];
    for (let i = 0; i < words.length; ) {
      let length = 0;
      let found = null;
      for (const names of groups) {
        for (const name of names) {
          if (name.length > length && name.every((word, j) => word === words[i + j])) [length, found] = [name.length, names];
        }
      }
      if (found) {
        const exactly = (name) => ({ combineWith: "AND", queries: name, prefix: false, fuzzy: false });
        queries.push({ combineWith: "OR", queries: found.map(exactly) });
      } else if (!IGNORED.has(words[i])) {
        queries.push(ofWord(engine, words[i], forgiving));
      }
      i += length || 1;
    }
    return queries;
  };

  const find = (index, text) => {
    const options = {
      boost: { title: 4, pageTitle: 1.5, text: 1, code: 0.3 },
      weights: { prefix: 0.5, fuzzy: 0.3 },
    };
    const ask = (combineWith, forgiving) => {
      const queries = queryOf(index, text, forgiving);
      return queries.length ? index.engine.search({ combineWith, queries }, options) : [];
    };
    const attempts = [() => ask("AND", false), () => ask("AND", true), () => ask("OR", true)];
    for (const attempt of attempts) {
      const found = attempt();
      if (found.length) return found.map(({ id, terms }) => ({ ...index.documents[id], terms: new Set(terms) }));
    }
    return [];
  };

  // --- Showing

  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };

  // A text with the words marked that are among the terms.
  const marked = (text, terms) => {
    const parts = [];
    let end = 0;
    for (const match of text.matchAll(WORD)) {
      if (!terms.has(match[0].toLowerCase())) continue;
      parts.push(text.slice(end, match.index), make("mark", {}, match[0]));
      end = match.index + match[0].length;
    }
    return [...parts, text.slice(end)];
  };

  // The stretch of a text in which most of the terms are.
  const excerpt = (text, terms) => {
    const hits = [...text.matchAll(WORD)].filter((match) => terms.has(match[0].toLowerCase()));
    let best = { start: 0, count: 0 };
    hits.forEach((hit, i) => {
      const within = hits.slice(i).filter((other) => other.index < hit.index + EXCERPT - 40);
      const count = new Set(within.map((other) => other[0].toLowerCase())).size;
      if (count > best.count) best = { start: hit.index, count };
    });
    let start = Math.max(0, best.start - 40);
    while (start > 0 && /\S/.test(text[start - 1])) start--;
    let end = Math.min(text.length, start + EXCERPT);
    while (end < text.length && /\S/.test(text[end])) end++;
    return [start ? "… " : "", ...marked(text.slice(start, end), terms), end < text.length ? " …" : ""];
  };

  const addressOf = ({ address, anchor, terms }) => {
    const words = encodeURIComponent([...terms].slice(0, 12).join(" "));
    return `${here}${address}?highlight=${words}${anchor && "#" + anchor}`;
  };

  const item = (result) => {
    const link = make("a", { href: addressOf(result) });
    link.append(make("span", { className: "search-title" }, ...marked(result.title, result.terms)));
    if (result.anchor) link.append(make("span", { className: "search-where" }, result.pageTitle));
    return make("li", {}, link, make("p", {}, ...excerpt(result.text, result.terms)));
  };

  const show = (place, found, query, limit) => {
    const groups = [
      ["In the book", found.filter((result) => !result.isReference)],
      ["Source code and reference pages", found.filter((result) => result.isReference)],
    ];
    const parts = [];
    for (const [name, results] of groups) {
      if (!results.length) continue;
      const room = name === groups[0][0] ? limit : Math.ceil(limit / 2);
      const list = make("ol", {}, ...results.slice(0, room).map(item));
      list.setAttribute("aria-label", name);
      parts.push(make("p", { className: "search-group" }, name), list);
      if (results.length > room) parts.push(make("p", { className: "search-more" }, `and ${results.length - room} more`));
    }
    place.replaceChildren(...parts);
    return told(found.length, query);
  };

  const told = (count, query) =>
    count === 0 ? `Nothing found for “${query}”.` : `${count} ${count === 1 ? "section" : "sections"} found.`;

  const attach = (form) => {
    const field = form.querySelector("input[type=search]");
    const inDialog = !!form.closest("dialog");
    const place = (!inDialog && document.getElementById("search-results")) || make("div");
    place.classList.add("search-results");
    if (!place.isConnected) form.after(place);
    // It is there from the start, so that screen readers tell what changes in it.
    const status = make("p", { className: "search-status", role: "status" });
    const list = make("div");
    place.replaceChildren(status, list);
    let asked = "";
    const search = async () => {
      const query = (asked = field.value.trim());
      let told = "";
      list.replaceChildren();
      if (query) {
        try {
          const index = await load();
          if (query !== asked) return;
          told = show(list, find(index, query), query, inDialog ? NUM_IN_DIALOG : NUM_ON_PAGE);
        } catch {
          told = "The index of the search could not be loaded.";
        }
      }
      status.textContent = told;
    };
    let timer;
    field.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(search, 150);
    });
    field.addEventListener("focus", () => load().catch(() => {}), { once: true });
    if (!inDialog) {
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        history.replaceState(null, "", `?q=${encodeURIComponent(field.value)}`);
        search();
      });
      field.value = new URLSearchParams(location.search).get("q") || "";
      search();
    }
    // The arrows lead from the field into the results and back.
    (form.closest("dialog") || form.parentElement).addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const stops = [field, ...place.querySelectorAll("a")];
      const at = stops.indexOf(document.activeElement);
      if (!step || at < 0 || !stops[at + step]) return;
      event.preventDefault();
      stops[at + step].focus();
    });
  };

  // --- Arriving: the words that were searched are marked in the section, and the first of them is in view.

  const markIn = (section, terms) => {
    const walker = document.createTreeWalker(section, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    texts
      .filter((text) => !text.parentElement.closest("script, style, svg, select, button, mjx-container, .headerlink, .linenos"))
      .forEach((text) => {
        const parts = marked(text.data, terms);
        if (parts.length > 1) text.replaceWith(...parts);
      });
  };

  const arrive = () => {
    const terms = new Set(wordsOf(new URLSearchParams(location.search).get("highlight") || ""));
    const article = document.querySelector("article");
    if (!terms.size || !article) return;
    const section = document.getElementById(decodeURIComponent(location.hash.slice(1))) || article;
    markIn(section, terms);
    const marks = [...section.querySelectorAll("mark")];
    const first = marks.find((mark) => mark.checkVisibility() && !mark.closest("h1, h2, h3, h4")) || marks[0];
    for (let place = first; place; place = place.parentElement) {
      if (place.localName === "details") place.open = true;
    }
    const { top, bottom } = first?.getBoundingClientRect() || { top: 0, bottom: 0 };
    if (top < 0 || bottom > innerHeight) first.scrollIntoView({ block: "center" });
    addEventListener("keydown", (event) => {
      if (event.key === "Escape") marks.forEach((mark) => mark.replaceWith(...mark.childNodes));
    });
  };

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("form.bd-search").forEach(attach));
  addEventListener("load", arrive);
})();
