#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>
#include <xtensor/xarray.hpp>

#include "widelimit/error.hpp"
#include "widelimit/kernel/position_covariances.hpp"

/// --pairs of gram: covariances between the positions of chosen pairs.
namespace widelimit::cli {

/// "I,J": inputs of the rows and columns. ArgumentError for other texts.
[[nodiscard]] std::vector<std::pair<Index, Index>> read_pairs(const std::vector<std::string>& texts);

/// [pairs, d, d'] of each kernel.
template <typename Scalar>
struct PairCovariances {
  xt::xarray<Scalar> nngp;
  xt::xarray<Scalar> ntk;
  /// Standard errors that sampled layers leave; else empty.
  xt::xarray<Scalar> nngp_error = {};
  xt::xarray<Scalar> ntk_error = {};
};

/// compute(i, j) gives those of one pair. ArgumentError unless all have equally many positions.
template <typename Scalar, typename Compute>
PairCovariances<Scalar> covariances_of(const std::vector<std::pair<Index, Index>>& pairs,
                                       const Compute& compute) {
  PairCovariances<Scalar> all;
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    const auto [i, j] = pairs[k];
    const PositionCovariances<Scalar> one = compute(i, j);
    const auto rows = static_cast<std::size_t>(one.nngp.rows()),
               columns = static_cast<std::size_t>(one.nngp.cols());
    if (k == 0) all.nngp = all.ntk = xt::zeros<Scalar>({pairs.size(), rows, columns});
    if (k == 0 && one.nngp_error.size() != 0) all.nngp_error = all.ntk_error = all.nngp;
    if (all.nngp.shape(1) != rows || all.nngp.shape(2) != columns)
      throw ArgumentError(fmt::format(
          "--pairs: expected pairs with equally many positions, got {} x {} for {},{} and {} x {} for {},{}",
          all.nngp.shape(1), all.nngp.shape(2), pairs[0].first, pairs[0].second, rows, columns, i, j));
    const auto copy = [begin = k * rows * columns](const Matrix<Scalar>& from, xt::xarray<Scalar>& to) {
      std::copy_n(from.data(), from.size(), to.data() + begin);
    };
    copy(one.nngp, all.nngp);
    copy(one.ntk, all.ntk);
    copy(one.nngp_error, all.nngp_error);
    copy(one.ntk_error, all.ntk_error);
  }
  return all;
}

}  // namespace widelimit::cli
