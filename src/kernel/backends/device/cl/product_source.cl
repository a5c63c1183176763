// Parts of OpenCL programs, each from its //// line to the next: constants of the same names (device_text.cmake).
//// mean_product_function
/// A function `mean_product(x, y, count, &mean, &rest)` of vectors in global memory: the mean of their products, and
/// what rounding loses of it.
inline void mean_product(global const real* x, global const real* y, int count, real* mean, real* rest) {
  real sum = 0, low = 0;
  add_products(x, y, count, 1, &sum, &low);
  const real high = sum + low, lost = (sum - high) + low;
  *mean = high / count;
  *rest = (fma(-*mean, (real)count, high) + lost) / count;
}
//// multiples_function
/// pq - c^2 of multiples is below this share of pq: the angle_tolerance of multiples.cpp, twice.
inline int are_multiples(real p, real p_rest, real q, real q_rest, real c, real c_rest) {
  if (!(p > 0) || !(q > 0)) return 0;
  // Powers of 4, and of 2 for c, so that nothing leaves the range.
  const int left = ilogb(p) / 2, right = ilogb(q) / 2;
  p = ldexp(p, -2 * left);
  q = ldexp(q, -2 * right);
  c = ldexp(c, -left - right);
  p_rest = ldexp(p_rest, -2 * left);
  q_rest = ldexp(q_rest, -2 * right);
  c_rest = ldexp(c_rest, -left - right);
  const real square = c * c;
  const real difference = fma(p, q, -square) - fma(c, c, -square);
  return difference + fma(p, q_rest, fma(p_rest, q, -2 * c * c_rest)) <= ANGLE * p * q;
}
//// product_kernel
#define DEPTH 16
// Numbers of an item are in registers only where their places are known.
#define UNROLL _Pragma("unroll")
#define SQUARE (4 * SIDE)
__attribute__((reqd_work_group_size(SIDE * SIDE, 1, 1)))
kernel void products(global const real* lefts, ulong left_first, global const real* left_numbers, ulong left_count,
                     global const real* rights, ulong right_first, global const real* right_numbers,
                     ulong right_count, int rows, int columns, int symmetric, global real* values,
                     global uchar* multiples, int channels, ulong leading, ulong first, int source, real least) {
  local real a[SQUARE * (DEPTH + 1)], b[SQUARE * (DEPTH + 1)];
  const int item = (int)get_local_id(0), x = item % SIDE, y = item / SIDE;
  const int across = (columns + SQUARE - 1) / SQUARE, group = (int)get_group_id(0);
  const int first_row = group / across * SQUARE, first_column = group % across * SQUARE;
  lefts += first + left_first * leading;
  rights += first + right_first * leading;
  left_numbers += 2 * source * left_count;
  right_numbers += 2 * source * right_count;
  real sum[16], low[16];
UNROLL
  for (int n = 0; n < 16; ++n) sum[n] = low[n] = 0;
  for (int block = 0; block < channels; block += DEPTH) {
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int n = item; n < SQUARE * DEPTH; n += SIDE * SIDE) {
      const int i = n / DEPTH, c = n % DEPTH, row = first_row + i, column = first_column + i;
      const int there = block + c < channels;
      a[i * (DEPTH + 1) + c] = there && row < rows ? lefts[(ulong)row * leading + block + c] : 0;
      b[i * (DEPTH + 1) + c] = there && column < columns ? rights[(ulong)column * leading + block + c] : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    real part[16];
UNROLL
    for (int n = 0; n < 16; ++n) part[n] = 0;
    for (int c = 0; c < DEPTH; ++c) {
      real left[4], right[4];
UNROLL
      for (int n = 0; n < 4; ++n) {
        left[n] = a[(y + n * SIDE) * (DEPTH + 1) + c];
        right[n] = b[(x + n * SIDE) * (DEPTH + 1) + c];
      }
UNROLL
      for (int n = 0; n < 16; ++n) part[n] = fma(left[n / 4], right[n % 4], part[n]);
    }
UNROLL
    for (int n = 0; n < 16; ++n) add(&sum[n], &low[n], part[n]);
  }
UNROLL
  for (int n = 0; n < 16; ++n) {
    const int row = first_row + y + n / 4 * SIDE, column = first_column + x + n % 4 * SIDE;
    if (row >= rows || column >= columns) continue;
    const ulong i = left_first + row, j = right_first + column;
    const real p = left_numbers[i], q = right_numbers[j];
    real mean = (sum[n] + low[n]) / channels;
    int found = 0;
    if (symmetric && i == j) {
      mean = p;
    } else if (fabs(mean) > least * sqrt(p) * sqrt(q)) {
      real rest;
      mean_product(lefts + (ulong)row * leading, rights + (ulong)column * leading, channels, &mean, &rest);
      found = are_multiples(p, left_numbers[left_count + i], q, right_numbers[right_count + j], mean, rest);
    }
    const int place = row * columns + column;
    values[source * (ulong)rows * columns + place] = mean;
    multiples[place] = (uchar)(source > 0 ? multiples[place] | found : found);
  }
}
