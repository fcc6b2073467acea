// What the reader did, kept in this browser alone: guesses, answers, what was read. Keys look like paths, for
// example "guess/03_tokenization/d2f7b5e2"; a value is anything that JSON holds. A browser that refuses to keep
// something (a private window, blocked storage) gets a memory that lasts as long as the page.
window.kept = (function () {
  const OURS = "transformers-taken-apart/"; // other pages of the same host, or of a folder, keep things too
  const memory = new Map(); // what could not be stored

  function storage() {
    try {
      return window.localStorage;
    } catch {
      return null;
    }
  }

  const parsed = (text) => {
    try {
      return JSON.parse(text) ?? undefined;
    } catch {
      return undefined; // not written by us
    }
  };

  const told = (key) => window.dispatchEvent(new CustomEvent("kept", { detail: { key } }));

  // The value of a key; undefined if there is none.
  function read(key) {
    if (memory.has(key)) return parsed(memory.get(key));
    try {
      return parsed(storage()?.getItem(OURS + key) ?? null);
    } catch {
      return undefined;
    }
  }

  // Keeps a value; returns whether it will still be there on the next visit. Listen to "kept" on the window.
  function write(key, value) {
    const text = JSON.stringify(value);
    let lasts = false;
    try {
      storage().setItem(OURS + key, text);
      memory.delete(key);
      lasts = true;
    } catch {
      memory.set(key, text);
    }
    told(key);
    return lasts;
  }

  function keys() {
    const stored = [];
    try {
      const shelf = storage();
      for (let i = 0; i < (shelf?.length ?? 0); i++) {
        if (shelf.key(i).startsWith(OURS)) stored.push(shelf.key(i).slice(OURS.length));
      }
    } catch { /* nothing is stored */ }
    return [...new Set([...stored, ...memory.keys()])].sort();
  }

  // Everything that is kept, as an object from keys to values; with a beginning, such as "quiz/", only those.
  const all = (beginning = "") =>
    Object.fromEntries(
      keys().filter((key) => key.startsWith(beginning)).map((key) => [key, read(key)])
        .filter(([, value]) => value !== undefined));

  // Deletes everything, or what begins so; nothing else in this browser is touched.
  function forget(beginning = "") {
    for (const key of keys().filter((one) => one.startsWith(beginning))) {
      memory.delete(key);
      try {
        storage()?.removeItem(OURS + key);
      } catch { /* nothing is stored */ }
    }
    told(beginning);
  }

  // Whether this browser keeps anything from one visit to the next.
  function lasts() {
    const probe = OURS + "?";
    try {
      storage().setItem(probe, "1");
      storage().removeItem(probe);
      return true;
    } catch {
      return false;
    }
  }

  window.addEventListener("storage", (event) => { // another tab wrote or forgot
    if (event.key === null) told("");
    else if (event.key.startsWith(OURS)) told(event.key.slice(OURS.length));
  });

  return { read, write, all, forget, lasts };
})();
