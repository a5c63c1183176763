#pragma once

#include <functional>

namespace widelimit::numerics {

/// Standard deviations to which expectations are taken at least: the density has fallen by 2e-22 there.
inline constexpr double least_window = 10;
/// The widest window. At its ends the root of the density, 1e-294, is still a number of double.
inline constexpr double widest_window = 52;

/// log |f(z)| of a function in standard deviations; +infinity or NaN where nothing is known of it.
using LogSize = std::function<double(double)>;

/// How far from 0 E f(z) reaches, z standard normal: the smallest number of standard deviations, of least_window ..
/// widest_window, past which no more than exp(log_left) of E|f(z)| is left. Infinity if there is none.
///
/// Past the last size that is known, and past the widest window, the integrand is taken to fall on as it fell last.
/// Cost: 170 sizes.
[[nodiscard]] double gaussian_window(const LogSize& log_size, double log_left);

/// Whether a function has outgrown every exp(a x^2) where it overflows, for x > 0: E f(x) is then infinite at every
/// variance. False for a function that does not overflow, or whose values are small until they are not finite (terms
/// overflow then, as in x / (1 + exp(x))). Cost: some hundred values.
[[nodiscard]] bool outgrows_gaussians(const std::function<double(double)>& f);

}  // namespace widelimit::numerics
