// The language model of chapter 12 in plain JavaScript: attention, positions, norm, feed-forward network, cache.
//
// There is one text, and a step reads one token of it, so no mask is needed: a token attends to what is in the
// cache, and that is only itself and what came before it. Shapes: D numbers per head, T tokens so far.
(() => {
  const languageModel = (window.languageModel ||= {});

  // --- Chapter 07: attention.

  // softmax(query · keyᵀ / √D): how much the query attends to each of T keys.
  function attentionWeights(query, keys) {
    const scale = 1 / Math.sqrt(query.length);
    return softmax(keys.times(query).map((product) => product * scale));
  }

  // The average of T values, weighted: the output of one head.
  function weightedAverage(weights, values) {
    const { numbers, rows, columns } = values;
    const output = new Float64Array(columns);
    for (let t = 0; t < rows; t++) {
      const weight = weights[t];
      for (let i = 0; i < columns; i++) output[i] += weight * numbers[t * columns + i];
    }
    return output;
  }

  // Attention of all heads. `cache` has the keys and values of this layer, by head; `recorded` gets the weights.
  function multiHeadAttention(layer, x, angles, cache, config, recorded) {
    const queries = split(layer.query.times(x), config.headDim).map((query) => rotate(query, angles));
    const keys = split(layer.key.times(x), config.headDim).map((key) => rotate(key, angles));
    keys.forEach((key, head) => cache[head].keys.append(key));
    split(layer.value.times(x), config.headDim).forEach((value, head) => cache[head].values.append(value));
    const queriesPerKey = config.numHeads / config.numKeyValueHeads; // 1, unless heads share keys and values
    const outputs = queries.map((query, head) => {
      const { keys, values } = cache[Math.floor(head / queriesPerKey)];
      const weights = attentionWeights(query, keys);
      recorded?.push(weights);
      return weightedAverage(weights, values);
    });
    return layer.output.times(join(outputs));
  }

  // --- Chapter 08: positions, norm, feed-forward network, layer.

  // Rotary positions: number i and number i + D/2 of a query or key are a pair, turned by an angle that grows
  // with the position, fast for the first pair, slowly for the last. All layers share the angles.
  function rotaryAngles(position, { headDim, rotaryBase }) {
    const angles = Float64Array.from(
      { length: headDim / 2 },
      (_, i) => position * rotaryBase ** ((-2 * i) / headDim),
    );
    return { cos: angles.map(Math.cos), sin: angles.map(Math.sin) };
  }

  function rotate(head, { cos, sin }) {
    const half = cos.length;
    const rotated = new Float32Array(head.length);
    for (let i = 0; i < half; i++) {
      rotated[i] = head[i] * cos[i] - head[i + half] * sin[i];
      rotated[i + half] = head[i + half] * cos[i] + head[i] * sin[i];
    }
    return rotated;
  }

  // RMSNorm: divide by the root of the mean square, then multiply by learned gains.
  function rmsNorm(x, gain, epsilon) {
    const scale = 1 / Math.sqrt(dot(x, x) / x.length + epsilon);
    return x.map((number, i) => number * scale * gain[i]);
  }

  // SwiGLU: down(silu(gate(x)) * up(x)).
  function feedForward(layer, x) {
    const up = layer.up.times(x);
    return layer.down.times(layer.gate.times(x).map((number, i) => silu(number) * up[i]));
  }

  const silu = (number) => number / (1 + Math.exp(-number));

  // One layer: x + attention(norm(x)), then x + feedForward(norm(x)).
  function transformerLayer(layer, x, angles, cache, config, recorded) {
    const norm = (vector, gain) => rmsNorm(vector, gain, config.normEpsilon);
    x = add(x, multiHeadAttention(layer, norm(x, layer.attentionNorm), angles, cache, config, recorded));
    return add(x, feedForward(layer, norm(x, layer.feedForwardNorm)));
  }

  // --- Chapter 12: the model. Chapter 13: its memory.

  class LanguageModel {
    // `matrix(name, rows, columns)` and `vector(name, length)` find weights by their names in the checkpoint.
    constructor({ config, tokenizer, engine, matrix, vector }) {
      Object.assign(this, { config, tokenizer, engine });
      const { hiddenSize, intermediateSize, headDim, numHeads, numKeyValueHeads, vocabularySize } = config;
      this.embedding = matrix("model.embed_tokens.weight", vocabularySize, hiddenSize);
      this.layers = Array.from({ length: config.numLayers }, (_, number) => {
        const name = (rest) => `model.layers.${number}.${rest}.weight`;
        return {
          attentionNorm: vector(name("input_layernorm"), hiddenSize),
          query: matrix(name("self_attn.q_proj"), numHeads * headDim, hiddenSize),
          key: matrix(name("self_attn.k_proj"), numKeyValueHeads * headDim, hiddenSize),
          value: matrix(name("self_attn.v_proj"), numKeyValueHeads * headDim, hiddenSize),
          output: matrix(name("self_attn.o_proj"), hiddenSize, numHeads * headDim),
          feedForwardNorm: vector(name("post_attention_layernorm"), hiddenSize),
          gate: matrix(name("mlp.gate_proj"), intermediateSize, hiddenSize),
          up: matrix(name("mlp.up_proj"), intermediateSize, hiddenSize),
          down: matrix(name("mlp.down_proj"), hiddenSize, intermediateSize),
        };
      });
      this.norm = vector("model.norm.weight", hiddenSize);
      this.head = config.tiesWeights ? this.embedding : matrix("lm_head.weight", vocabularySize, hiddenSize);
    }

    emptyMemory() {
      return new Memory(this.config);
    }

    // Read tokens, one after the other; the memory grows. Returns the logits of the token that comes next, and
    // with `details` how the last token read attended, and its vector before the first layer and after each.
    read(ids, memory, { details = false } = {}) {
      this.check(ids, memory);
      const attention = details ? this.layers.map(() => []) : null;
      let hidden;
      ids.forEach((id, i) => (hidden = this.step(id, memory, i === ids.length - 1 ? attention : null)));
      const logits = this.layerLogits(hidden.at(-1));
      return details ? { logits, attention, hidden } : { logits };
    }

    // Read one token: its vector before the first layer, and after each.
    step(id, memory, attention) {
      const angles = rotaryAngles(memory.length, this.config);
      const hidden = [this.embedding.row(id)];
      this.layers.forEach((layer, number) => {
        const cache = memory.layers[number];
        hidden.push(transformerLayer(layer, hidden[number], angles, cache, this.config, attention?.[number]));
      });
      return hidden;
    }

    // What the vector after any layer would predict: final norm, then the product with each row of the head.
    layerLogits(hidden) {
      return this.head.times(rmsNorm(hidden, this.norm, this.config.normEpsilon));
    }

    check(ids, memory) {
      const { maxPositions, vocabularySize } = this.config;
      const total = memory.length + ids.length;
      if (ids.length === 0) throw new Error("There is no token to read.");
      if (total > maxPositions)
        throw new Error(`${total} tokens are too many: the context of this model is ${maxPositions} tokens.`);
      const outside = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= vocabularySize);
      if (outside !== undefined)
        throw new Error(`${outside} is no token of this model: they are 0 ... ${vocabularySize - 1}.`);
    }
  }

  // The key-value cache: in each layer and head the keys and values of all tokens so far, (T, D).
  class Memory {
    constructor({ numLayers, numKeyValueHeads, headDim }) {
      const empty = () => new Matrix(new Float32Array(0), 0, headDim);
      const heads = () =>
        Array.from({ length: numKeyValueHeads }, () => ({ keys: empty(), values: empty() }));
      this.layers = Array.from({ length: numLayers }, heads);
    }

    get length() {
      return this.layers[0][0].keys.rows;
    }

    copy() {
      const copied = Object.create(Memory.prototype);
      copied.layers = this.layers.map((heads) =>
        heads.map(({ keys, values }) => ({ keys: keys.copy(), values: values.copy() })),
      );
      return copied;
    }

    // Forget all but the first tokens.
    cut(length) {
      if (!(length >= 0 && length <= this.length))
        throw new Error(`A memory of ${this.length} tokens cannot be cut to ${length}.`);
      for (const { keys, values } of this.layers.flat()) keys.rows = values.rows = length;
    }
  }

  // --- Vectors and matrices.

  // The sum of the products, in four parts, which a processor adds at the same time.
  function dot(a, b, start = 0) {
    let sum0 = 0;
    let sum1 = 0;
    let sum2 = 0;
    let sum3 = 0;
    let i = 0;
    for (; i + 3 < b.length; i += 4) {
      sum0 += a[start + i] * b[i];
      sum1 += a[start + i + 1] * b[i + 1];
      sum2 += a[start + i + 2] * b[i + 2];
      sum3 += a[start + i + 3] * b[i + 3];
    }
    for (; i < b.length; i++) sum0 += a[start + i] * b[i];
    return sum0 + sum1 + sum2 + sum3;
  }

  const add = (a, b) => a.map((number, i) => number + b[i]);

  function softmax(scores) {
    let largest = -Infinity;
    for (let i = 0; i < scores.length; i++) largest = Math.max(largest, scores[i]);
    const exponentials = scores.map((score) => Math.exp(score - largest));
    let sum = 0;
    for (let i = 0; i < scores.length; i++) sum += exponentials[i];
    return exponentials.map((exponential) => exponential / sum);
  }

  // One vector as the vectors of its heads, and back.
  function split(vector, headDim) {
    return Array.from({ length: vector.length / headDim }, (_, head) =>
      vector.subarray(head * headDim, (head + 1) * headDim),
    );
  }

  function join(heads) {
    const vector = new Float32Array(heads.length * heads[0].length);
    heads.forEach((head, number) => vector.set(head, number * head.length));
    return vector;
  }

  // Rows of numbers, one behind the other: a linear layer, the table of an embedding, the keys of a head.
  class Matrix {
    constructor(numbers, rows, columns) {
      Object.assign(this, { numbers, rows, columns });
    }

    row(number) {
      return this.numbers.slice(number * this.columns, (number + 1) * this.columns);
    }

    // The product with a vector.
    times(vector) {
      const product = new Float32Array(this.rows);
      for (let row = 0; row < this.rows; row++) product[row] = dot(this.numbers, vector, row * this.columns);
      return product;
    }

    // One more row; where there is no room for it, we make room for as many again.
    append(row) {
      const end = this.rows * this.columns;
      if (end === this.numbers.length) {
        const larger = new Float32Array(Math.max(2 * end, 16 * this.columns));
        larger.set(this.numbers);
        this.numbers = larger;
      }
      this.numbers.set(row, end);
      this.rows += 1;
    }

    copy() {
      return new Matrix(this.numbers.slice(0, this.rows * this.columns), this.rows, this.columns);
    }
  }

  Object.assign(languageModel, { LanguageModel, Matrix });
})();
