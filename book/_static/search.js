// The search of the book. What is searched, and MiniSearch, which searches, are scripts that are loaded when
// somebody begins to type: so it works from a folder too, and costs nothing to those who only read.
(() => {
  const here = document.currentScript.src.replace(/_static\/search\.js.*/, ""); // where the site begins
  const NUM_IN_DIALOG = 8;
  const NUM_ON_PAGE = 40;
  const EXCERPT = 170; // characters
  const LACKING = 2; // a section that has half of the parts of a question counts half, to this power
  const NAMED = 2; // a section that is called like the question
  const WEAKEST = 0.1; // of the best score: what is below is not shown
  const LAST = /^(Exercises|Further reading|What to take away)/; // sections that mention much and explain little
  const IGNORED = new Set(
    `a about an and are as at be between by can did do does for from had has have how i if in is it its many me much my of on
    or should that the there these this those to versus vs was were what when where which who why will with would`.split(/\s+/),
  );
  const WORD = /[\p{L}\p{N}]+|@/gu; // the sign of the matrix product is a word, too
  const fold = (word) => word.toLowerCase().normalize("NFD").replace(/\p{M}/gu, ""); // Übersetzung: ubersetzung
  const wordsOf = (text) => (text.match(WORD) || []).map(fold);

  // --- Finding

  let loading = null;
  const load = () =>
    (loading ||= Promise.all(["_static/vendor/minisearch.js", "_static/search_index.js"].map((name) => shared.load(here + name))).then(() => {
      const { pages, sections, synonyms, german } = window.bookIndex;
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
      return { documents, engine, groups, english: translations(german) };
    }));

  // German terms, as they are written with and without umlauts, and the English words that the book has for them.
  const translations = (german) => {
    const found = new Map();
    const plain = { ä: "ae", ö: "oe", ü: "ue", ß: "ss" };
    for (const [word, term] of german) {
      const spelled = word.toLowerCase().replace(/[äöüß]/g, (letter) => plain[letter]);
      [fold(word), spelled].forEach((form) => found.set(form, wordsOf(term)));
    }
    return found;
  };

  // A word with two neighboring letters exchanged, in every way: one typing error, though two letters differ.
  const exchanged = (word) =>
    [...word].slice(1).map((letter, i) => word.slice(0, i) + letter + word[i] + word.slice(i + 2));

  // Other forms of a word, roughly: laws and law, dividing and divid(e), queries and query.
  const stems = (word) =>
    [[/ies$/, "y"], [/(?<=[^su])s$/, ""], [/(ing|ed|es)$/, ""]].flatMap(([ending, instead]) => {
      const stem = word.replace(ending, instead);
      return stem !== word && stem.length > 2 ? [stem] : [];
    });

  // The word, longer ones that begin with it, and its other forms; what is still not there may be a typing error.
  const ofWord = (engine, word, forgiving) => {
    const plain = { queries: [word], prefix: word.length > 1, fuzzy: false };
    const forms = { combineWith: "OR", queries: [plain, ...stems(word).map((stem) => ({ ...plain, queries: [stem] }))] };
    if (word.length < 4 || (!forgiving && engine.search(forms).length)) return forms;
    forms.queries.push({ queries: [word], prefix: false, fuzzy: 1 }, { queries: exchanged(word), prefix: false, fuzzy: false });
    return forms;
  };

  // The parts of what is asked, as MiniSearch has them: each a name that has synonyms, or a word.
  const partsOf = ({ engine, groups, english }, text, forgiving) => {
    const words = wordsOf(text).flatMap((word) => english.get(word) || [word]);
    const parts = [];
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
        parts.push({ combineWith: "OR", queries: found.map(exactly) });
      } else if (!IGNORED.has(words[i])) {
        parts.push({ ...ofWord(engine, words[i], forgiving), isLetter: words[i].length === 1 });
      }
      i += length || 1;
    }
    return parts;
  };

  // The score of a section: the sum over the parts, and much less if it lacks one. Letters alone may be missing.
  const scored = (index, text, forgiving) => {
    const { engine, documents } = index;
    const parts = partsOf(index, text, forgiving);
    const name = wordsOf(text).join(" ");
    const options = {
      boost: { title: 4, pageTitle: 1.5, text: 1, code: 0.3 },
      weights: { prefix: 0.5, fuzzy: 0.3 },
    };
    const needed = parts.filter((part) => !part.isLetter).length || 1;
    const found = new Map();
    for (const { isLetter, ...part } of parts) {
      for (const { id, score, terms } of engine.search(part, options)) {
        const known = found.get(id) || { id, sum: 0, has: 0, terms: new Set() };
        found.set(id, known);
        known.sum += score;
        known.has += isLetter ? 0 : 1;
        terms.forEach((term) => known.terms.add(term));
      }
    }
    return [...found.values()].map(({ id, sum, has, terms }) => {
      const document = documents[id];
      const share = Math.min(1, has / needed);
      const isNamed = wordsOf(document.title).join(" ") === name;
      const weight = isNamed ? NAMED : LAST.test(document.title) ? 0.5 : 1;
      return { ...document, terms, share, score: sum * share ** LACKING * weight };
    });
  };

  const find = (index, text) => {
    const ask = (asked, forgiving) => scored(index, asked, forgiving);
    const isWhole = (result) => result.share === 1 && !result.isReference;
    let found = ask(text, false);
    if (!found.some(isWhole)) {
      const parted = text.replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2"); // KeyValueCache: Key Value Cache
      const known = new Set(found.filter((result) => result.share === 1).map(({ id }) => id));
      const others = [ask(parted, false), ask(parted, true)];
      const better = others.find((results) => results.some(isWhole)) || others[1];
      found = [...found.filter(({ id }) => known.has(id)), ...better.filter(({ id }) => !known.has(id))];
    }
    const best = Math.max(...found.map((result) => result.score));
    return found.filter((result) => result.score >= best * WEAKEST).sort((one, other) => other.score - one.score);
  };

  // --- Showing

  const { make } = shared;

  // A text with the words marked that are among the terms.
  const marked = (text, terms) => {
    const parts = [];
    let end = 0;
    for (const match of text.matchAll(WORD)) {
      if (!terms.has(fold(match[0]))) continue;
      parts.push(text.slice(end, match.index), make("mark", {}, match[0]));
      end = match.index + match[0].length;
    }
    return [...parts, text.slice(end)];
  };

  // The stretch of a text in which most of the terms are.
  const excerpt = (text, terms) => {
    const hits = [...text.matchAll(WORD)].filter((match) => terms.has(fold(match[0])));
    let best = { start: 0, count: 0 };
    hits.forEach((hit, i) => {
      const within = hits.slice(i).filter((other) => other.index < hit.index + EXCERPT - 40);
      const count = new Set(within.map((other) => fold(other[0]))).size;
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

  const pageOf = (query) => `${here}search.html?q=${encodeURIComponent(query)}`;

  const show = (place, found, query, limit) => {
    const groups = [
      ["In the book", found.filter((result) => !result.isReference)],
      ["Source code and reference pages", found.filter((result) => result.isReference)],
    ];
    const parts = [];
    for (const [name, results] of groups) {
      if (!results.length) continue;
      const room = name === groups[0][0] ? limit : Math.ceil(limit / 2);
      const list = make("ol", { "aria-label": name }, ...results.slice(0, room).map(item));
      parts.push(make("p", { className: "search-group" }, name), list);
      if (results.length <= room) continue;
      const more = `and ${results.length - room} more`;
      const rest = limit < NUM_ON_PAGE ? make("a", { href: pageOf(query) }, more) : more;
      parts.push(make("p", { className: "search-more" }, rest));
    }
    place.replaceChildren(...parts);
    return told(found.length, query);
  };

  const told = (count, query) =>
    count === 0 ? `Nothing found for “${query}”.` : `${shared.count(count, "section")} found.`;

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
    let timer;
    const search = async () => {
      clearTimeout(timer);
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
    field.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(search, 150);
    });
    field.addEventListener("focus", () => load().catch(() => {}), { once: true });
    if (inDialog) {
      // Enter opens the first section that was found.
      form.addEventListener("submit", async (event) => {
        event.preventDefault();
        const query = field.value.trim();
        if (query !== asked || !status.textContent) await search();
        const first = list.querySelector("li a");
        if (first) location.href = first.href;
      });
    } else {
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
