#pragma once

#include <cstddef>

namespace widelimit::numerics {

/// Vectorised exponentials.
template <typename Scalar>
struct ExponentialRows {
  /// row[i] = exp(-rate (top - row[i])), of entries that are `top` or less and a rate of at least 0: what softmax makes
  /// of logits. Three rounding errors of the exponent; 0 below the normal numbers.
  void (*decay)(Scalar rate, Scalar top, Scalar* row, std::size_t size);
};

/// The best implementation for this machine. Scalar is float or double.
template <typename Scalar>
const ExponentialRows<Scalar>& exponential_rows();

}  // namespace widelimit::numerics
