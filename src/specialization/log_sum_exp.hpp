#pragma once

#include <cmath>

#include "widelimit/matrix.hpp"

namespace widelimit::specialization {

/// ln sum_i e^{s_i}, summed in double.
template <typename Derived>
double log_sum_exp(const Eigen::MatrixBase<Derived>& scores) {
  const auto top = static_cast<double>(scores.maxCoeff());
  return top + std::log((scores.template cast<double>().array() - top).exp().sum());
}

/// e^{s_i} over their sum.
inline Vector<double> softmax_of(Vector<double> scores) {
  scores = (scores.array() - scores.maxCoeff()).exp().matrix();
  return scores / scores.sum();
}

}  // namespace widelimit::specialization
