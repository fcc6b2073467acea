// What the book's small machines share: their place on a page, elements, sliders, and the softmax.
window.machine = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const folder = document.currentScript.src.replace(/[^/]*$/, "");

  function set(element, attributes) {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  }

  // A new element at the end of another one; inside of a drawing it is one of SVG.
  function add(parent, tag, attributes = {}, text = "") {
    const drawn = tag === "svg" || parent.namespaceURI === SVG;
    const element = drawn ? document.createElementNS(SVG, tag) : document.createElement(tag);
    set(element, attributes);
    element.textContent = text;
    parent.append(element);
    return element;
  }

  function button(parent, text, press) {
    const element = add(parent, "button", { type: "button" }, text);
    element.addEventListener("click", press);
    return element;
  }

  // A slider with its name and, unless it is `bare`, its value beside it. Returns a function that moves it.
  function slider(parent, name, { min, max, step, value, told = String, bare = false }, changed) {
    const label = add(parent, "label", { class: bare ? "machine-bare" : "machine-slider" });
    const shown = bare ? null : (add(label, "span", {}, name), add(label, "span", { "aria-hidden": true }));
    const input = add(label, "input", { type: "range", min, max, step, "aria-label": name });
    const tell = (value) => {
      input.setAttribute("aria-valuetext", told(value));
      if (shown) shown.textContent = told(value);
    };
    const move = (to) => ((input.value = to), tell(to));
    input.addEventListener("input", () => (tell(Number(input.value)), changed(Number(input.value))));
    move(value);
    return move;
  }

  // Signs with their meaning, each sign in the color that it has in the drawing.
  function legend(parent, signs) {
    const line = add(parent, "p", { class: "machine-legend" });
    for (const [kind, sign, meaning] of signs) {
      const item = add(line, "span");
      add(item, "span", { class: kind, "aria-hidden": true }, sign);
      item.append(` ${meaning}`);
    }
  }

  // One line of what changed, which screen readers read aloud.
  const said = (parent) => add(parent, "p", { class: "machine-said", role: "status" });

  function softmax(scores) {
    const most = Math.max(...scores); // e to a large number would be infinite
    const powers = scores.map((score) => Math.exp(score - most));
    const sum = powers.reduce((one, other) => one + other, 0);
    return powers.map((power) => power / sum);
  }

  const load = (file) => shared.load(folder + file); // a script of this folder

  // Set up each machine of a kind: its place on the page says with which numbers it starts.
  function start(kind, name, make) {
    document.querySelectorAll(`.machine[data-machine="${kind}"]`).forEach((place) => {
      const body = add(place, "div", { class: "machine-body", role: "group", "aria-label": name });
      make(body, JSON.parse(place.dataset.start));
      place.classList.add("ready"); // now the words that stand in for it are put away
    });
  }

  return { add, set, button, slider, legend, said, softmax, load, start };
})();
