#include "widelimit/covariance_sde/softmax_entropy.hpp"

#include <fmt/format.h>

#include <cmath>

#include "covariance_sde/arguments.hpp"
#include "covariance_sde/chain_draws.hpp"
#include "covariance_sde/guarded_cholesky.hpp"
#include "numerics/tasks.hpp"

namespace widelimit::covariance_sde {

namespace {

// Apart from those of sample_networks() and of paths.
constexpr std::uint64_t entropy_streams = std::uint64_t{5} << 61;

void require_attends(std::string_view where, const NetworkSpec& network, Index tokens) {
  require_network(where, network, tokens);
  if (!network.attention)
    throw ArgumentError(fmt::format("{}: the network must have an attention block, got none", where));
}

double entropy_of(Eigen::Ref<const Eigen::RowVectorXd> row) {
  double sum = 0;
  for (const double p : row)
    if (p > 0) sum -= p * std::log(p);
  return sum;
}

/// Entropies of the rows of the softmax, for logits drawn for a covariance v.
Eigen::VectorXd drawn_entropies(const NetworkSpec& softmax, const Matrix<double>& v,
                                numerics::RandomStream& stream) {
  const Index m = v.rows();
  Eigen::MatrixXd root(m, m), wishart(m, m), normals(m, m), product(m, m);
  static_cast<void>(guarded_cholesky(Eigen::MatrixXd(v), root));
  draw_query_key(key_width_of(softmax), stream, wishart, normals, product);
  Eigen::MatrixXd rows = root * product * root.transpose();
  apply_softmax(softmax, rows);
  Eigen::VectorXd entropies(m);
  for (Index a = 0; a < m; ++a) entropies(a) = entropy_of(rows.row(a));
  return entropies;
}

}  // namespace

std::vector<numerics::Estimate> softmax_entropy(const NetworkSpec& network,
                                                const CovarianceEnsemble& ensemble, Index time,
                                                std::uint64_t seed, const RunControl& run) {
  constexpr std::string_view where = "softmax_entropy";
  require_attends(where, network, ensemble.tokens());
  if (network.normalization == Normalization::pre_layer_norm &&
      ensemble.kept() != CovarianceOf::branch_inputs)
    throw ArgumentError(
        fmt::format("{}: of a Pre-LN network the ensemble must hold what branches see, NetworkOptions::kept "
                    "= branch_inputs",
                    where));
  if (time < 0 || time >= static_cast<Index>(ensemble.times().size()))
    throw ArgumentError(fmt::format("{}: time must be the index of one of {} times, got {}", where,
                                    ensemble.times().size(), time));
  NetworkSpec softmax = network;
  // Identity and centring are taken off: what has an entropy is the softmax alone.
  softmax.attention->identity_weight = softmax.attention->centring_weight = 0;
  const std::vector<Index> running = ensemble.running_paths(time);
  const auto count = static_cast<Index>(running.size());
  std::vector<std::vector<double>> entropies(static_cast<std::size_t>(ensemble.tokens()),
                                             std::vector<double>(running.size()));
  numerics::on_threads(run.threads, [&] {
    numerics::for_each_task(count, run, [&](Index i) {
      const Index path = running[static_cast<std::size_t>(i)];
      numerics::RandomStream stream(seed, entropy_streams + static_cast<std::uint64_t>(path));
      const Eigen::VectorXd drawn = drawn_entropies(softmax, ensemble.covariance(time, path), stream);
      for (Index a = 0; a < drawn.size(); ++a)
        entropies[static_cast<std::size_t>(a)][static_cast<std::size_t>(i)] = drawn(a);
    });
  });
  std::vector<numerics::Estimate> means;
  for (const std::vector<double>& values : entropies)
    means.push_back(values.empty() ? numerics::Estimate{std::nan(""), std::nan("")} : numerics::mean(values));
  return means;
}

Vector<double> softmax_entropy_expansion(const NetworkSpec& network, const Matrix<double>& v) {
  constexpr std::string_view where = "softmax_entropy_expansion";
  require_covariance(where, v);
  require_attends(where, network, v.rows());
  const double tau = softmax_temperature(network), keys = static_cast<double>(key_width_of(network));
  Vector<double> entropies(v.rows());
  for (Index a = 0; a < v.rows(); ++a) {
    const Index seen = visible_tokens(network.attention->mask, a, v.rows());
    const auto block = v.topLeftCorner(seen, seen);
    // docs/theory/covariance-sde.md, section 6.2: half the variance of the logits that the row sees is lost.
    const double spread = block.diagonal().mean() - block.mean();  // tr(J_a V)
    entropies(a) = std::log(static_cast<double>(seen)) - v(a, a) * spread * keys / (2 * tau * tau);
  }
  return entropies;
}

}  // namespace widelimit::covariance_sde
