#pragma once

#include <doctest/doctest.h>

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

/// Both kernels of a device, of one batch and of two, beside those of the CPU in double.
template <typename Scalar>
void check_against_cpu(const Network& network, const Inputs<double>& x1, const Inputs<double>& x2,
                       double most) {
  const auto own1 = gram_diagonal(network, x1), own2 = gram_diagonal(network, x2);
  const auto whole = gram(network, x1), pairs = gram(network, x1, x2);
  const auto of_device = gram(network, as<Scalar>(x1), on_device());
  CHECK(difference(of_device.nngp, whole.nngp, own1.nngp, own1.nngp) < most);
  CHECK(difference(of_device.ntk, whole.ntk, own1.ntk, own1.ntk) < most);
  const auto rectangle = gram(network, as<Scalar>(x1), as<Scalar>(x2), on_device());
  CHECK(difference(rectangle.nngp, pairs.nngp, own1.nngp, own2.nngp) < most);
  CHECK(difference(rectangle.ntk, pairs.ntk, own1.ntk, own2.ntk) < most);
}

}  // namespace widelimit::testing
