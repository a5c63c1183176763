#pragma once

#include <algorithm>
#include <cmath>

#include "widelimit/layers/attention.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/numerics/activation.hpp"

namespace widelimit::layers {

/// Number of positions that position `a` of `d` sees: all, or itself and the ones before it.
inline Index visible_positions(AttentionMask mask, Index a, Index d) {
  return mask == AttentionMask::causal ? a + 1 : d;
}

/// Softmax of `scale` times the first `visible` entries of a row, in place; the rest becomes 0. Differences
/// to the largest entry are taken first and scaled in double, so that logits beyond exp's range, or any
/// range, are harmless.
template <typename Scalar>
void softmax_row(Scalar* row, double scale, Index visible, Index size) {
  const Scalar largest = *std::max_element(row, row + visible);
  Scalar sum = 0;
  for (Index i = 0; i < visible; ++i)
    sum += row[i] = static_cast<Scalar>(std::exp(scale * static_cast<double>(row[i] - largest)));
  for (Index i = 0; i < visible; ++i) row[i] /= sum;
  std::fill(row + visible, row + size, Scalar{0});
}

/// phi of `scale` times the first `visible` entries of a row, in place; the rest becomes 0.
template <typename Scalar>
void elementwise_row(const numerics::Activation& phi, Scalar* row, double scale, Index visible, Index size) {
  for (Index i = 0; i < visible; ++i)
    row[i] = static_cast<Scalar>(phi.value(scale * static_cast<double>(row[i])));
  std::fill(row + visible, row + size, Scalar{0});
}

}  // namespace widelimit::layers
