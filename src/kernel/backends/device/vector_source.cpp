#include "kernel/backends/device/vector_source.hpp"

#include <fmt/format.h>

#include "kernel/backends/device/cl/product_source.hpp"
#include "kernel/backends/device/product_source.hpp"
#include "kernel/backends/device/smooth_nonlinearities.hpp"
#include "kernel/backends/device/source_beginning.hpp"

namespace widelimit {
namespace {

std::string record_source(const Program& program, const ScalarSource& recursion,
                          const std::vector<VectorSource::Source>& sources, Index leading,
                          numerics::formula::Precision precision) {
  std::string text =
      source_beginning(precision) + mean_product_function + smooth_source_of(program, precision);
  text +=
      "kernel void record(global const real* states, ulong count, global real* numbers,\n                   "
      "global const real* smooth) {\n"
      "const ulong input = get_global_id(0);\nif (input >= count) return;\n";
  for (std::size_t s = 0; s < sources.size(); ++s)
    text += fmt::format(
        "global const real* vector{0} = states + input * {1} + {2};\nreal source_k{0}, rest{0};\n"
        "mean_product(vector{0}, vector{0}, {3}, &source_k{0}, &rest{0});\n"
        "numbers[{4} * count + input] = source_k{0};\nnumbers[{5} * count + input] = rest{0};\n",
        s, leading, sources[s].first, sources[s].channels, 2 * s, 2 * s + 1);
  text += fmt::format("global real* left = numbers + {} * count + input;\n", 2 * sources.size());
  return text + recursion.text() + "}\n";
}

std::string values_source(const Program& program, const ScalarSource& recursion, std::size_t sources,
                          numerics::formula::Precision precision, Kernel kernel) {
  std::string text = source_beginning(precision) + smooth_source_of(program, precision);
  text += fmt::format(
      "kernel void values(global const real* lefts, ulong left_first, ulong left_count,\n"
      "                   global const real* rights, ulong right_first, ulong right_count,\n"
      "                   int rows, int columns, int symmetric, global const real* products,\n"
      "                   global const uchar* found, global real* values, global const real* smooth) {{\n"
      "const int entry = (int)get_global_id(0), entries = rows * columns;\nif (entry >= entries) return;\n"
      "const ulong i = left_first + entry / columns, j = right_first + entry % columns;\n"
      "const int same = symmetric && i == j, multiples = found[entry];\n"
      "global const real* left = lefts + {0} * left_count + i;\n"
      "global const real* right = rights + {0} * right_count + j;\n",
      2 * sources);
  for (std::size_t s = 0; s < sources; ++s)
    text += fmt::format("const real source_k{0} = products[{0} * (ulong)entries + entry];\n", s);
  text += recursion.text();
  text += fmt::format("values[entry] = {};\n", recursion.nngp());
  if (kernel == Kernel::with_ntk)
    text += fmt::format("values[(ulong)entries + entry] = {};\n", recursion.ntk());
  return text + "}\n";
}

}  // namespace

VectorSource::VectorSource(const Program& program, const StateLayout& state,
                           const std::vector<Source>& sources, numerics::formula::Precision precision,
                           Kernel kernel) {
  // A side's numbers lie as far apart as it has inputs.
  const ScalarSource recording(
      program, state,
      {.precision = precision, .kernel = Kernel::nngp_only, .records = true, .stride = "count"});
  const ScalarSource pairs(
      program, state,
      {.precision = precision, .kernel = kernel, .stride = "left_count", .right_stride = "right_count"});
  numbers_ = static_cast<Index>(2 * sources.size() + pairs.numbers().size());
  record_ = record_source(program, recording, sources, state.size, precision);
  values_ = values_source(program, pairs, sources.size(), precision, kernel);
}

}  // namespace widelimit
