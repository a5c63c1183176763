#pragma once

#include <cstddef>

#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// Sines and cosines: with e1 = exp(-h (p + q - 2c)), e2 = exp(-h (p + q + 2c)),
///     value = value_weight (e1 + k e2),  derivative = derivative_weight (e1 - k e2).
struct WaveDual {
  double half_square;  ///< h >= 0
  double value_weight;
  double derivative_weight;
  double k;            ///< Within -1 .. 1.
  double one_plus_k;   ///< Exact where k is near -1.
  double one_minus_k;  ///< Exact where k is near 1.
};

/// value = weight exp(rate x), derivative = slope times that; x = -(p + q - 2c)
/// of radial basis functions, p + q + 2c of exponentials.
struct ExponentialDual {
  double rate;  ///< At least 0.
  double weight;
  double slope;
};

/// Vectorised duals of exponentials; the auxiliary array is the variance. Errors relative to the root mean squares are
/// below 4e-7 (float) and 1e-15 (double) for waves and radial basis functions; for exponentials below 3 rounding errors
/// of the exponent more. What is below the normal numbers may become 0.
template <typename Scalar>
struct ExponentialRows {
  void (*wave)(const WaveDual& dual, const DualRow<Scalar>& row);
  void (*radial)(const ExponentialDual& dual, const DualRow<Scalar>& row);
  void (*exponential)(const ExponentialDual& dual, const DualRow<Scalar>& row);

  /// row[i] = exp(-rate (top - row[i])), of entries that are `top` or less and a rate of at least 0: what softmax makes
  /// of logits. Three rounding errors of the exponent; 0 below the normal numbers.
  void (*decay)(Scalar rate, Scalar top, Scalar* row, std::size_t size);
};

/// The best implementation for this machine. Scalar is float or double.
template <typename Scalar>
const ExponentialRows<Scalar>& exponential_rows();

}  // namespace widelimit::numerics
