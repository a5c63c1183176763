#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "widelimit/network/layer.hpp"
#include "widelimit/network/shape.hpp"
#include "widelimit/numerics/activation.hpp"

namespace widelimit::numerics::formula {
class Readable;
}

/// Elementwise nonlinearities phi: K' = E[phi(u) phi(v)], T' = T E[phi'(u) phi'(v)] for Gaussian u, v with the
/// covariance of the two positions. All need Gaussian channels. Arguments that are not finite or out of range are an
/// ArgumentError.
///
/// Source  docs/theory/kernel-recursion.md, section 3; accuracy and ranges: widelimit/numerics/activations.hpp.
namespace widelimit::layers {

/// max(x, 0)
[[nodiscard]] Layer relu();
/// x for x >= 0, slope * x below; any finite slope.
[[nodiscard]] Layer leaky_relu(double slope);
/// a min(x, 0) + b max(x, 0); any finite slopes.
[[nodiscard]] Layer ab_relu(double a, double b);
/// |x|
[[nodiscard]] Layer abs();
/// x
[[nodiscard]] Layer identity();
/// sign(x), 0 at 0; the NTK after it is 0 by convention.
[[nodiscard]] Layer sign();
/// erf(x), without a factor 1/sqrt(2) inside.
[[nodiscard]] Layer erf();
/// a erf(b x + c) + d
[[nodiscard]] Layer erf(double a, double b = 1, double c = 0, double d = 0);
/// (erf(x / 2.4020563531719796) + 1) / 2
[[nodiscard]] Layer sigmoid_like();
/// exp(-x^2) sin(x)
[[nodiscard]] Layer gabor();
/// x Phi(x), Phi the standard normal distribution function; not the tanh approximation.
[[nodiscard]] Layer gelu();
/// tanh(x), by quadrature.
[[nodiscard]] Layer tanh();
/// 1 / (1 + exp(-x)), by quadrature.
[[nodiscard]] Layer sigmoid();
/// x / (1 + exp(-x)), also called swish; by quadrature.
[[nodiscard]] Layer silu();
/// log(1 + exp(x)), by quadrature.
[[nodiscard]] Layer softplus();
/// a sin(b x + c)
[[nodiscard]] Layer sin(double a = 1, double b = 1, double c = 0);
/// a cos(b x + c)
[[nodiscard]] Layer cos(double a = 1, double b = 1, double c = 0);
/// a exp(b x)
[[nodiscard]] Layer exp(double a = 1, double b = 1);
/// a exp(b x^2). With b > 0 the kernel exists only while variances stay below 1 / (4 b): NumericalError beyond.
[[nodiscard]] Layer gaussian(double a = 1, double b = -1);
/// sqrt(2) sin(sqrt(2 gamma) x + pi/4), gamma > 0: K' = exp(-gamma (p + q - 2c)) for variances p, q and covariance c.
[[nodiscard]] Layer rbf(double gamma = 1);
/// x^degree; degree in 0 .. 64.
[[nodiscard]] Layer monomial(Index degree);
/// max(x, 0)^degree, the arc-cosine kernels over 2; degree in 0 .. 32. Degree 0 is the step function, whose NTK is 0 by
/// convention.
[[nodiscard]] Layer rectified_monomial(Index degree);
/// sum_k coefficients[k] x^k; 1 to 65 coefficients.
[[nodiscard]] Layer polynomial(std::vector<double> coefficients);
/// He_degree(x) / sqrt(degree!), the normalised probabilists' Hermite polynomial; degree in 0 .. 64.
[[nodiscard]] Layer hermite(Index degree);

/// Your own nonlinearity. ArgumentError for a null activation, an empty kind or one of the library's. To use it
/// in network files, register the kind with register_layer_kind() and pass the parameters that its reader
/// reads, a JSON object ({} if it has none; ArgumentError for anything else). Without them the layer prints with the
/// address of its activation, and layers are equal only if they share it.
[[nodiscard]] Layer nonlinearity(std::string kind, numerics::ActivationPtr activation);
[[nodiscard]] Layer nonlinearity(std::string kind, numerics::ActivationPtr activation,
                                 const nlohmann::ordered_json& parameters);

/// The formulas of a nonlinearity layer, or of another one that maps entries by a formula; null if it has none.
[[nodiscard]] const numerics::formula::Readable* readable(const Layer& layer);

/// The activation inside a nonlinearity layer; ArgumentError for any other layer.
[[nodiscard]] numerics::ActivationPtr activation_of(const Layer& layer);

}  // namespace widelimit::layers
