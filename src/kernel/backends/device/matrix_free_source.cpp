#include "kernel/backends/device/matrix_free_source.hpp"

#include <algorithm>
#include <limits>

#include "kernel/backends/device/cl/matrix_free_source.hpp"
#include "kernel/backends/device/smooth_nonlinearities.hpp"
#include "kernel/backends/device/source_beginning.hpp"
#include "kernel/inputs/multiples.hpp"

namespace widelimit {
namespace {

using numerics::formula::Precision;
using numerics::formula::Statements;

/// Channels that are added up before they are added to the sum of all.
constexpr Index depth = 32;

template <typename Scalar>
double least_correlation(Index channels) {
  return static_cast<double>(least_correlation_of_multiples<Scalar>(channels));
}

}  // namespace

MatrixFreeSource::MatrixFreeSource(const Program& program, const StateLayout& layout, Precision precision,
                                   const std::function<Index(NodeId)>& channels_of)
    : program_{program}, layout_{layout}, precision_{precision} {
  const ScalarSource any = scalar(Kernel::nngp_only, false);
  sources_ = any.sources();
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    channels_.push_back(channels_of(sources_[s]));
    first_.push_back(numbers_);
    numbers_ += channels_.back();
  }
  variances_ = numbers_ + static_cast<Index>(any.numbers().size());
  size_ = variances_ + static_cast<Index>(sources_.size());
}

ScalarSource MatrixFreeSource::scalar(Kernel kernel, bool records) const {
  return {
      program_, layout_, {.precision = precision_, .kernel = kernel, .records = records, .stride = "SIDE"}};
}

std::size_t MatrixFreeSource::local_bytes() const {
  const Index pool = std::max(2 * depth * side, static_cast<Index>(sources_.size()) * side * (side + 1));
  return static_cast<std::size_t>(pool) * (precision_ == Precision::wide ? sizeof(double) : sizeof(float));
}

std::string MatrixFreeSource::beginning() const {
  // Sums are those of double in any case.
  return "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" + source_beginning(precision_) +
         smooth_source_of(program_, precision_) + fmt::format("#define SIZE {}\n{}", size_, vector_functions);
}

std::string MatrixFreeSource::inverse(std::size_t source) const {
  return literal_of(1 / static_cast<double>(channels_[source]), precision_);
}

std::string MatrixFreeSource::record() const {
  const ScalarSource recursion = scalar(Kernel::with_ntk, true);
  std::string text = beginning() + R"(
kernel void record(global real* inputs, ulong count, global real* own, global const real* smooth) {
  const ulong input = get_global_id(0);
  if (input >= count) return;
  global real* vectors = inputs + input / SIDE * (SIZE * SIDE) + input % SIDE;
)";
  text += fmt::format("global real* left = vectors + {} * SIDE;\n", numbers_);
  for (std::size_t s = 0; s < sources_.size(); ++s)
    text += fmt::format(
        "const real source_k{0} = mean_product(vectors + {1} * SIDE, vectors + {1} * SIDE, {2}, {3});\n"
        "vectors[{4} * SIDE] = source_k{0};\n",
        s, first_[s], channels_[s], inverse(s), variances_ + static_cast<Index>(s));
  return text + recursion.text() +
         fmt::format("own[2 * input] = {};\nown[2 * input + 1] = {};\n}}\n", recursion.nngp(),
                     recursion.ntk());
}

std::string MatrixFreeSource::gather() const {
  return beginning() + R"(
kernel void gather(global const real* inputs, global const uint* numbers, ulong count, global real* chosen) {
  const ulong place = get_global_id(0);
  if (place >= count) return;
  const ulong number = numbers[place];
  global const real* from = inputs + number / SIDE * (SIZE * SIDE) + number % SIDE;
  global real* to = chosen + place / SIDE * (SIZE * SIDE) + place % SIDE;
  for (int n = 0; n < SIZE * SIDE; n += SIDE) to[n] = from[n];
}
)";
}

std::string MatrixFreeSource::vector_products(std::size_t source) const {
  return fmt::format(R"(
    real products{0}[16];
    for (int n = 0; n < 16; ++n) products{0}[n] = 0;
    for (int begin = 0; begin < {1}; begin += {2}) {{
      const int channels = min({2}, {1} - begin);
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int n = lane; n < channels * SIDE; n += 256) {{
        pool[n] = left_block[({3} + begin) * SIDE + n];
        pool[{2} * SIDE + n] = right_block[({3} + begin) * SIDE + n];
      }}
      barrier(CLK_LOCAL_MEM_FENCE);
      real part[16];
      for (int n = 0; n < 16; ++n) part[n] = 0;
      for (int c = 0; c < channels; ++c) {{
        real x[4], y[4];
        for (int n = 0; n < 4; ++n) {{
          x[n] = pool[c * SIDE + first_row + n];
          y[n] = pool[({2} + c) * SIDE + first_column + n];
        }}
        for (int n = 0; n < 16; ++n) part[n] = fma(x[n / 4], y[n % 4], part[n]);
      }}
      for (int n = 0; n < 16; ++n) products{0}[n] += part[n];
    }}
)",
                     source, channels_[source], depth, first_[source]);
}

std::string MatrixFreeSource::source_value(std::size_t source, bool reads_multiples) const {
  const bool wide = precision_ == Precision::wide;
  const Statements numbers(precision_, "");
  const Index channels = channels_[source];
  std::string text = fmt::format(
      R"(
      real source_k{0} = pool[{0} * PLACE(SIDE, 0) + place] * {1};
      {{
        const real p = x[{2} * SIDE], q = y[{2} * SIDE];
        if (p > 0 && q > 0 && fabs(source_k{0}) >= {3} * (sqrt(p) * sqrt(q))) {{
          source_k{0} = mean_product(x + {4} * SIDE, y + {4} * SIDE, {5}, {1});
)",
      source, inverse(source), variances_ + static_cast<Index>(source),
      numbers.literal(wide ? least_correlation<double>(channels) : least_correlation<float>(channels)),
      first_[source], channels);
  // 1 - |correlation| below the angle_tolerance of multiples.cpp is a rest below twice that.
  const double angle = wide ? 16 * std::numeric_limits<double>::epsilon()
                            : static_cast<double>(std::numeric_limits<float>::epsilon());
  if (reads_multiples)
    text += fmt::format(
        "multiples |= are_multiples(x + {0} * SIDE, y + {0} * SIDE, {1}, source_k{2} / p, {3});\n",
        first_[source], channels, source, numbers.literal(angle));
  return text + "}\n}\n";
}

std::string MatrixFreeSource::tiles(Wanted wanted, const std::string& arguments, const std::string& before,
                                    const std::string& of_tile, const std::string& after) const {
  const ScalarSource recursion = scalar(wanted == Wanted::ntk ? Kernel::with_ntk : Kernel::nngp_only, false);
  std::string text =
      beginning() +
      fmt::format(R"(
__attribute__((reqd_work_group_size(256, 1, 1)))
kernel void run(global const real* restrict lefts, global const uint* restrict numbers, uint first_tile,
                global const real* restrict rights, uint count, uint shares,
                global const real* restrict smooth, {}) {{
  local real pool[{}];
  const int lane = (int)get_local_id(0), first_row = lane / 16 * 4, first_column = lane % 16 * 4;
  const uint group = (uint)get_group_id(0), row_tile = first_tile + group / shares, share = group % shares;
  global const real* const left_block = lefts + (ulong)row_tile * (SIZE * SIDE);
  const uint last = min((share + 1) * {}, (count + SIDE - 1) / SIDE);
{}
  for (uint tile = share * {}; tile < last; ++tile) {{
    global const real* const right_block = rights + (ulong)tile * (SIZE * SIDE);
)",
                  arguments, local_bytes() / (precision_ == Precision::wide ? sizeof(double) : sizeof(float)),
                  tiles_of_a_share, before, tiles_of_a_share);
  for (std::size_t s = 0; s < sources_.size(); ++s) text += vector_products(s);
  text += "barrier(CLK_LOCAL_MEM_FENCE);\n";
  for (std::size_t s = 0; s < sources_.size(); ++s)
    text += fmt::format(
        "for (int n = 0; n < 16; ++n)\n"
        "  pool[{0} * PLACE(SIDE, 0) + PLACE(first_row + n / 4, first_column + n % 4)] = products{0}[n];\n",
        s);
  text += R"(
    for (int n = 0; n < 16; ++n) {
      const int i = first_row + n / 4, j = first_column + n % 4, place = PLACE(i, j);
      const uint row = numbers[row_tile * SIDE + i], column = tile * SIDE + j;
      const int same = row == column, exchanged = row != 0xffffffffu && row > column;
      global const real* x = exchanged ? right_block + j : left_block + i;
      global const real* y = exchanged ? left_block + i : right_block + j;
)";
  text += fmt::format(
      "global const real* left = x + {0} * SIDE;\nglobal const real* right = y + {0} * SIDE;\n", numbers_);
  if (recursion.reads_multiples()) text += "int multiples = 0;\n";
  for (std::size_t s = 0; s < sources_.size(); ++s) text += source_value(s, recursion.reads_multiples());
  text += recursion.text();
  text += fmt::format("pool[place] = column < count ? {} : 0;\n}}\nbarrier(CLK_LOCAL_MEM_FENCE);\n",
                      wanted == Wanted::ntk ? recursion.ntk() : recursion.nngp());
  return text + of_tile + "}\n" + after + "}\n";
}

std::string MatrixFreeSource::products(Wanted wanted, Index width) const {
  // Four items share a row, each with a quarter of the vectors.
  const Index own = width / 4;
  return tiles(wanted, "global const double* restrict vectors, global double* restrict sums",
               fmt::format("const int sum_row = lane / 4, first_vector = lane % 4 * {0};\n"
                           "double sum[{0}];\nfor (int n = 0; n < {0}; ++n) sum[n] = 0;\n",
                           own),
               fmt::format(R"(
    for (int j = 0; j < SIDE; ++j) {{
      const double entry = pool[PLACE(sum_row, j)];
      global const double* vector = vectors + ((ulong)tile * SIDE + j) * {1} + first_vector;
      for (int n = 0; n < {0}; ++n) sum[n] = fma(entry, vector[n], sum[n]);
    }}
)",
                           own, width),
               fmt::format("for (int n = 0; n < {0}; ++n)\n"
                           "  sums[((ulong)group * SIDE + sum_row) * {1} + first_vector + n] = sum[n];\n",
                           own, width));
}

std::string MatrixFreeSource::additions(Index width) {
  return fmt::format(R"(
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void add(global const double* sums, uint shares, uint count, ulong first, global double* results) {{
  const uint place = (uint)get_global_id(0);
  if (place >= count) return;
  const uint row = place / {0}, tile = row / {1};
  double sum = 0;
  for (uint share = 0; share < shares; ++share)
    sum += sums[(((ulong)tile * shares + share) * {1} + row % {1}) * {0} + place % {0}];
  results[first + place] = sum;
}}
)",
                     width, side);
}

std::string MatrixFreeSource::entries(Wanted wanted) const {
  return tiles(wanted, "global real* restrict entries", "", R"(
    for (int n = lane; n < SIDE * SIDE; n += 256) {
      const int i = n / SIDE, j = n % SIDE;
      if (tile * SIDE + j < count)
        entries[((ulong)(group / shares) * SIDE + i) * count + tile * SIDE + j] = pool[PLACE(i, j)];
    }
)",
               "");
}

}  // namespace widelimit
