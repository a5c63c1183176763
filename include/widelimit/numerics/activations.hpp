#pragma once

#include <vector>

#include "widelimit/numerics/activation.hpp"

/// Activations whose dual is known in closed form. Every factory checks its arguments (ArgumentError) and
/// returns an immutable object that any number of threads may share.
///
/// Accuracy of all: a few units in the last place relative to sqrt(E[phi(u)^2] E[phi(v)^2]) for the value and
/// to sqrt(E[phi'(u)^2] E[phi'(v)^2]) for the derivative, for variances within 1e-15 .. 1e15 (float) and
/// 1e-70 .. 1e70 (double), at and near perfect correlation too. Nothing here checks p, q and c themselves.
namespace widelimit::numerics {

/// phi(x) = x. Value c, derivative 1.
[[nodiscard]] ActivationPtr identity();

/// phi(x) = max(x, 0): the arc-cosine kernel of order 1 over 2, its derivative that of order 0.
/// Source  Cho, Saul, "Kernel methods for deep learning", NIPS 2009, section 2.
[[nodiscard]] ActivationPtr relu();

/// phi(x) = x for x >= 0, slope * x below. `slope` must be finite.
[[nodiscard]] ActivationPtr leaky_relu(double slope);

/// phi(x) = |x|.
[[nodiscard]] ActivationPtr abs();

/// phi(x) = negative * min(x, 0) + positive * max(x, 0). Both slopes must be finite.
///
/// With theta = arccos(c / sqrt(pq)) and w = (positive - negative)^2 / (2 pi):
///   derivative = (negative^2 + positive^2) / 2 - w theta,  value = w sqrt(pq) sin(theta) + derivative * c.
/// A zero variance counts as uncorrelated, theta = pi / 2.
[[nodiscard]] ActivationPtr homogeneous(double negative, double positive);

/// phi(x) = x^degree for x > 0, else 0; degree in 0 .. 32. The arc-cosine kernels of Cho and Saul over 2.
/// Degree 0 is the step function with phi(0) = 1/2 and derivative dual 0; degree 1 is relu().
[[nodiscard]] ActivationPtr rectified_monomial(int degree);

/// phi(x) = sign(x), phi(0) = 0. Its derivative dual is 0 by convention.
[[nodiscard]] ActivationPtr sign();

/// phi(x) = erf(x).
/// Source  Williams, "Computing with infinite networks", NIPS 1996, section 3.
[[nodiscard]] ActivationPtr erf();

/// phi(x) = amplitude erf(rate x + phase) + offset, all finite. With a phase the value is an integral over
/// an angle, 0.4 us for an entry.
[[nodiscard]] ActivationPtr erf(double amplitude, double rate = 1, double phase = 0, double offset = 0);

/// phi(x) = (erf(x / 2.4020563531719796) + 1) / 2, close to the logistic function.
[[nodiscard]] ActivationPtr sigmoid_like();

/// phi(x) = exp(-x^2) sin(x).
[[nodiscard]] ActivationPtr gabor();

/// phi(x) = x Phi(x) with Phi the standard normal distribution function (the exact GELU, not its tanh approximation).
///
/// Source  Tsuchida et al., "Avoiding kernel fixed points", AAAI 2021, section 3; derived again next to the code.
[[nodiscard]] ActivationPtr gelu();

/// phi(x) = amplitude sin(frequency x + phase). All arguments must be finite.
[[nodiscard]] ActivationPtr sin(double amplitude = 1, double frequency = 1, double phase = 0);

/// phi(x) = amplitude cos(frequency x + phase). All arguments must be finite.
[[nodiscard]] ActivationPtr cos(double amplitude = 1, double frequency = 1, double phase = 0);

/// phi(x) = sqrt(2) sin(sqrt(2 gamma) x + pi/4): value exp(-gamma (p + q - 2c)), the radial basis function
/// kernel of inputs whose covariances are p, q, c. `gamma` must be positive and finite.
[[nodiscard]] ActivationPtr rbf(double gamma = 1);

/// phi(x) = amplitude exp(rate x), both finite. Overflows to infinity where the expectation does.
[[nodiscard]] ActivationPtr exponential(double amplitude = 1, double rate = 1);

/// phi(x) = amplitude exp(rate x^2), both finite. With a positive rate the expectation exists only while
/// (1 - 2 rate p)(1 - 2 rate q) > 4 rate^2 c^2 and 2 rate p < 1; else dual and apply throw NumericalError.
[[nodiscard]] ActivationPtr gaussian(double amplitude = 1, double rate = -1);

/// phi(x) = x^degree; degree in 0 .. 64. Any variance.
[[nodiscard]] ActivationPtr monomial(int degree);

/// phi(x) = sum_k coefficients[k] x^k, lowest order first; 1 to 65 finite coefficients. Any variance.
/// Cost  coefficients.size() multiply-adds for each entry and as many prepared numbers for each position.
[[nodiscard]] ActivationPtr polynomial(std::vector<double> coefficients);

/// phi(x) = He_degree(x) / sqrt(degree!), the normalised probabilists' Hermite polynomial; degree in 0 .. 64.
/// Any variance; at p = q = 1 the value is c^degree.
[[nodiscard]] ActivationPtr hermite(int degree);

/// Smooth functions without a closed form, by quadrature: see quadrature_activation.hpp for accuracy and
/// cost.

/// phi(x) = tanh(x).
[[nodiscard]] ActivationPtr tanh();

/// phi(x) = 1 / (1 + exp(-x)).
[[nodiscard]] ActivationPtr sigmoid();

/// phi(x) = x / (1 + exp(-x)), also called swish.
[[nodiscard]] ActivationPtr silu();

/// phi(x) = log(1 + exp(x)).
[[nodiscard]] ActivationPtr softplus();

}  // namespace widelimit::numerics
