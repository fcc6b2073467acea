// Diagrams can be zoomed: with buttons, with the keys + - 0 and the arrows, with two fingers, and with the wheel
// while Ctrl is held. Enlarged, they are moved by dragging. The wheel alone and one finger scroll the page.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("figure.diagram").forEach(makeZoomable);
});

function makeZoomable(figure) {
  const STEP = 1.5, MOST = 8;
  const svg = figure.querySelector("svg");
  const whole = svg.viewBox.baseVal.width, ratio = svg.viewBox.baseVal.height / whole;
  const view = { x: 0, y: 0, width: whole }; // what can be seen, in units of the diagram
  const fingers = new Map(); // where each pointer that is down was last

  function show(x, y, width) {
    view.width = width;
    view.x = Math.min(Math.max(x, 0), whole - view.width);
    view.y = Math.min(Math.max(y, 0), (whole - view.width) * ratio);
    svg.setAttribute("viewBox", [view.x, view.y, view.width, view.width * ratio].join(" "));
    figure.classList.toggle("enlarged", view.width < whole);
  }

  // A place on the screen as shares of the picture's width and height.
  function place(event) {
    const box = svg.getBoundingClientRect();
    return { x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height };
  }

  // Enlarge so that what is at `from` comes to lie at `to`.
  function zoom(factor, from = { x: 0.5, y: 0.5 }, to = from) {
    const width = Math.min(Math.max(view.width / factor, whole / MOST), whole);
    const x = view.x + from.x * view.width - to.x * width;
    show(x, view.y + (from.y * view.width - to.y * width) * ratio, width);
  }

  const actions = {
    "+": () => zoom(STEP),
    "=": () => zoom(STEP),
    "-": () => zoom(1 / STEP),
    0: () => show(0, 0, whole),
    ArrowLeft: () => show(view.x - view.width / 8, view.y, view.width),
    ArrowRight: () => show(view.x + view.width / 8, view.y, view.width),
    ArrowUp: () => show(view.x, view.y - view.width / 8, view.width),
    ArrowDown: () => show(view.x, view.y + view.width / 8, view.width),
  };

  const { make, button } = shared;
  const name = `${svg.getAttribute("aria-label")}. Keys: plus and minus zoom, the arrows move, 0 shows all.`;
  const stage = make("div", { className: "diagram-stage", tabIndex: 0, role: "group", "aria-label": name });
  stage.style.maxWidth = svg.style.maxWidth;
  const signs = [["-", "−", "Zoom out"], ["0", "⤢", "Show all"], ["+", "+", "Zoom in"]];
  const tools = make("div", { className: "diagram-tools" },
    ...signs.map(([key, sign, title]) => button(sign, actions[key], { title, "aria-label": title })));
  svg.before(stage);
  stage.append(tools, svg);

  stage.addEventListener("keydown", (event) => {
    const action = actions[event.key];
    const moves = event.key.startsWith("Arrow");
    if (!action || event.ctrlKey || event.metaKey || event.altKey || (moves && view.width === whole)) return;
    action();
    event.preventDefault(); // an arrow would also scroll the page,
    event.stopPropagation(); // and a theme may turn pages with it
  });
  const wheel = (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(Math.exp(-Math.max(-50, Math.min(50, event.deltaY)) / 120), place(event));
  };
  svg.addEventListener("wheel", wheel, { passive: false });
  // Two fingers are the diagram's; without this the browser would scroll the page and take them away.
  const keep = (event) => event.touches.length > 1 && event.preventDefault();
  svg.addEventListener("touchmove", keep, { passive: false });

  const center = () => {
    const all = [...fingers.values()];
    const mean = (axis) => all.reduce((sum, finger) => sum + finger[axis], 0) / all.length;
    const [first, last] = [all[0], all[all.length - 1]];
    return { x: mean("x"), y: mean("y"), apart: Math.hypot(first.x - last.x, (first.y - last.y) * ratio) };
  };
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    fingers.set(event.pointerId, place(event));
    if (view.width < whole) svg.setPointerCapture(event.pointerId);
  });
  svg.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return;
    const before = center();
    fingers.set(event.pointerId, place(event));
    const after = center();
    if (fingers.size > 1) zoom(after.apart / Math.max(before.apart, 0.01), before, after);
    else if (view.width < whole) {
      const wanted = view.y + (before.y - after.y) * view.width * ratio;
      zoom(1, before, after);
      if (event.pointerType !== "touch") return;
      // What the diagram cannot move any further moves the page, so that no finger is stuck on it.
      const left = ((wanted - view.y) / view.width) * svg.getBoundingClientRect().width;
      window.scrollBy({ top: left, behavior: "instant" });
      fingers.set(event.pointerId, place(event));
    }
  });
  for (const end of ["pointerup", "pointercancel", "pointerleave"]) {
    svg.addEventListener(end, (event) => fingers.delete(event.pointerId));
  }
}
