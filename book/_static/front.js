// The picture of the start page: a typed sentence becomes tokens, and a token shows whom it attends to. The data
// are in front_data.js, which the build writes (tools/website/front.py); without this script the page shows a still picture.
(function () {
  const data = window.frontData;
  const byId = (id) => document.getElementById(id);

  // Byte-pair encoding, as in chapters_src/tokenization/byte_pair.py ----------------------------------------

  const WORD =
    /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

  // A visible character for each byte: its own in Latin-1 if that can be seen, else one from U+0100 on.
  const alphabet = [];
  let substitute = 256;
  for (let byte = 0; byte < 256; byte++) {
    const seen = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
    alphabet.push(String.fromCharCode(seen ? byte : substitute++));
  }
  const byteOf = new Map(alphabet.map((character, byte) => [character, byte]));

  const ranks = new Map(data.merges.split("\n").map((pair, rank) => [pair, rank]));
  const ids = new Map([...alphabet].sort().map((character, i) => [character, data.first - 256 + i]));
  [...ranks.keys()].forEach((pair, rank) => ids.set(pair.replace(" ", ""), data.first + rank));

  function piecesOfWord(word) {
    const pieces = Array.from(new TextEncoder().encode(word), (byte) => alphabet[byte]);
    for (;;) {
      let best = Infinity;
      for (let i = 0; i + 1 < pieces.length; i++) {
        best = Math.min(best, ranks.get(`${pieces[i]} ${pieces[i + 1]}`) ?? Infinity);
      }
      if (best === Infinity) return pieces;
      for (let i = 0; i + 1 < pieces.length; i++) {
        if (ranks.get(`${pieces[i]} ${pieces[i + 1]}`) === best) pieces.splice(i, 2, pieces[i] + pieces[i + 1]);
      }
    }
  }

  const tokenize = (text) => (text.match(WORD) ?? []).flatMap(piecesOfWord);

  // A piece as a reader would write it; bytes that are no character on their own stay numbers.
  function readable(piece) {
    const bytes = Uint8Array.from(piece, (character) => byteOf.get(character));
    try {
      const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
      return text.replaceAll(" ", "␣").replaceAll("\t", "⇥").replace(/[\p{C}\p{Z}]/gu, hex);
    } catch {
      return Array.from(bytes, (byte) => `⟨${byte.toString(16).toUpperCase()}⟩`).join("");
    }
  }
  const hex = (character) => `⟨${character.codePointAt(0).toString(16).toUpperCase()}⟩`;

  window.frontEncode = (text) => tokenize(text).map((piece) => ids.get(piece)); // for the test

  // The two panels ---------------------------------------------------------------------------------------------

  function chip(text, below) {
    const item = document.createElement("li");
    const shown = document.createElement("bdi");
    const small = document.createElement("small");
    item.className = "front-chip";
    shown.textContent = text;
    small.textContent = below;
    item.append(shown, small);
    return item;
  }

  const count = (number, one) => `${number} ${one}${number === 1 ? "" : "s"}`;

  function showTokens() {
    const text = byId("front-text").value;
    const pieces = tokenize(text);
    byId("front-tokens").replaceChildren(...pieces.map((piece) => chip(readable(piece), ids.get(piece))));
    byId("front-count").textContent = `${count(pieces.length, "token")} for ${count([...text].length, "character")}`;
  }

  function showAttention(from) {
    const { tokens, weights } = data.looks[byId("front-sentence").selectedIndex];
    const row = weights[from];
    const percent = (weight) => `${(weight / 10).toFixed(0)}%`;
    byId("front-attention").replaceChildren(
      ...tokens.map((token, place) => {
        const item = chip("", percent(row[place]));
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = token;
        button.setAttribute("aria-pressed", place === from);
        button.addEventListener("click", () => {
          showAttention(place);
          byId("front-attention").children[place].querySelector("button").focus();
        });
        item.classList.add("front-weight");
        item.style.setProperty("--weight", row[place] / 1000);
        if (place === from) item.setAttribute("aria-current", "true");
        item.firstChild.replaceWith(button);
        return item;
      })
    );
    const most = tokens.map((_, place) => place).sort((one, other) => row[other] - row[one]).slice(0, 3);
    byId("front-look").textContent =
      `${tokens[from]} attends to ` + most.map((place) => `${tokens[place]} ${percent(row[place])}`).join(", ");
  }

  const figure = byId("front-picture");
  figure.querySelectorAll(".front-field").forEach((field) => (field.hidden = false));
  figure.querySelectorAll(".front-still").forEach((title) => (title.hidden = true));
  byId("front-text").addEventListener("input", showTokens);
  byId("front-sentence").addEventListener("change", () => {
    showAttention(data.looks[byId("front-sentence").selectedIndex].from);
  });
  showTokens();
  showAttention(data.looks[byId("front-sentence").selectedIndex].from);
})();
