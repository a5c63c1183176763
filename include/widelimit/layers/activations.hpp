#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "widelimit/network/layer.hpp"
#include "widelimit/network/shape.hpp"
#include "widelimit/numerics/activation.hpp"

/// Elementwise nonlinearities. All need Gaussian channels. Constructor arguments that are not finite or out
/// of range throw ArgumentError. Formulas and accuracy: widelimit/numerics/activations.hpp.
namespace widelimit::layers {

[[nodiscard]] Layer relu();
[[nodiscard]] Layer leaky_relu(double slope);
[[nodiscard]] Layer abs();
[[nodiscard]] Layer identity();
[[nodiscard]] Layer sign();
[[nodiscard]] Layer erf();
[[nodiscard]] Layer gelu();
[[nodiscard]] Layer tanh();
[[nodiscard]] Layer sigmoid();
[[nodiscard]] Layer silu();
[[nodiscard]] Layer softplus();
/// a sin(b x + c)
[[nodiscard]] Layer sin(double a = 1, double b = 1, double c = 0);
/// a cos(b x + c)
[[nodiscard]] Layer cos(double a = 1, double b = 1, double c = 0);
/// a exp(b x)
[[nodiscard]] Layer exp(double a = 1, double b = 1);
/// a exp(b x^2)
[[nodiscard]] Layer gaussian(double a = 1, double b = -1);
/// sqrt(2) sin(sqrt(2 gamma) x + pi/4), whose dual is exp(-gamma ||u - v||^2)
[[nodiscard]] Layer rbf(double gamma = 1);
/// sum_k coefficients[k] x^k
[[nodiscard]] Layer polynomial(std::vector<double> coefficients);
/// The normalised probabilists' Hermite polynomial of the degree.
[[nodiscard]] Layer hermite(Index degree);

/// A nonlinearity of a user's own; `kind` must not be one of the library's (ArgumentError). To let it stand
/// in network files, register the kind with register_layer_kind() and pass the parameters that its reader
/// reads, a JSON object, {} where it has none. Without them the layer prints with the address of its
/// activation, and layers are equal only if they share it.
[[nodiscard]] Layer nonlinearity(std::string kind, numerics::ActivationPtr activation,
                                 std::optional<nlohmann::ordered_json> parameters = std::nullopt);

/// The activation inside a nonlinearity layer; ArgumentError for any other layer.
[[nodiscard]] numerics::ActivationPtr activation_of(const Layer& layer);

}  // namespace widelimit::layers
