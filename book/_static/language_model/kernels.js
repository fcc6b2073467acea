// Matrices in 8 bits, multiplied in WebAssembly (kernels.ts); and the same weights as floats where there is none.
(() => {
  const languageModel = (window.languageModel ||= {});
  const PAGE = 65_536; // bytes: WebAssembly's unit of memory
  const LARGEST_SUM = 2 ** 31 - 1;

  // Start the kernel, or return null where the browser has no WebAssembly, or none with SIMD. `tensors` are all
  // that the model will ask for; of those with scales each becomes a matrix in the memory of the kernel.
  async function startKernels(base64, tensors) {
    try {
      const matrices = tensors.filter(({ scales }) => scales);
      const [rows, columns] = [0, 1].map((axis) => Math.max(...matrices.map(({ shape }) => shape[axis])));
      const numBytes = matrices.reduce(
        (sum, { weights, scales }) => sum + aligned(weights.length) + aligned(4 * scales.length),
        0,
      );
      const pages = Math.ceil((numBytes + aligned(2 * columns) + aligned(4 * rows)) / PAGE);
      const memory = new WebAssembly.Memory({ initial: pages });
      const code = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
      const { instance } = await WebAssembly.instantiate(code, { env: { memory } });
      return new Kernels(instance.exports.times, memory, rows, columns);
    } catch {
      return null;
    }
  }

  const aligned = (length) => Math.ceil(length / 16) * 16;

  // The kernel, and what lies in its memory: a vector that goes in, one that comes out, and the matrices.
  class Kernels {
    constructor(times, memory, rows, columns) {
      Object.assign(this, { times, memory });
      this.end = 0;
      this.input = this.reserve(2 * columns);
      this.output = this.reserve(4 * rows);
    }

    reserve(length) {
      const start = this.end;
      this.end += aligned(length);
      return start;
    }

    matrix({ shape: [rows, columns], weights, scales }) {
      const places = { weights: this.reserve(weights.length), scales: this.reserve(4 * rows) };
      new Int8Array(this.memory.buffer).set(weights, places.weights);
      new Float32Array(this.memory.buffer, places.scales, rows).set(scales);
      return new Int8Matrix(this, rows, columns, places);
    }
  }

  class Int8Matrix {
    constructor(kernels, rows, columns, places) {
      Object.assign(this, { rows, columns, kernels, places });
      // Weights are at most 127: with this range of the input no sum leaves 32 bits.
      this.range = Math.min(32_767, Math.floor(LARGEST_SUM / (127 * columns)));
      this.input = new Int16Array(kernels.memory.buffer, kernels.input, columns);
      this.output = new Float32Array(kernels.memory.buffer, kernels.output, rows);
    }

    row(number) {
      const { memory } = this.kernels;
      const weights = new Int8Array(memory.buffer, this.places.weights + number * this.columns, this.columns);
      const [scale] = new Float32Array(memory.buffer, this.places.scales + 4 * number, 1);
      return Float32Array.from(weights, (weight) => weight * scale);
    }

    // The product with a vector, which is rounded to 16 bits before: its largest number becomes the range's end.
    times(vector) {
      let largest = 0;
      for (let i = 0; i < vector.length; i++) largest = Math.max(largest, Math.abs(vector[i]));
      const scale = largest / this.range || 1;
      for (let i = 0; i < vector.length; i++) this.input[i] = Math.round(vector[i] / scale);
      const { kernels, places, rows, columns } = this;
      kernels.times(places.weights, places.scales, kernels.input, kernels.output, rows, columns, scale);
      return this.output.slice();
    }
  }

  // The same weights as numbers of 32 bits: each times the scale of its row.
  function inFloats({ shape: [rows, columns], weights, scales }) {
    const numbers = new Float32Array(weights.length);
    for (let i = 0; i < numbers.length; i++) numbers[i] = weights[i] * scales[Math.floor(i / columns)];
    return new languageModel.Matrix(numbers, rows, columns);
  }

  Object.assign(languageModel, { startKernels, inFloats });
})();
