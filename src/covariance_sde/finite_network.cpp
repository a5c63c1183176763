#include "widelimit/covariance_sde/finite_network.hpp"

#include <fmt/format.h>

#include "covariance_sde/explicit_network.hpp"
#include "covariance_sde/heads_chain.hpp"
#include "covariance_sde/mlp_chain.hpp"
#include "covariance_sde/network_chain.hpp"
#include "covariance_sde/path_bounds.hpp"
#include "numerics/tasks.hpp"
#include "widelimit/covariance_sde/lower_root.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit::covariance_sde {

namespace {

/// Streams of networks and of the SDE's paths are apart, so that one seed gives them different numbers.
constexpr std::uint64_t network_streams = std::uint64_t{1} << 63;

void require_options(const NetworkSpec& network, const Matrix<double>& v0, const NetworkOptions& options) {
  constexpr std::string_view where = "sample_networks";
  require_covariance(where, v0);
  require_network(where, network, v0.rows());
  if (options.sampling == NetworkSampling::reduced) require_reduction(where, network, v0.rows());
  require_bounds(where, options.bounds);
  require_start(where, v0, options.bounds);
  require_at_least(where, "samples", options.samples, 1);
  require_at_least(where, "threads", options.threads, 0);
  if (options.layers.empty())
    throw ArgumentError("sample_networks: layers must hold at least the depth, got none");
  Index last = 0;
  for (const Index layer : options.layers) {
    if (layer <= last)
      throw ArgumentError(
          fmt::format("sample_networks: layers must increase from at least 1, got {} after {}", layer, last));
    last = layer;
  }
  require_at_most(where, "the depth", last, 1'000'000'000);
  require_at_most(where, "the width", network.width, 1'000'000'000);
}

std::vector<double> layer_times(const NetworkSpec& network, const std::vector<Index>& layers) {
  std::vector<double> times;
  times.reserve(layers.size());
  // Time counts layers in units of the width.
  for (const Index layer : layers)
    times.push_back(static_cast<double>(layer) / static_cast<double>(network.width));
  return times;
}

/// One network, layer by layer; stops at the first layer outside the bounds.
template <typename Chain>
void run_network(Chain& chain, const typename Chain::Square& v0, const NetworkSpec& network,
                 const NetworkOptions& options, Index sample, CovarianceEnsemble& ensemble) {
  numerics::RandomStream stream(options.seed, network_streams + static_cast<std::uint64_t>(sample));
  PathOutcome outcome;
  chain.start(v0, stream);
  typename Chain::Square v = v0, seen = chain.branch_covariance();
  const StopRequest stop(options.stop);
  Index layer = 0;
  for (std::size_t k = 0; k < options.layers.size(); ++k) {
    while (layer < options.layers[k] && outcome.end == PathEnd::horizon) {
      stop.check();
      ++layer;
      const bool valid = chain.layer(stream);
      const typename Chain::Square next = chain.covariance();
      const std::optional<PathEnd> end = valid ? end_of_path(next, options.bounds) : PathEnd::not_finite;
      // A path that ends keeps its last covariance inside the bounds.
      if (!end) v = next;
      const auto n = static_cast<double>(network.width);
      outcome.stop_time = static_cast<double>(layer) / n;
      outcome.last_inside_time = static_cast<double>(end ? layer - 1 : layer) / n;
      if (end) outcome.end = *end;
    }
    if (options.kept == CovarianceOf::branch_inputs && outcome.end == PathEnd::horizon)
      seen = chain.branch_covariance();
    ensemble.set_covariance(static_cast<Index>(k), sample, options.kept == CovarianceOf::tokens ? v : seen);
  }
  ensemble.outcome(sample) = outcome;
}

template <typename Chain>
void run_networks(const NetworkSpec& network, const Matrix<double>& v0, const NetworkOptions& options,
                  CovarianceEnsemble& ensemble) {
  const typename Chain::Square start = v0;
  const auto run_sample = [&](Index sample) {
    Chain chain(network, v0.rows());
    run_network(chain, start, network, options, sample, ensemble);
  };
  numerics::on_threads(options.threads, [&] {
    numerics::for_each_task(options.samples, {.stop = options.stop, .progress = options.progress}, run_sample,
                            paths_a_task);
  });
}

using Chain = NetworkChain<Eigen::Dynamic>;

void require_layer(std::string_view where, const NetworkSpec& network, const Matrix<double>& v,
                   bool has_block, std::string_view block) {
  require_covariance(where, v);
  require_network(where, network, v.rows());
  if (!has_block)
    throw ArgumentError(fmt::format("{}: the network must have {} block, got none", where, block));
  if (network.normalization != Normalization::none)
    throw ArgumentError(fmt::format("{}: the network must have no normalisation", where));
  if (heads_of(network) != 1)
    throw ArgumentError(fmt::format("{}: the network must have one head, got {}", where, heads_of(network)));
}

/// V after the query-key product of an attention block, before its residual.
Chain attended(std::string_view where, const NetworkSpec& network, const Matrix<double>& v,
               const Matrix<double>& query_key) {
  require_layer(where, network, v, network.attention.has_value(), "an attention");
  require_shape(where, "query_key", query_key, v.rows(), v.rows());
  Chain chain(network, v.rows());
  chain.set_covariance(v);
  chain.attend_with(query_key);
  return chain;
}

Matrix<double> finish_layer(std::string_view where, Chain& chain, const ResidualDraws& draws, Index m) {
  require_shape(where, "z", draws.z, m, m);
  require_shape(where, "wishart", draws.wishart, m, m);
  chain.update_with(draws.z, lower_root(draws.wishart));
  return chain.covariance();
}

}  // namespace

CovarianceEnsemble sample_networks(const NetworkSpec& network, const Matrix<double>& v0,
                                   const NetworkOptions& options) {
  require_options(network, v0, options);
  CovarianceEnsemble ensemble(v0.rows(), options.samples, layer_times(network, options.layers), options.kept);
  if (options.sampling == NetworkSampling::explicit_weights) {
    run_networks<ExplicitNetwork>(network, v0, options, ensemble);
    return ensemble;
  }
  if (network.plain)
    run_networks<MlpChain>(network, v0, options, ensemble);
  else if (heads_of(network) > 1)
    run_networks<HeadsChain>(network, v0, options, ensemble);
  // Matrices of two tokens have a size that the compiler knows.
  else if (v0.rows() == 2)
    run_networks<NetworkChain<2>>(network, v0, options, ensemble);
  else
    run_networks<NetworkChain<Eigen::Dynamic>>(network, v0, options, ensemble);
  return ensemble;
}

Matrix<double> attention_matrix(const NetworkSpec& network, const Matrix<double>& v,
                                const Matrix<double>& query_key) {
  return attended("attention_matrix", network, v, query_key).attention();
}

Matrix<double> attention_layer(const NetworkSpec& network, const Matrix<double>& v,
                               const Matrix<double>& query_key, const ResidualDraws& draws) {
  constexpr std::string_view where = "attention_layer";
  Chain chain = attended(where, network, v, query_key);
  return finish_layer(where, chain, draws, v.rows());
}

Matrix<double> feedforward_layer(const NetworkSpec& network, const Matrix<double>& v, const Matrix<double>& g,
                                 const ResidualDraws& draws) {
  constexpr std::string_view where = "feedforward_layer";
  require_layer(where, network, v, network.feedforward.has_value(), "a feedforward");
  require_shape(where, "g", g, v.rows(), hidden_width_of(network));
  Chain chain(network, v.rows());
  chain.set_covariance(v);
  const ActivationSlopes slopes = network.feedforward->slopes;
  // Columns of the root times g are Gaussian with the covariance of the tokens that the branch reads.
  Eigen::MatrixXd hidden = chain.input_root() * g;
  hidden = hidden.cwiseMax(0) * slopes.plus + hidden.cwiseMin(0) * slopes.minus;
  chain.set_branch_gram(slopes.normaliser() / static_cast<double>(g.cols()) * hidden * hidden.transpose());
  return finish_layer(where, chain, draws, v.rows());
}

}  // namespace widelimit::covariance_sde
