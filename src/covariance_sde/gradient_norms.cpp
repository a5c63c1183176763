#include "widelimit/covariance_sde/gradient_norms.hpp"

#include <fmt/format.h>

#include <thread>

#include "covariance_sde/arguments.hpp"
#include "covariance_sde/explicit_network.hpp"
#include "covariance_sde/recorded_network.hpp"
#include "numerics/block_sums.hpp"
#include "numerics/memory.hpp"

namespace widelimit::covariance_sde {

namespace {

// Apart from those of sample_networks() and of paths.
constexpr std::uint64_t gradient_streams = std::uint64_t{3} << 62;

std::vector<std::string> parameters_of(const NetworkSpec& network) {
  std::vector<std::string> names;
  if (network.attention) names = {"query", "key", "value"};
  if (network.feedforward) names.insert(names.end(), {"hidden", "output"});
  return names;
}

double squared_norm(const LayerWeights& layer, const std::string& parameter) {
  if (parameter == "hidden") return layer.hidden.squaredNorm();
  if (parameter == "output") return layer.output.squaredNorm();
  double sum = 0;
  for (const HeadWeights& head : layer.heads)
    sum += (parameter == "query" ? head.query : parameter == "key" ? head.key : head.value).squaredNorm();
  return sum;
}

void require_gradient_options(const NetworkSpec& network, const Matrix<double>& v0,
                              const GradientOptions& options) {
  constexpr std::string_view where = "gradient_norms";
  require_covariance(where, v0);
  require_network(where, network, v0.rows());
  require_at_least(where, "depth", options.depth, 1);
  require_at_least(where, "networks", options.networks, 2);
  require_at_least(where, "threads", options.run.threads, 0);
  const auto n = static_cast<double>(network.width);
  double numbers = 0;
  if (network.attention)
    numbers += n * n + 2 * n * static_cast<double>(key_width_of(network) * heads_of(network));
  if (network.feedforward) numbers += 2 * n * static_cast<double>(hidden_width_of(network));
  const auto threads =
      static_cast<double>(options.run.threads > 0 ? static_cast<unsigned>(options.run.threads)
                                                  : std::thread::hardware_concurrency());
  const double at_once = std::min(threads, static_cast<double>(options.networks));
  numerics::require_memory(where, fmt::format("weights and gradients of {} layers", options.depth),
                           2 * numbers * static_cast<double>(options.depth) * at_once * sizeof(double),
                           "take a smaller width or depth, or fewer threads");
}

/// Squared norms by place: the tokens' first, then parameter by parameter, layer by layer.
std::vector<double> norms_of(const NetworkSpec& network, const Matrix<double>& v0,
                             const GradientOptions& options, Index sample) {
  numerics::RandomStream stream(options.seed, gradient_streams + static_cast<std::uint64_t>(sample));
  ExplicitNetwork inputs(network, v0.rows());
  inputs.start(v0, stream);
  const RecordedNetwork drawn(network, options.depth, stream);
  const Eigen::MatrixXd direction = normal_weights(v0.rows(), network.width, stream);
  const auto gradients = drawn.backward(drawn.forward(inputs.tokens()), direction);
  const double size = static_cast<double>(v0.rows() * network.width);
  std::vector<double> norms;
  for (const Eigen::MatrixXd& tokens : gradients.tokens) norms.push_back(tokens.squaredNorm() / size);
  for (const std::string& parameter : parameters_of(network))
    for (const LayerWeights& layer : gradients.layers) norms.push_back(squared_norm(layer, parameter) / size);
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
