#include "widelimit/specialization/sgd.hpp"

#include <Eigen/Cholesky>

#include "numerics/normal_matrix.hpp"
#include "specialization/vector_sgd.hpp"
#include "widelimit/numerics/symmetric_root.hpp"

namespace widelimit::specialization {

namespace {

void check_batch(HeadActivation activation, const HeadVectors& heads, const TokenBatch& batch) {
  constexpr const char* where = "batch_loss";
  const Index sequences = static_cast<Index>(batch.eps.size());
  require_at_least(where, "sequences N", sequences, 1);
  require_at_least(where, "tokens L", batch.tokens, 1);
  check_heads(where, activation, heads, heads.k.cols());
  require_shape(where, "X", batch.X, sequences * batch.tokens, heads.k.cols());
  require_finite(where, "k", heads.k);
  require_finite(where, "X", batch.X);
  for (const Index eps : batch.eps) require_index(where, "eps", eps, batch.tokens);
}

}  // namespace

BatchLoss batch_loss(HeadActivation activation, const HeadVectors& heads, const TokenBatch& batch) {
  check_batch(activation, heads, batch);
  const Index sequences = static_cast<Index>(batch.eps.size());
  return mean_over_batch<double>(activation, heads, batch.tokens, sequences, {},
                                 [&](Index block, Matrix<double>& X, std::vector<Index>& eps) {
                                   const Index first = block * sequences_per_block;
                                   X = batch.X.middleRows(first * batch.tokens, X.rows());
                                   std::copy_n(batch.eps.begin() + first, eps.size(), eps.begin());
                                 });
}

std::vector<Index> check_sgd_options(const char* where, const SgdOptions& options) {
  require_at_least(where, "tokens L", options.tokens, 1);
  require_at_least(where, "batch N_b", options.batch, 1);
  require_at_least(where, "steps", options.steps, 0);
  require_positive(where, "gamma", options.gamma);
  return checked_record(where, options.record, options.steps);
}

void check_heads(const char* where, HeadActivation activation, const HeadVectors& heads, Index dimension) {
  require_at_least(where, "heads (rows of k)", heads.k.rows(), 1);
  require_shape(where, "k", heads.k, heads.k.rows(), dimension);
  require_offsets(where, activation, heads.k.rows(), heads.b, heads.v);
}

void check_start(const char* where, Index heads, Index features, Index dimension, Index least, double eta) {
  require_at_least(where, "heads H", heads, 1);
  require_at_least(where, "features F", features, 1);
  require_at_least(where, "dimension D", dimension, least);
  require_not_negative(where, "eta", eta);
}

SgdStart random_start(HeadActivation activation, Index heads, Index features, Index dimension, double eta,
                      std::uint64_t seed) {
  check_start("random_start", heads, features, dimension, 1, eta);
  numerics::RandomStream random(seed);
  // Entries with this deviation give every row a squared norm of about 1.
  const double deviation = 1 / std::sqrt(static_cast<double>(dimension));
  const Matrix<double> k_star = numerics::normal_matrix(features, dimension, random, deviation);
  const Matrix<double> k = numerics::normal_matrix(heads, dimension, random, eta * deviation);
  return {{k, Vector<double>::Zero(heads), Vector<double>::Ones(scale_count(activation, heads))}, k_star};
}

SgdStart plant(SgdStart start, const Matrix<double>& m) {
  require_shape("plant", "m", m, start.heads.k.rows(), start.k_star.rows());
  const OrderParameters now = order_parameters(start.heads.k, start.k_star);
  const Eigen::LLT<Eigen::MatrixXd> factor(now.p);
  // k moves within the span of the spikes: k + (m - m_now) p^-1 k_star has the overlaps m.
  start.heads.k += factor.solve(Eigen::MatrixXd((m - now.m).transpose())).transpose() * start.k_star;
  return start;
}

std::vector<SgdPoint> sgd(HeadActivation activation, const Prior& prior, const SgdStart& start,
                          const SgdOptions& options) {
  const std::vector<Index> record = check_sgd_options("sgd", options);
  const Index dimension = start.k_star.cols();
  require_shape("sgd", "k_star", start.k_star, prior.features(), dimension);
  check_heads("sgd", activation, start.heads, dimension);
  const Matrix<float> spikes = start.k_star.cast<float>();
  std::vector<SgdPoint> points;
  run_sgd(
      activation, options, record, start.heads,
      [&](std::uint64_t stream, Matrix<float>& X) {
        Vector<double> theta;
        draw_sequences(options.seed, stream, options.tokens, X,
                       [&](numerics::RandomStream& random, auto token) {
                         prior.sample(random, theta);
                         // The relevant token carries the spikes with the weights theta, on top of its noise.
                         token += theta.cast<float>().transpose() * spikes;
                       });
      },
      [&](double tau, double loss, const HeadVectors& heads) {
        points.push_back({tau, loss, order_parameters(heads.k, start.k_star), heads.b, heads.v});
      });
  return points;
}

MatchedFlow matched_flow(const SgdPoint& point) {
  return {{point.overlaps.m_whitened, point.overlaps.r, point.b, point.v},
          numerics::symmetric_root(point.overlaps.p, overlap_rounding)};
}

}  // namespace widelimit::specialization
