// Parts of OpenCL programs, each from its //// line to the next: constants of the same names (device_text.cmake).
//// vector_functions
#define SIDE 64
#define PLACE(i, j) ((i) * (SIDE + 1) + (j))

// The mean of products, with the errors of a rounding or two.
inline real mean_product(global const real* x, global const real* y, int channels, real inverse) {
  real sum = 0, low = 0;
  add_products(x, y, channels, SIDE, &sum, &low);
  return (sum + low) * inverse;
}

// Whether y is the ratio times x, but for the rounding of its numbers.
inline int are_multiples(global const real* x, global const real* y, int channels, real ratio, real angle) {
  real rest = 0, square = 0;
  for (int c = 0; c < channels * SIDE; c += SIDE) {
    const real difference = fma(-ratio, x[c], y[c]);
    rest = fma(difference, difference, rest);
    square = fma(y[c], y[c], square);
  }
  return rest <= angle * square;
}
