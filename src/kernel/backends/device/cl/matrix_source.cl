// Parts of OpenCL programs, each from its //// line to the next: constants of the same names (device_text.cmake).
//// around_function
/// A function `around(d, n)`: d modulo n, at least 0.
inline int around(int d, int n) {
  d %= n;
  return d < 0 ? d + n : d;
}
//// pair_beginning
/// What kernels begin with: the states of a pair, what is kept of it, and the work-group's share.
  const int lane = (int)get_local_id(0), share = (int)(get_group_id(0) % shares);
  const ulong pair = first_pair + get_group_id(0) / shares, size = (ulong)offsets[0];
  global const real *left = lefts + pairs[3 * pair], *right = rights + pairs[3 * pair + 1];
  global real* numbers = kept + get_group_id(0) / shares * (KERNELS * size);
//// matrix_function
// A matrix of one kernel: `place` has where it is, where it begins, and how far rows and columns are.
inline global const real* matrix_at(global const int* place, global const real* left, global const real* right,
                                    global const real* numbers, ulong of_kernel) {
  if (place[0] == 0) return left + place[1];
  if (place[0] == 1) return right + place[1];
  return numbers + place[1] + of_kernel;
}
//// product_body
  local real a[ROWS * (DEPTH + 1)], b[COLUMNS * (DEPTH + 1)];
  const int x = lane % ACROSS, y = lane / ACROSS;
  const int kernels = offsets[1], rows = offsets[2], columns = offsets[3], depth = offsets[4];
  global const int *l = offsets + 6, *r = offsets + 10;
  const int across = (columns + COLUMNS - 1) / COLUMNS, tiles = across * ((rows + ROWS - 1) / ROWS);
  for (int tile = share; tile < tiles * kernels; tile += (int)shares) {
    const ulong of_kernel = tile / tiles * size;
    const int first_row = tile % tiles / across * ROWS, first_column = tile % tiles % across * COLUMNS;
    global const real *m = matrix_at(l, left, right, numbers, of_kernel),
                      *n = matrix_at(r, left, right, numbers, of_kernel);
    real sum[16], low[16];
UNROLL
    for (int i = 0; i < 16; ++i) sum[i] = low[i] = 0;
    for (int block = 0; block < depth; block += DEPTH) {
      barrier(CLK_LOCAL_MEM_FENCE);
      // Neighbouring items read neighbouring numbers.
      for (int i = lane; i < ROWS * DEPTH; i += GROUP) {
        const int row = l[3] == 1 ? i / DEPTH : i % ROWS, c = l[3] == 1 ? i % DEPTH : i / ROWS;
        const int there = first_row + row < rows && block + c < depth;
        a[row * (DEPTH + 1) + c] = there ? m[(first_row + row) * l[2] + (block + c) * l[3]] : 0;
      }
      for (int i = lane; i < COLUMNS * DEPTH; i += GROUP) {
        const int column = r[3] == 1 ? i % COLUMNS : i / DEPTH, c = r[3] == 1 ? i / COLUMNS : i % DEPTH;
        const int there = first_column + column < columns && block + c < depth;
        b[column * (DEPTH + 1) + c] = there ? n[(block + c) * r[2] + (first_column + column) * r[3]] : 0;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      real part[16];
UNROLL
      for (int i = 0; i < 16; ++i) part[i] = 0;
      for (int c = 0; c < DEPTH; ++c) {
        real of_row[4], of_column[4];
UNROLL
        for (int i = 0; i < 4; ++i) {
          of_row[i] = a[(y + i * DOWN) * (DEPTH + 1) + c];
          of_column[i] = b[(x + i * ACROSS) * (DEPTH + 1) + c];
        }
UNROLL
        for (int i = 0; i < 16; ++i) part[i] = fma(of_row[i / 4], of_column[i % 4], part[i]);
      }
UNROLL
      for (int i = 0; i < 16; ++i) add(&sum[i], &low[i], part[i]);
    }
UNROLL
    for (int i = 0; i < 16; ++i) {
      const int row = first_row + y + i / 4 * DOWN, column = first_column + x + i % 4 * ACROSS;
      if (row < rows && column < columns)
        numbers[of_kernel + offsets[5] + row * columns + column] = sum[i] + low[i];
    }
  }
}
//// values_body
  global const int* planes = offsets + 3;
  const int d = offsets[1], e = offsets[2], to = offsets[16];
  for (int n = share * GROUP + lane; n < d * e; n += (int)shares * GROUP) {
    const int from = place_in(planes, n / e, n % e);
    const real encoding = ENCODINGS ? table[n] : 0, value = fma(WEIGHT, numbers[from], encoding);
    numbers[to + n] = value;
#if KERNELS == 2
    numbers[to + size + n] = ADDED * value + fma(WEIGHT, numbers[size + from], encoding);
#endif
  }
  for (int n = share * GROUP + lane; n < offsets[18]; n += (int)shares * GROUP) numbers[offsets[17] + n] = 0;
}
//// spread_body
  global const int* planes = offsets + 4;
  const int columns = offsets[1], count = offsets[2], from = offsets[3], to = planes[12];
  for (int n = share * GROUP + lane; n < count; n += (int)shares * GROUP) {
    int a, b;
    if (!positions_at(planes, n, &a, &b)) continue;
    for (int kernel_number = 0; kernel_number < KERNELS; ++kernel_number)
      numbers[kernel_number * size + to + n] =
          fma(FACTOR, numbers[kernel_number * size + from + a * columns + b], BIAS);
  }
}
//// sums_body
  global const int *planes = offsets + 3, *l = offsets + 16, *r = offsets + 20;
  const int depth = offsets[1], count = offsets[2], to = planes[12];
  for (int i = share * GROUP + lane; i < KERNELS * count; i += (int)shares * GROUP) {
    int a, b;
    const ulong of_kernel = i / count * size;
    if (!positions_at(planes, i % count, &a, &b)) continue;
    global const real *m = matrix_at(l, left, right, numbers, of_kernel) + a * l[2],
                      *n = matrix_at(r, left, right, numbers, of_kernel) + b * r[3];
    real sum = 0, low = 0;
    for (int block = 0; block < depth; block += DEPTH) {
      real part = 0;
      const int end = min(block + DEPTH, depth);
      for (int c = block; c < end; ++c) part = fma(m[c * l[3]], n[c * r[2]], part);
      add(&sum, &low, part);
    }
    numbers[of_kernel + to + i % count] = fma(FACTOR, sum + low, BIAS);
  }
}
//// scaled_body
  global const int *to = offsets + 4, *from = offsets + 17;
  for (int n = share * GROUP + lane; n < offsets[1]; n += (int)shares * GROUP) {
    int a, b;
    if (!positions_at(to, n, &a, &b)) continue;
    const int place = place_in(from, a, b);
    const real factor = left[offsets[2] + a] * right[offsets[3] + b];
    for (int kernel_number = 0; kernel_number < KERNELS; ++kernel_number)
      numbers[kernel_number * size + to[12] + n] = factor * numbers[kernel_number * size + place];
  }
}
//// kept_planes_functions
/// Functions `place_in(planes, a, b)`, the place of an entry of what is kept, for flat positions of both inputs, and
/// `positions_at(planes, n, &a, &b)`, the positions of a place: false if there are none. `planes` are these numbers.
inline int place_in(global const int* planes, int a, int b) {
  int place = 0, position = 0, step = 1, steps = 1;
  for (int k = 2; k >= 0; --k) {
    const int left = planes[k], right = planes[3 + k], count = planes[9 + k], x = a % left, y = b % right;
    a /= left;
    b /= right;
    place += (count == right ? around(y - x, right) : y - x - planes[6 + k]) * steps;
    position += x * step;
    steps *= count;
    step *= left;
  }
  return planes[12] + place * step + position;
}

inline int positions_at(global const int* planes, int n, int* a, int* b) {
  int step = 1;
  int x[3];
  *a = *b = 0;
  for (int k = 2; k >= 0; --k) {
    x[k] = n % planes[k];
    n /= planes[k];
    *a += x[k] * step;
    step *= planes[k];
  }
  step = 1;
  for (int k = 2; k >= 0; --k) {
    const int right = planes[3 + k], count = planes[9 + k], displacement = n % count;
    n /= count;
    const int y = count == right ? (x[k] + displacement) % right : x[k] + displacement + planes[6 + k];
    if (y < 0 || y >= right) return 0;
    *b += y * step;
    step *= right;
  }
  return 1;
}
