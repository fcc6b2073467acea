// Loading: the book's language model from beside this script, or a reader's own checkpoint from its files.
(() => {
  const languageModel = (window.languageModel ||= {});
  const FOLDER = document.currentScript.src.replace(/[^/]*$/, "");
  const NEEDED = ["config.json", "model.safetensors", "tokenizer.json"];

  // --- The book's model: weights in 8 bits, written by tools/website/language_model.py, in scripts, because a
  // page that was opened from a folder may load scripts, but may not read files.

  let loading = null;

  // Load the book's model, once. `onProgress` gets the fraction that has arrived.
  function load(onProgress = () => {}) {
    loading ||= loadShipped(onProgress).catch((error) => {
      loading = null; // a second try starts anew
      throw error;
    });
    return loading.then((model) => {
      onProgress(1);
      return model;
    });
  }

  async function loadShipped(onProgress) {
    await loadScript("weights.js", () => languageModel.shipped);
    const { config, tokenizer, kernel, tensors, parts } = languageModel.shipped;
    const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
    let start = 0;
    for (const [number, part] of parts.entries()) {
      onProgress(number / parts.length);
      const name = `weights-${number + 1}.js`;
      const encoded = await loadScript(name, () => languageModel.shipped.received?.[number]);
      receive(encoded, bytes.subarray(start, start + part.length), part.checksum, name);
      start += part.length;
    }
    delete languageModel.shipped;
    const found = (name) => {
      const { shape, weights, scales } = tensors[name];
      const numbers = (offset, length) => new Float32Array(bytes.buffer, offset, length);
      if (scales === undefined) return { shape, weights: numbers(weights, shape[0]) };
      return {
        shape,
        weights: new Int8Array(bytes.buffer, weights, shape[0] * shape[1]),
        scales: numbers(scales, shape[0]),
      };
    };
    const kernels = await languageModel.startKernels(kernel, Object.keys(tensors).map(found));
    return assemble({
      config: readConfig(config, "the book's language model"),
      tokenizer: new languageModel.Tokenizer(tokenizer),
      engine: kernels ? "WebAssembly, 8 bits" : "JavaScript, 32 bits",
      tensors,
      matrix: (name) => (kernels ? kernels.matrix(found(name)) : languageModel.inFloats(found(name))),
      vector: (name) => found(name).weights.slice(),
    });
  }

  // Load a script beside this one, and return what it has left behind.
  function loadScript(name, result) {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = FOLDER + name;
      script.onerror = () => reject(notLoaded(`the file ${name} is missing`));
      script.onload = () =>
        result() === undefined ? reject(notLoaded(`the file ${name} is cut off`)) : resolve(result());
      document.head.append(script);
      script.remove();
    });
  }

  // Base64 to bytes. The checksum (Adler-32) finds what was damaged on the way.
  function receive(encoded, bytes, checksum, name) {
    let [a, b] = [1, 0];
    try {
      const binary = atob(encoded);
      if (binary.length !== bytes.length) throw new Error("length");
      for (let i = 0; i < binary.length; i++) {
        bytes[i] = binary.charCodeAt(i);
        a = (a + bytes[i]) % 65521;
        b = (b + a) % 65521;
      }
      if (b * 65536 + a !== checksum) throw new Error("checksum");
    } catch {
      throw notLoaded(`the file ${name} is damaged`);
    }
  }

  function notLoaded(what) {
    const advice = "Load the page again, or download the site anew.";
    return new Error(`The language model could not be loaded: ${what}. ${advice}`);
  }

  // --- A reader's checkpoint, from an <input type="file">, one folder or three files.

  async function fromFiles(fileList) {
    const files = chosen([...fileList]);
    const config = await readJson(files["config.json"]);
    const tokenizer = new languageModel.Tokenizer(await readJson(files["tokenizer.json"]));
    const tensors = await readSafetensors(files["model.safetensors"]);
    const folder = files["config.json"].webkitRelativePath?.split("/").at(-2);
    return assemble({
      config: readConfig(config, folder || "your checkpoint"),
      tokenizer,
      engine: "JavaScript, 32 bits",
      tensors,
      matrix: (name, rows, columns) => new languageModel.Matrix(tensors[name].numbers(), rows, columns),
      vector: (name) => tensors[name].numbers(),
    });
  }

  // The three files of one folder: of several folders the outermost that has them all.
  function chosen(files) {
    const folders = new Map();
    for (const file of files) {
      const path = file.webkitRelativePath || file.name;
      const folder = path.slice(0, path.length - file.name.length);
      folders.set(folder, { ...folders.get(folder), [file.name]: file });
    }
    const byDepth = [...folders]
      .sort(([a], [b]) => a.split("/").length - b.split("/").length)
      .map(([, found]) => found);
    const whole = byDepth.find((found) => NEEDED.every((name) => found[name]));
    if (whole) return whole;
    const best = byDepth.sort((a, b) => missing(a).length - missing(b).length)[0] ?? {};
    if (best["model.safetensors.index.json"]) {
      const advice = "save the model with a max_shard_size that is large enough for one model.safetensors";
      throw new Error(`The weights are in several files: ${advice}.`);
    }
    throw new Error(
      `Missing: ${missing(best).join(", ")}. Choose the folder that the recipe wrote; it has ${NEEDED.join(", ")}.`,
    );
  }

  const missing = (found) => NEEDED.filter((name) => !found[name]);

  async function readJson(file) {
    try {
      return JSON.parse(await file.text());
    } catch {
      throw new Error(`${file.name} cannot be read: it is damaged or cut off.`);
    }
  }

  // A safetensors file: the length of a header, the header in JSON, then the numbers of each tensor.
  async function readSafetensors(file) {
    const content = await file.arrayBuffer();
    const header = readHeader(content, file.name);
    const start = 8 + Number(new DataView(content).getBigUint64(0, true));
    const tensors = {};
    for (const [
      name,
      {
        dtype,
        shape,
        data_offsets: [from, to],
      },
    ] of Object.entries(header)) {
      if (start + to > content.byteLength) {
        const sizes = `it has ${content.byteLength} bytes, and ${name} would end at ${start + to}`;
        throw new Error(`${file.name} is cut off: ${sizes}. Copy the file again.`);
      }
      tensors[name] = {
        shape,
        numbers: () => toFloats(content.slice(start + from, start + to), dtype, name),
      };
    }
    return tensors;
  }

  function readHeader(content, name) {
    try {
      const length = Number(new DataView(content).getBigUint64(0, true));
      const { __metadata__, ...header } = JSON.parse(
        new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(content, 8, length)),
      );
      return header;
    } catch {
      throw new Error(
        `${name} is no file of weights in the format safetensors, or its beginning is damaged.`,
      );
    }
  }

  // bfloat16 is the first half of a float32.
  function toFloats(bytes, dtype, name) {
    if (dtype === "F32") return new Float32Array(bytes);
    if (dtype !== "BF16")
      throw new Error(`${name} is stored as ${dtype}: save the model in float32 or bfloat16.`);
    return new Float32Array(Uint32Array.from(new Uint16Array(bytes), (half) => half << 16).buffer);
  }

  // --- Both.

  // From config.json to the names of this book. What the code of model.js does not compute is refused.
  function readConfig(config, name) {
    const refuse = (what) => {
      throw new Error(
        `config.json describes ${what}: this page runs models of Llama's kind, as recipes/language_model.py makes them.`,
      );
    };
    if (config?.model_type !== "llama") refuse(`a model of the type "${config?.model_type}"`);
    const rope = config.rope_parameters ?? config.rope_scaling ?? {};
    if ((rope.rope_type ?? "default") !== "default")
      refuse(`rotary positions of the type "${rope.rope_type}"`);
    if (config.hidden_act !== "silu") refuse(`the activation "${config.hidden_act}"`);
    if (config.attention_bias || config.mlp_bias) refuse("projections with biases");
    const number = (key, otherwise) => {
      const value = config[key] ?? otherwise;
      return Number.isInteger(value) && value > 0 ? value : refuse(`no valid ${key}`);
    };
    const [hiddenSize, numHeads] = [number("hidden_size"), number("num_attention_heads")];
    return {
      name,
      numLayers: number("num_hidden_layers"),
      numHeads,
      numKeyValueHeads: number("num_key_value_heads", numHeads),
      headDim: number("head_dim", hiddenSize / numHeads),
      hiddenSize,
      intermediateSize: number("intermediate_size"),
      maxPositions: number("max_position_embeddings"),
      vocabularySize: number("vocab_size"),
      rotaryBase: rope.rope_theta ?? config.rope_theta ?? 10_000,
      normEpsilon: config.rms_norm_eps,
      tiesWeights: config.tie_word_embeddings === true,
      endId: [config.eos_token_id].flat()[0] ?? null,
    };
  }

  function assemble({ config, tokenizer, engine, tensors, matrix, vector }) {
    const known = tokenizer.pieces.length;
    if (known > config.vocabularySize) {
      throw new Error(
        `tokenizer.json has ${known} tokens and the model only ${config.vocabularySize}: they do not belong together.`,
      );
    }
    const checked =
      (get) =>
      (name, ...wanted) => {
        const shape = tensors[name]?.shape;
        if (!shape) throw new Error(`model.safetensors has no ${name}, which config.json asks for.`);
        if (String(shape) !== String(wanted)) {
          throw new Error(
            `${name} has the shape ${shape.join(" x ")}, and config.json asks for ${wanted.join(" x ")}.`,
          );
        }
        return get(name, ...wanted);
      };
    config.parameters = Object.values(tensors).reduce(
      (sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1),
      0,
    );
    return new languageModel.LanguageModel({
      config,
      tokenizer,
      engine,
      matrix: checked(matrix),
      vector: checked(vector),
    });
  }

  Object.assign(languageModel, { load, fromFiles });
})();
