#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "widelimit/covariance_sde/finite_network.hpp"
#include "widelimit/numerics/statistics.hpp"
#include "widelimit/run_control.hpp"

namespace widelimit::covariance_sde {

/// Options of gradient_norms(); equal seeds give equal bits on any number of threads.
struct GradientOptions {
  Index depth = 16;     ///< Layers, >= 1.
  Index networks = 32;  ///< >= 2.
  std::uint64_t seed = 0;
  RunControl run = {};  ///< Progress counts networks.
};

/// Squared norms of the gradients of one parameter for each layer, the first layer first: means over networks.
struct ParameterGradientNorms {
  /// "query", "key", "value" (over all heads), "hidden", "output", or "weight" of a multilayer perceptron.
  std::string parameter;
  std::vector<numerics::Estimate> layers;
};

/// E|gradient of <X_L, R>|^2 / (m n), R standard normal [m, n], weights standard normal.
struct GradientNorms {
  /// With respect to X_0, .., X_L; the last is |R|^2 / (m n).
  std::vector<numerics::Estimate> tokens;
  /// With respect to the parameters of the blocks that the network has, in the order above.
  std::vector<ParameterGradientNorms> parameters;
};

/// Gradients in random networks of finite width, shaped, unshaped, Pre-LN, Post-LN or multilayer perceptrons, by a
/// forward and a backward pass. Only those parts of the weights that tokens and gradients see are drawn, with the exact
/// distribution (docs/theory/covariance-sde.md, section 6.1). Inputs have covariance v0 and their feature axes in
/// general position. Equal bits for any number of threads.
///
/// Errors  those of sample_networks() with explicit weights; ArgumentError for depth < 1 and networks < 2, and if the
///         networks of all threads do not fit into memory.
/// Cost    of a network: O(m^2 n depth), O(m n^2 depth) from m = n / 2 on. Memory O(m n depth).
[[nodiscard]] GradientNorms gradient_norms(const NetworkSpec& network, const Matrix<double>& v0,
                                           const GradientOptions& options);

}  // namespace widelimit::covariance_sde
