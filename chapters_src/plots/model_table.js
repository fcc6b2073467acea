// The table of models: one part at a time, sorted, filtered, and two models side by side. Everything that is
// shown is in the page already. Made by model_table.py.
(function () {
  document.querySelectorAll("figure.model-table:not(.ready)").forEach(makeView);

  function makeView(figure) {
    figure.classList.add("ready");
    const NONE = "–";
    const tables = [...figure.querySelectorAll("table")];
    const parts = tables.map((table) => table.caption.textContent);
    const rows = tables.map((table) => [...table.tBodies[0].rows]); // of each table, in the same order
    const names = rows[0].map((row) => row.cells[0].textContent);
    const text = names.map((_, i) => rows.map((of) => of[i].textContent).join(" ").toLowerCase());
    const order = names.map((_, i) => i);
    const sorted = { part: null, column: -1, down: false };
    let shown = 0;

    const make = (tag, parent, content = "", className = "") => {
      const element = document.createElement(tag);
      element.textContent = content;
      if (className) element.className = className;
      parent.append(element);
      return element;
    };
    const labeled = (tag, parent, content, name = content) => {
      const element = make(tag, make("label", parent, content));
      element.setAttribute("aria-label", name.trim());
      return element;
    };
    const titles = (part) => [...tables[part].tHead.rows[0].cells].map((head) => head.dataset.title);

    // The controls ------------------------------------------------------------------------------------------

    const tools = document.createElement("div");
    tools.className = "mt-tools";
    tables[0].before(tools);
    const choice = make("fieldset", tools);
    make("legend", choice, "Show");
    const group = `mt-${Math.random().toString(36).slice(2)}`;
    [...parts, "Two models compared"].forEach((part, i) => {
      const label = make("label", choice), radio = make("input", label);
      Object.assign(radio, { type: "radio", name: group, checked: i === 0 });
      label.append(part);
      radio.addEventListener("change", () => show(i));
    });
    const line = make("div", tools, "", "mt-line");
    const filter = labeled("input", line, "Filter ");
    filter.type = "search";
    filter.addEventListener("input", update);
    const sortBy = labeled("select", line, "Sort by ");
    sortBy.addEventListener("change", () => sort(+sortBy.value, false));
    const reverse = make("button", line, "Reverse");
    reverse.type = "button";
    reverse.addEventListener("click", () => sort(+sortBy.value, !sorted.down));
    const status = make("span", line);
    status.setAttribute("role", "status");

    const compare = document.createElement("div");
    compare.className = "mt-compare";
    tables.at(-1).after(compare);
    const pair = make("div", compare, "", "mt-line");
    const menus = [labeled("select", pair, "Compare "), labeled("select", pair, "with ", "compare with")];
    menus.forEach((menu) => {
      names.forEach((name, i) => (make("option", menu, name).value = i));
      menu.addEventListener("change", putSideBySide);
    });
    const find = (start) => Math.max(0, names.findIndex((name) => name.startsWith(start)));
    menus[0].value = find("BERT");
    menus[1].value = find("Gemma 3");
    const sideBySide = make("table", compare);

    tables.forEach((table) => {
      for (const head of table.tHead.rows[0].cells) head.dataset.title = head.textContent;
    });

    // What they do ------------------------------------------------------------------------------------------

    function show(part) {
      shown = part;
      const comparing = part === tables.length;
      tables.forEach((table, i) => (table.hidden = i !== part));
      line.hidden = comparing;
      compare.hidden = !comparing;
      if (comparing) return putSideBySide();
      sortBy.replaceChildren();
      ["(first published)", ...titles(part)].forEach((title, i) => (make("option", sortBy, title).value = i - 1));
      sortBy.value = sorted.part === part ? sorted.column : -1;
      update();
    }

    // What is compared: a number, or words; what is not known comes last both ways.
    function key(cell) {
      const words = cell.textContent.trim();
      if (words === NONE) return null;
      return cell.dataset.value === undefined ? words : +cell.dataset.value;
    }

    function sort(column, down) {
      Object.assign(sorted, { part: shown, column, down });
      const keys = rows[shown].map((row, i) => (column < 0 ? i : key(row.cells[column])));
      order.sort((i, j) => {
        const [a, b] = [keys[i], keys[j]];
        if (a === null || b === null) return (a === null) - (b === null) || i - j;
        const first = typeof a === "number" ? a - b : a.localeCompare(b, "en");
        return (down ? -first : first) || i - j;
      });
      tables.forEach((table, part) => table.tBodies[0].append(...order.map((i) => rows[part][i])));
      sortBy.value = column;
      tables.forEach((table, part) =>
        [...table.tHead.rows[0].cells].forEach((head, i) => {
          head.removeAttribute("aria-sort");
          if (part === shown && i === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
        }));
    }

    function update() {
      const wanted = filter.value.toLowerCase().split(/\s+/);
      const found = text.map((words) => wanted.every((word) => words.includes(word)));
      rows.forEach((of) => of.forEach((row, i) => (row.hidden = !found[i])));
      status.textContent = `${found.filter(Boolean).length} of ${names.length} models`;
    }

    function putSideBySide() {
      const pairOf = menus.map((menu) => +menu.value);
      sideBySide.replaceChildren();
      make("caption", sideBySide, "Side by side");
      const top = make("tr", make("thead", sideBySide));
      make("td", top);
      pairOf.forEach((i) => (make("th", top, names[i]).scope = "col"));
      const body = make("tbody", sideBySide);
      tables.forEach((table, part) =>
        titles(part).forEach((title, column) => {
          if (column === 0) return;
          const cells = pairOf.map((i) => rows[part][i].cells[column]);
          const same = cells[0].textContent === cells[1].textContent;
          const row = make("tr", body);
          make("th", row, same ? `${title} (same)` : title).scope = "row";
          cells.forEach((cell, i) => {
            const copy = make("td", row);
            copy.dataset.label = names[pairOf[i]];
            copy.append(...[...cell.childNodes].map((node) => node.cloneNode(true)));
          });
        }));
    }

    // A title is a button, and words on paper (where all parts and rows are shown: the style says so) ---------

    tables.forEach((table, part) =>
      [...table.tHead.rows[0].cells].forEach((head, column) => {
        head.textContent = "";
        make("span", head, head.dataset.title);
        const button = make("button", head, head.dataset.title);
        button.type = "button";
        button.addEventListener("click", () => {
          const again = sorted.part === part && sorted.column === column;
          sort(column, again && !sorted.down);
        });
      }));
    show(0);
  }
})();
