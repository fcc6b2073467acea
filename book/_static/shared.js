// What the scripts of the pages share: new elements, counts in words, and scripts that are loaded later.
window.shared = (() => {
  // A new element. What it has as a property is set, `on...` becomes a listener, the rest become attributes.
  function make(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name in element && !name.includes("-")) element[name] = value;
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  const button = (content, press, more = {}) =>
    make("button", { type: "button", onclick: press, ...more }, ...[content].flat());

  const count = (number, one, many = `${one}s`) => `${number} ${number === 1 ? one : many}`;

  // Load a script, once; after a failure the next call tries again.
  const loaded = new Map();
  function load(address) {
    if (!loaded.has(address)) loaded.set(address, new Promise((done, fail) => {
      const script = make("script", { src: address, onload: done, onerror: () => {
        loaded.delete(address);
        script.remove();
        fail(new Error(`The file ${address.split("/").pop()} is missing.`));
      } });
      document.head.append(script);
    }));
    return loaded.get(address);
  }

  return { make, button, count, load };
})();
