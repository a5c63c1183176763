#pragma once

#include <cmath>

#include "kernel/random_cases.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit::testing {

/// The device of these tests is PoCL's, which executes OpenCL on the CPU: there is one wherever they run.
inline GramOptions on_device(Kernels kernels = Kernels::both) {
  GramOptions options;
  options.kernels = kernels;
  options.device = "pocl";
  return options;
}

/// The largest difference of two kernels, relative to the geometric mean of both inputs' own ones.
template <typename Scalar>
double difference(const Matrix<Scalar>& computed, const Matrix<double>& exact, const Matrix<double>& own_left,
                  const Matrix<double>& own_right) {
  double worst = 0;
  for (Index i = 0; i < exact.rows(); ++i)
    for (Index j = 0; j < exact.cols(); ++j) {
      const double error = std::abs(static_cast<double>(computed(i, j)) - exact(i, j));
      if (error == 0) continue;
      const double relative = error / std::sqrt(own_left(i, 0) * own_right(j, 0));
      if (!(relative <= worst)) worst = relative;
    }
  return worst;
}

template <typename Scalar>
Inputs<Scalar> as(const Inputs<double>& x) {
  if constexpr (std::is_same_v<Scalar, float>)
    return in_float(x);
  else
    return x;
}

}  // namespace widelimit::testing
