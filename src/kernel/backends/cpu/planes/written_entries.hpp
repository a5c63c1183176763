#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "widelimit/error.hpp"
#include "widelimit/network/pair_stage.hpp"

/// Pair stages write into arrays that hold a NaN of their own, which no arithmetic makes. What still holds it
/// afterwards was not written.
namespace widelimit {

template <typename Scalar>
using BitsOf = std::conditional_t<sizeof(Scalar) == 4, std::uint32_t, std::uint64_t>;

/// The bits of a quiet NaN with a payload.
template <typename Scalar>
constexpr BitsOf<Scalar> unwritten_bits = static_cast<BitsOf<Scalar>>(sizeof(Scalar) == 4
                                                                          ? 0x7fd1f00dU
                                                                          : 0x7ffd1f00dfeedULL << 12);

/// Throws ArgumentError for the first wanted entry that was not written.
template <typename Scalar>
void require_written(const Eigen::Map<Matrix<Scalar>>& kernel, const char* name, Entries wanted) {
  const auto is_unwritten = [](Scalar entry) {
    return std::bit_cast<BitsOf<Scalar>>(entry) == unwritten_bits<Scalar>;
  };
  const auto fail = [&](Index i, Index j) {
    throw ArgumentError(
        fmt::format("the stage's apply() did not write entry ({}, {}) of the {} [{}, {}], of which {} "
                    "wanted: write every entry "
                    "that PairView::wanted asks for, and read none that input_entries() does not",
                    i, j, name, kernel.rows(), kernel.cols(),
                    wanted == Entries::all ? "all entries are" : "the diagonal is"));
  };
  if (wanted == Entries::all) {
    bool any = false;
    for (Index n = 0; n < kernel.size(); ++n) any |= is_unwritten(kernel.data()[n]);
    for (Index n = 0; any && n < kernel.size(); ++n)
      if (is_unwritten(kernel.data()[n])) fail(n / kernel.cols(), n % kernel.cols());
    return;
  }
  for (Index a = 0; a < std::min(kernel.rows(), kernel.cols()); ++a)
    if (is_unwritten(kernel(a, a))) fail(a, a);
}

/// Transforms one pair, and throws ArgumentError if the stage leaves a wanted entry unwritten. Entries that are not
/// wanted are NaN if the stage does not write them, which shows if anything reads them.
template <typename Scalar>
void apply_pair_stage(const PairStage& stage, const PairView<Scalar>& pair, PairResult<Scalar>& result) {
  std::fill_n(result.nngp.data(), result.nngp.size(), std::bit_cast<Scalar>(unwritten_bits<Scalar>));
  std::fill_n(result.ntk.data(), result.ntk.size(), std::bit_cast<Scalar>(unwritten_bits<Scalar>));
  stage.apply(pair, result);
  require_written(result.nngp, "NNGP", pair.wanted);
  require_written(result.ntk, "NTK", pair.wanted);
}

}  // namespace widelimit
