#pragma once

#include <memory>

#include "widelimit/numerics/quadrature_activation.hpp"

namespace widelimit::python {

/// A function that is dear to call, as piecewise Chebyshev series: quadrature asks for millions of values, and one of a
/// Python function costs as much as a hundred in an array. Copies share the series; any thread may call it.
///
/// Between powers of 2 of |x|, from 2^-24 on, series are made when a value is first wanted, of intervals that are
/// halved (at breakpoints first) until the series is right to 1e-14 of the largest value there, down to 2^-40 of the
/// interval. Where the function's own rounding forbids that, in more than 64 intervals so short or 512 in all, they are
/// right to 2e-15 of the largest |x| there, or of 1, times the function's largest value in [-1, 1] or the interval's
/// own. Where |x| < 64 and more than 4096 series would not even be right to 2e-9 of the largest value, the function is
/// too rough for quadrature: ArgumentError. Values that are not finite, |x| >= 2^42, and other intervals that would
/// need more than 4096 series, or 8 from |x| = 2^16 on, are left to the function itself; between 2^14 and 2^16 more
/// than 8 series are right to the function's own rounding only. All intervals of one length are evaluated in one call
/// of the function.
class TabulatedFunction {
 public:
  /// Of the options: breakpoints, and the name that errors begin with.
  TabulatedFunction(numerics::FunctionValues function, const numerics::QuadratureOptions& options);

  double operator()(double x) const;

  /// That of the series; where there are none, by differences of the function. Relative accuracy about 1e-11.
  [[nodiscard]] double derivative(double x) const;

 private:
  class Series;
  std::shared_ptr<Series> series_;
};

}  // namespace widelimit::python
