// A matrix of 8-bit weights times a vector of 16-bit numbers, in AssemblyScript: eight products an instruction.
//
// Row r of the result is scale * scales[r] * (the sum over c of weights[r, c] * input[c]). Addresses are in
// bytes; `columns` is a multiple of 8. The caller chooses a range of the input with which no sum leaves 32 bits.
export function times(
  weights: usize, scales: usize, input: usize, output: usize, rows: i32, columns: i32, scale: f32,
): void {
  for (let row = 0; row < rows; row++) {
    let sums = i32x4.splat(0);
    for (let column = 0; column < columns; column += 8) {
      const eight = v128.load_ext<i8>(weights + column); // 8 weights, widened to 16 bits
      sums = i32x4.add(sums, i32x4.dot_i16x8_s(eight, v128.load(input + 2 * column)));
    }
    const sum = i32x4.extract_lane(sums, 0) + i32x4.extract_lane(sums, 1)
      + i32x4.extract_lane(sums, 2) + i32x4.extract_lane(sums, 3);
    store<f32>(output + 4 * row, <f32>sum * scale * load<f32>(scales + 4 * row));
    weights += columns;
  }
}
