#include "widelimit/covariance_sde/gradient_norms.hpp"

#include <fmt/format.h>

#include "covariance_sde/arguments.hpp"
#include "covariance_sde/explicit_network.hpp"
#include "covariance_sde/gradient_network.hpp"
#include "numerics/block_sums.hpp"
#include "widelimit/numerics/cores.hpp"
#include "widelimit/numerics/memory.hpp"

namespace widelimit::covariance_sde {

namespace {

// Apart from those of sample_networks() and of paths.
constexpr std::uint64_t gradient_streams = std::uint64_t{3} << 62;

void require_gradient_options(const NetworkSpec& network, const Matrix<double>& v0,
                              const GradientOptions& options) {
  constexpr std::string_view where = "gradient_norms";
  require_covariance(where, v0);
  require_network(where, network, v0.rows());
  require_at_least(where, "depth", options.depth, 1);
  require_at_least(where, "networks", options.networks, 2);
  require_at_least(where, "threads", options.run.threads, 0);
  const auto n = static_cast<double>(network.width), m = static_cast<double>(v0.rows());
  // What a layer draws and keeps; with half as many tokens as channels or more, whole weights.
  const auto drawn = [m](double from, double to) {
    return (2 * m >= from ? from : m) * to + m * (from + 2 * to);
  };
  double numbers = 4 * m * n;
  if (network.plain) numbers += drawn(n, n);
  if (network.attention) {
    const auto keys = static_cast<double>(key_width_of(network) * heads_of(network));
    numbers += 2 * drawn(n, keys) + drawn(n, n) + m * m * static_cast<double>(heads_of(network));
  }
  if (network.feedforward) {
    const auto hidden = static_cast<double>(hidden_width_of(network));
    numbers += drawn(n, hidden) + drawn(hidden, n);
  }
  const auto threads =
      static_cast<double>(options.run.threads > 0 ? options.run.threads : numerics::own_cores());
  const double at_once = std::min(threads, static_cast<double>(options.networks));
  // Only as many networks are in memory as run at once.
  numerics::require_memory(where, fmt::format("{} layers", options.depth),
                           numbers * static_cast<double>(options.depth) * at_once * sizeof(double),
                           "take fewer tokens, a smaller width or depth, or fewer threads");
}

/// Squared norms by place: the tokens' first, then parameter by parameter, layer by layer.
std::vector<double> norms_of(const NetworkSpec& network, const Matrix<double>& v0,
                             const GradientOptions& options, Index sample) {
  numerics::RandomStream stream(options.seed, gradient_streams + static_cast<std::uint64_t>(sample));
  ExplicitNetwork inputs(network, v0.rows());
  inputs.start(v0, stream);
  const GradientNetwork drawn(network, options.depth, inputs.tokens(), stream);
  const Eigen::MatrixXd direction = normal_weights(v0.rows(), network.width, stream);
  const SquaredGradients squares = drawn.backward(direction, stream);
  std::vector<double> norms = squares.tokens;
  for (const std::vector<double>& layers : squares.parameters)
    norms.insert(norms.end(), layers.begin(), layers.end());
  // The direction has m n standard normal numbers, so that the gradient with respect to the
  // output comes out at about 1.
  const double size = static_cast<double>(v0.rows() * network.width);
  for (double& one : norms) one /= size;
  return norms;
}

}  // namespace

GradientNorms gradient_norms(const NetworkSpec& network, const Matrix<double>& v0,
                             const GradientOptions& options) {
  require_gradient_options(network, v0, options);
  const auto samples = numerics::on_threads(options.run.threads, [&] {
    return numerics::parts_of_blocks(options.networks, 1, options.run, [&](Index sample, Index) {
      return norms_of(network, v0, options, sample);
    });
  });
  std::size_t place = 0;
  const auto next = [&] {
    std::vector<double> values;
    for (const std::vector<double>& sample : samples) values.push_back(sample[place]);
    ++place;
    return numerics::mean(values);
  };
  GradientNorms norms;
  for (Index l = 0; l <= options.depth; ++l) norms.tokens.push_back(next());
  for (const std::string& parameter : parameters_of(network)) {
    norms.parameters.push_back({parameter, {}});
    for (Index l = 0; l < options.depth; ++l) norms.parameters.back().layers.push_back(next());
  }
  return norms;
}

}  // namespace widelimit::covariance_sde
