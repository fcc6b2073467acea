// What BertViz asks of require.js, answered from the d3 and jQuery that this site serves itself,
// and fingers for its views, which listen to a mouse only.
(function () {
  if (window.requirejs) return;
  const modules = { jquery: window.jQuery, d3: window.d3 };
  const require = function (names, callback) {
    callback.apply(null, names.map((name) => modules[name]));
    // BertViz leaves its menus without a name; screen readers need one.
    const menuNames = { att_head: "head", filter: "attention" };
    document.querySelectorAll('[id^="bertviz-"] select').forEach((menu) => {
      menu.setAttribute("aria-label", menuNames[menu.id] || menu.id || "layer");
    });
    // A view without a menu, the model view, is wide: the keyboard has to reach it to scroll it.
    document.querySelectorAll('[id^="bertviz-"]:not(:has(select))').forEach((view) => {
      view.tabIndex = 0;
      view.setAttribute("role", "group");
      view.setAttribute("aria-label", "attention view");
    });
  };
  require.config = function () {};
  window.require = window.requirejs = require;

  // A finger that touches a token points at it, until it touches something else. Browsers make mouse events
  // of a tap, but some only for what they take for a button, and none of them while the finger is down.
  let touched = null;
  const tell = (element, type) => element.dispatchEvent(new MouseEvent(type, { bubbles: type === "mouseover" }));
  const pointAt = (target) => {
    if (target === touched) return;
    for (let element = touched; element && !element.contains(target); element = element.parentElement) {
      tell(element, "mouseleave");
    }
    touched = target?.closest('[id^="bertviz-"] svg') ? target : null;
    if (touched) tell(touched, "mouseover");
  };
  document.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch") pointAt(event.target);
  });
  // What was tapped may have made room for something else, which the finger now points at.
  document.addEventListener("click", (event) => {
    if (touched) pointAt(document.elementFromPoint(event.clientX, event.clientY));
  });
  // Two taps on a color box are a double click, and not a wish to zoom.
  const style = document.createElement("style");
  style.textContent = '[id^="bertviz-"] svg { touch-action: manipulation; }';
  document.head.append(style);
})();
