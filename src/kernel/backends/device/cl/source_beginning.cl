// Parts of OpenCL programs, each from its //// line to the next: constants of the same names (device_text.cmake).
//// exact_sums
// Adds a number to the sum of all before, and what rounding loses of it.
inline void add(real* sum, real* low, real part) {
  const real both = *sum + part, added = both - *sum;
  *low += (*sum - (both - added)) + (part - added);
  *sum = both;
}

// Adds the products of numbers `step` apart, with what rounding loses of each.
inline void add_products(global const real* x, global const real* y, int count, int step, real* sum, real* low) {
  for (int c = 0; c < count * step; c += step) {
    const real product = x[c] * y[c];
    *low += fma(x[c], y[c], -product);
    add(sum, low, product);
  }
}
