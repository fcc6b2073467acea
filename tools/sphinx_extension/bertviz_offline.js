// What BertViz asks of require.js, answered from the d3 and jQuery that this site serves itself.
(function () {
  if (window.requirejs) return;
  const modules = { jquery: window.jQuery, d3: window.d3 };
  const require = function (names, callback) {
    callback.apply(null, names.map((name) => modules[name]));
    // BertViz leaves its layer menu without a name; screen readers need one.
    document.querySelectorAll('[id^="bertviz-"] select').forEach((menu) => {
      menu.setAttribute("aria-label", menu.id || "layer");
    });
  };
  require.config = function () {};
  window.require = window.requirejs = require;
})();
