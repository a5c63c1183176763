#include "kernel/backends/device/matrix_source.hpp"

#include <fmt/format.h>

#include "kernel/backends/device/source_beginning.hpp"

namespace widelimit {
namespace {

/// What kernels begin with: the states of a pair, what is kept of it, and the work-group's share.
constexpr const char* pair_beginning = R"(
  const int lane = (int)get_local_id(0), share = (int)(get_group_id(0) % shares);
  const ulong pair = first_pair + get_group_id(0) / shares, size = (ulong)offsets[0];
  global const real *left = lefts + pairs[3 * pair], *right = rights + pairs[3 * pair + 1];
  global real* numbers = kept + get_group_id(0) / shares * (KERNELS * size);
)";

constexpr const char* matrix_function = R"(
// A matrix of one kernel: `place` has where it is, where it begins, and how far rows and columns are.
inline global const real* matrix_at(global const int* place, global const real* left, global const real* right,
                                    global const real* numbers, ulong of_kernel) {
  if (place[0] == 0) return left + place[1];
  if (place[0] == 1) return right + place[1];
  return numbers + place[1] + of_kernel;
}
)";

constexpr const char* product_body = R"(
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
)";

constexpr const char* values_body = R"(
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
)";

constexpr const char* spread_body = R"(
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
)";

constexpr const char* sums_body = R"(
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
)";

constexpr const char* scaled_body = R"(
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
)";

void append_place(const MatrixPlace& place, std::vector<int>& numbers) {
  numbers.push_back(static_cast<int>(place.in));
  for (const Index number : {place.first, place.row, place.column})
    numbers.push_back(static_cast<int>(number));
}

std::vector<int> as_ints(std::initializer_list<Index> numbers) {
  std::vector<int> result;
  for (const Index number : numbers) result.push_back(static_cast<int>(number));
  return result;
}

}  // namespace

const char* const kept_planes_functions = R"(
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
)";

void append_numbers(const KeptPlanes& planes, std::vector<int>& numbers) {
  for (const Index3& axes : {planes.left, planes.right, planes.low, planes.count})
    for (const Index number : axes) numbers.push_back(static_cast<int>(number));
  numbers.push_back(static_cast<int>(planes.first));
}

std::string MatrixSource::literal(double number) const { return literal_of(number, options_.precision); }

std::string MatrixSource::beginning() const {
  return source_beginning(options_.precision) + around_function + kept_planes_functions + matrix_function +
         fmt::format("#define KERNELS {}\n#define GROUP {}\n#define DEPTH 16\n", kernels(), options_.group);
}

std::string MatrixSource::head() const { return run_kernel_head(options_) + pair_beginning; }

MatrixKernel MatrixSource::product(const MatrixProduct& product) const {
  // 4 x 4 results an item.
  const Index across = options_.group % 8 == 0 ? 8 : 1, down = options_.group / across;
  MatrixKernel kernel{.source = beginning(),
                      .numbers = as_ints({size_, product.of_both_kernels ? kernels() : 1, product.rows,
                                          product.columns, product.depth, product.to}),
                      .items = product.rows * product.columns};
  append_place(product.left, kernel.numbers);
  append_place(product.right, kernel.numbers);
  kernel.source += fmt::format(
      "#define ACROSS {}\n#define DOWN {}\n#define ROWS (4 * DOWN)\n#define COLUMNS (4 * ACROSS)\n"
      "// Numbers of an item are in registers only where their places are known.\n"
      "#define UNROLL _Pragma(\"unroll\")\n",
      across, down);
  kernel.source += head() + product_body;
  return kernel;
}

MatrixKernel MatrixSource::values(const KeptPlanes& from, const MatrixValues& values) const {
  const Index d = widelimit::product(from.left), e = widelimit::product(from.right);
  MatrixKernel kernel{.source = beginning(), .numbers = as_ints({size_, d, e}), .items = d * e};
  append_numbers(from, kernel.numbers);
  for (const Index number : {values.to, values.clear_from, values.clear_count})
    kernel.numbers.push_back(static_cast<int>(number));
  kernel.source += fmt::format("#define WEIGHT {}\n#define ENCODINGS {}\n#define ADDED {}\n",
                               literal(values.weight), values.encodings ? 1 : 0, values.adds_values ? 2 : 0);
  kernel.source += head() + values_body;
  return kernel;
}

MatrixKernel MatrixSource::spread(Index from, const KeptPlanes& to, double factor, double bias) const {
  MatrixKernel kernel{.source = beginning(),
                      .numbers = as_ints({size_, widelimit::product(to.right), to.size(), from}),
                      .items = to.size()};
  append_numbers(to, kernel.numbers);
  kernel.source += fmt::format("#define FACTOR {}\n#define BIAS {}\n", literal(factor), literal(bias));
  kernel.source += head() + spread_body;
  return kernel;
}

MatrixKernel MatrixSource::spread(const MatrixPlace& left, const MatrixPlace& right, Index depth,
                                  const KeptPlanes& to, double factor, double bias) const {
  MatrixKernel kernel{
      .source = beginning(), .numbers = as_ints({size_, depth, to.size()}), .items = to.size()};
  append_numbers(to, kernel.numbers);
  append_place(left, kernel.numbers);
  append_place(right, kernel.numbers);
  kernel.source += fmt::format("#define FACTOR {}\n#define BIAS {}\n", literal(factor), literal(bias));
  kernel.source += head() + sums_body;
  return kernel;
}

MatrixKernel MatrixSource::scaled(const KeptPlanes& from, const KeptPlanes& to, Index left_state,
                                  Index right_state) const {
  MatrixKernel kernel{.source = beginning() + head() + scaled_body,
                      .numbers = as_ints({size_, to.size(), left_state, right_state}),
                      .items = to.size()};
  append_numbers(to, kernel.numbers);
  append_numbers(from, kernel.numbers);
  return kernel;
}

}  // namespace widelimit
