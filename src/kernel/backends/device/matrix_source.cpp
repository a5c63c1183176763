#include "kernel/backends/device/matrix_source.hpp"

#include <fmt/format.h>

#include "kernel/backends/device/cl/matrix_source.hpp"
#include "kernel/backends/device/source_beginning.hpp"

namespace widelimit {
namespace {

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
