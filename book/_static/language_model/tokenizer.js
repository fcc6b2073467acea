// The tokenizer of chapter 12's language model: byte-level byte-pair encoding, which chapter 03 builds.
(() => {
  const languageModel = (window.languageModel ||= {});

  // Text is cut into words before anything is merged: a space belongs to the word that follows it.
  // \p{White_Space} instead of \s, which means something slightly different in JavaScript.
  const WORD =
    /'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;
  const words = (text) => text.match(WORD) ?? [];
  const STAND_INS = { " ": "␣", "\n": "⏎", "\t": "⇥", "\r": "␍" };

  // Each of the 256 bytes is written as one visible character: a printable one as itself, the rest from U+0100 on.
  function visibleBytes() {
    const isPrintable = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
    let next = 256;
    return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isPrintable(byte) ? byte : next++));
  }
  const CHARACTER_OF_BYTE = visibleBytes();
  const spell = (word) => Array.from(new TextEncoder().encode(word), (byte) => CHARACTER_OF_BYTE[byte]);
  const BYTE_OF_CHARACTER = new Map(CHARACTER_OF_BYTE.map((character, byte) => [character, byte]));

  // The pairs that wait to be merged, the smallest rank first, and of equal ranks the leftmost: a binary heap.
  class Queue {
    entries = [];

    static isBefore(a, b) {
      return a.rank < b.rank || (a.rank === b.rank && a.place < b.place);
    }

    push(entry) {
      const { entries } = this;
      let at = entries.length;
      while (at > 0 && Queue.isBefore(entry, entries[(at - 1) >> 1])) {
        entries[at] = entries[(at - 1) >> 1];
        at = (at - 1) >> 1;
      }
      entries[at] = entry;
    }

    pop() {
      const { entries } = this;
      const first = entries[0];
      const last = entries.pop();
      if (entries.length === 0) return first;
      let at = 0;
      for (let child = 1; child < entries.length; child = 2 * at + 1) {
        if (child + 1 < entries.length && Queue.isBefore(entries[child + 1], entries[child])) child++;
        if (!Queue.isBefore(entries[child], last)) break;
        entries[at] = entries[child];
        at = child;
      }
      entries[at] = last;
      return first;
    }
  }

  class Tokenizer {
    // `content` is what tokenizer.json holds.
    constructor(content) {
      check(content);
      const { vocab, merges } = content.model;
      this.vocabulary = new Map(Object.entries(vocab));
      this.merges = new Map(); // from a pair of ids to its rank and the id of the merged piece
      merges.forEach((merge, rank) => {
        const [left, right] = typeof merge === "string" ? merge.split(" ") : merge;
        const ids = [left, right, left + right].map((piece) => this.vocabulary.get(piece));
        if (ids.includes(undefined))
          throw new Error(`tokenizer.json merges "${left}" and "${right}", but a piece is missing.`);
        this.merges.set(pairKey(ids[0], ids[1]), { rank, id: ids[2] });
      });
      this.pieces = [];
      for (const [piece, id] of this.vocabulary) this.pieces[id] = piece;
      this.added = new Map(); // tokens that are found in a text as a whole, by their content
      this.special = new Set(); // ids of those that stand for no text
      for (const { id, content: text, special } of content.added_tokens ?? []) {
        this.added.set(text, id);
        this.pieces[id] = text;
        if (special) this.special.add(id);
      }
      const longestFirst = [...this.added.keys()].sort((a, b) => b.length - a.length);
      this.addedPattern = longestFirst.length
        ? new RegExp(`(${longestFirst.map(escape).join("|")})`, "u")
        : null;
      this.known = new Map(); // words that were encoded before
    }

    // From a text to the ids of its tokens.
    encode(text) {
      text = text.replace(/\p{Surrogate}/gu, "\uFFFD"); // half a surrogate pair has no bytes in UTF-8
      const ids = [];
      for (const part of this.addedPattern ? text.split(this.addedPattern) : [text]) {
        if (this.added.has(part)) ids.push(this.added.get(part));
        else for (const word of words(part)) for (const id of this.encodeWord(word)) ids.push(id);
      }
      return ids;
    }

    encodeWord(word) {
      if (this.known.has(word)) return this.known.get(word);
      const ids = this.merge(spell(word).map((character) => this.vocabulary.get(character)));
      if (word.length < 64 && this.known.size < 10_000) this.known.set(word, ids);
      return ids;
    }

    // Merge pairs of neighbors, always the one that was learned first, until no pair is left that was learned.
    // Of each piece we keep its neighbors, so that a merge costs the same in a long word as in a short one.
    merge(ids) {
      ids = ids.filter((id) => id !== undefined); // a byte that is not in the vocabulary is left out
      const previous = ids.map((_, place) => place - 1);
      const next = ids.map((_, place) => place + 1);
      const queue = new Queue();
      const consider = (place) => {
        if (place < 0 || next[place] >= ids.length) return;
        const merge = this.merges.get(pairKey(ids[place], ids[next[place]]));
        if (merge) queue.push({ rank: merge.rank, place, id: merge.id });
      };
      ids.forEach((_, place) => consider(place));
      while (queue.entries.length) {
        const { place, id } = queue.pop();
        const right = next[place];
        // Since it was queued, one of the two may have become part of another piece.
        if (
          ids[place] === null ||
          right >= ids.length ||
          this.merges.get(pairKey(ids[place], ids[right]))?.id !== id
        )
          continue;
        ids[place] = id;
        ids[right] = null;
        next[place] = next[right];
        if (next[place] < ids.length) previous[next[place]] = place;
        consider(previous[place]);
        consider(place);
      }
      return ids.filter((id) => id !== null);
    }

    // From ids to a text, without special tokens. Bytes that form no character become U+FFFD.
    decode(ids) {
      const bytes = ids.filter((id) => !this.special.has(id)).flatMap((id) => this.bytes(id));
      return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
    }

    // The bytes of one token.
    bytes(id) {
      const piece = this.pieces[id];
      if (piece === undefined)
        throw new Error(`There is no token ${id}: the vocabulary ends at ${this.pieces.length - 1}.`);
      const bytes = Array.from(piece, (character) => BYTE_OF_CHARACTER.get(character));
      return this.added.has(piece) || bytes.includes(undefined)
        ? [...new TextEncoder().encode(piece)]
        : bytes;
    }

    // One token as its reader should see it: spaces and line ends as signs, what cannot be seen as bytes.
    piece(id) {
      const bytes = this.bytes(id);
      if (this.special.has(id)) return this.pieces[id];
      try {
        const text = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true }).decode(
          Uint8Array.from(bytes),
        );
        return text.replace(
          /[\p{C}\p{Z}]/gu,
          (sign) => STAND_INS[sign] ?? inHexadecimal([...new TextEncoder().encode(sign)]),
        );
      } catch {
        return inHexadecimal(bytes); // part of a character
      }
    }
  }

  const inHexadecimal = (bytes) =>
    bytes.map((byte) => `<${byte.toString(16).toUpperCase().padStart(2, "0")}>`).join("");
  const pairKey = (left, right) => left * 0x1000000 + right;
  const escape = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");

  // Other tokenizers would give other tokens, and the model nonsense: refuse what is not of the recipe's kind.
  function check(content) {
    const isByteLevel = ({ type, add_prefix_space, use_regex } = {}) =>
      type === "ByteLevel" && add_prefix_space === false && use_regex !== false;
    const { type, unk_token, continuing_subword_prefix, end_of_word_suffix, byte_fallback, ignore_merges } =
      content?.model ?? {};
    const isPlain = ![
      unk_token,
      continuing_subword_prefix,
      end_of_word_suffix,
      byte_fallback,
      ignore_merges,
    ].some(Boolean);
    const isAddedPlain = (content?.added_tokens ?? []).every(
      (token) => !token.single_word && !token.lstrip && !token.rstrip,
    );
    if (
      type !== "BPE" ||
      content.normalizer ||
      !isByteLevel(content.pre_tokenizer ?? {}) ||
      !isPlain ||
      !isAddedPlain
    ) {
      throw new Error(
        "tokenizer.json is of a kind that this page cannot run: it runs byte-level byte-pair encoding as recipes/language_model.py trains it.",
      );
    }
  }

  Object.assign(languageModel, { Tokenizer, words, spell, alphabet: CHARACTER_OF_BYTE });
})();
