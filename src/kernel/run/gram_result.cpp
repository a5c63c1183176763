#include "kernel/run/gram_result.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "numerics/large_pages.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/memory.hpp"

namespace widelimit {
namespace {

/// Throws an error that names the first entry of one kernel that is not finite, if there is one.
template <typename Scalar>
void throw_named_entry(const Matrix<Scalar>& gram, const char* name, const LayerOfPair& layer_of,
                       Index first_row, Index first_column) {
  for (Index row = 0; row < gram.rows(); ++row)
    for (Index column = 0; column < gram.cols(); ++column) {
      if (std::isfinite(gram(row, column))) continue;
      const Index i = first_row + row, j = first_column + column;
      const auto layer = layer_of(i, j);
      throw NumericalError(fmt::format(
          "gram: {}the {} of pair ({}, {}) is {}; it leaves the range of {}, rescale the network's "
          "inputs or weights{}",
          layer ? *layer + ": " : "", name, i, j,
          std::isnan(gram(row, column)) ? "not a number" : fmt::format("{}", gram(row, column)),
          sizeof(Scalar) == 4 ? "float" : "double", sizeof(Scalar) == 4 ? ", or use double" : ""));
    }
}

}  // namespace

template <typename Scalar>
GramResult<Scalar> empty_result(const GramOptions& options, Index rows, Index columns) {
  const double entries = static_cast<double>(rows) * static_cast<double>(columns);
  const double kernels = options.kernels == Kernels::both ? 2 : 1;
  constexpr bool single = std::is_same_v<Scalar, float>;
  numerics::require_memory(
      "gram", fmt::format("{} of {} x {} pairs", kernels == 2 ? "both kernels" : "the kernel", rows, columns),
      kernels * entries * sizeof(Scalar),
      fmt::format("take fewer inputs{}{}", kernels == 2 ? ", one kernel" : "", single ? "" : ", or float"));
  GramResult<Scalar> result;
  if (options.kernels != Kernels::ntk) result.nngp.resize(rows, columns);
  if (options.kernels != Kernels::nngp) result.ntk.resize(rows, columns);
  for (Matrix<Scalar>* kernel : {&result.nngp, &result.ntk})
    numerics::advise_large_pages(kernel->data(), static_cast<std::size_t>(kernel->size()) * sizeof(Scalar));
  return result;
}

template <typename Scalar>
GramTarget<Scalar> target_of(GramResult<Scalar>& result) {
  return {result.nngp.size() > 0 ? result.nngp.data() : nullptr,
          result.ntk.size() > 0 ? result.ntk.data() : nullptr,
          std::max(result.nngp.cols(), result.ntk.cols())};
}

template <typename Scalar>
void throw_not_finite(const GramResult<Scalar>& result, const LayerOfPair& layer_of, Index first_row,
                      Index first_column) {
  throw_named_entry(result.nngp, "nngp", layer_of, first_row, first_column);
  throw_named_entry(result.ntk, "ntk", layer_of, first_row, first_column);
}

template GramResult<float> empty_result(const GramOptions&, Index, Index);
template GramResult<double> empty_result(const GramOptions&, Index, Index);
template GramTarget<float> target_of(GramResult<float>&);
template GramTarget<double> target_of(GramResult<double>&);
template void throw_not_finite(const GramResult<float>&, const LayerOfPair&, Index, Index);
template void throw_not_finite(const GramResult<double>&, const LayerOfPair&, Index, Index);

}  // namespace widelimit
