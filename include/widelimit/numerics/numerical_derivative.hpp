#pragma once

#include <functional>
#include <vector>

namespace widelimit::numerics {

/// The derivative of a function that is smooth between breakpoints, by central differences extrapolated to step 0
/// (Richardson; the step of least estimated error: Ridders, Advances in Engineering Software 4, 1982). Relative
/// accuracy about 1e-11 for functions that vary over lengths of 0.1 and more, of |x| / 40 far from 0, and for powers
/// near 0. At a breakpoint:
/// the derivative just right of it.
[[nodiscard]] std::function<double(double)> numerical_derivative(std::function<double(double)> phi,
                                                                 std::vector<double> breakpoints);

/// The derivative at x by central differences likewise, from a step down: phi is smooth for some steps around x.
[[nodiscard]] double extrapolated_difference(const std::function<double(double)>& phi, double x, double step);

}  // namespace widelimit::numerics
