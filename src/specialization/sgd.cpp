#include "widelimit/specialization/sgd.hpp"

#include <Eigen/Cholesky>

#include "normals.hpp"
#include "vector_sgd.hpp"
#include "widelimit/numerics/symmetric_root.hpp"

namespace widelimit::specialization {

namespace {

void check_batch(HeadActivation activation, const HeadVectors& heads, const TokenBatch& batch) {
  constexpr const char* where = "batch_loss";
  const Index sequences = static_cast<Index>(batch.eps.size());
  require_at_least(where, "sequences N", sequences, 1);
  require_at_least(where, "tokens L", batch.tokens, 1);
  require_at_least(where, "heads (rows of k)", heads.k.rows(), 1);
  require_shape(where, "X", batch.X, sequences * batch.tokens, heads.k.cols());
  require_offsets(where, activation, heads.k.rows(), heads.b, heads.v);
  require_finite(where, "k", heads.k);
  require_finite(where, "X", batch.X);
  for (const Index eps : batch.eps) require_index(where, "eps", eps, batch.tokens);
}

void fill_normal_matrix(Matrix<double>& matrix, double deviation, numerics::RandomStream& random) {
  for (double& entry : matrix.reshaped<Eigen::RowMajor>()) entry = deviation * random.normal();
}

}  // namespace

BatchLoss batch_loss(HeadActivation activation, const HeadVectors& heads, const TokenBatch& batch) {
  check_batch(activation, heads, batch);
  const Index sequences = static_cast<Index>(batch.eps.size());
  return mean_over_batch<double>(activation, heads, batch.tokens, sequences, {},
                                 [&](Index block, Index size, Matrix<double>& X, std::vector<Index>& eps) {
                                   const Index first = block * kSequencesPerBlock;
                                   X = batch.X.middleRows(first * batch.tokens, size * batch.tokens);
                                   std::copy_n(batch.eps.begin() + first, size, eps.begin());
                                 });
}

std::vector<Index> check_sgd_options(const char* where, const SgdOptions& options) {
  require_at_least(where, "tokens L", options.tokens, 1);
  require_at_least(where, "batch N_b", options.batch, 1);
  require_at_least(where, "steps", options.steps, 0);
  require_positive(where, "gamma", options.gamma);
  return checked_record(where, options.record, options.steps);
}

SgdStart random_start(HeadActivation activation, Index heads, Index features, Index dimension, double eta,
                      std::uint64_t seed) {
  constexpr const char* where = "random_start";
  require_at_least(where, "heads H", heads, 1);
  require_at_least(where, "features F", features, 1);
  require_at_least(where, "dimension D", dimension, 1);
  require_not_negative(where, "eta", eta);
  numerics::RandomStream random(seed);
  const double deviation = 1 / std::sqrt(static_cast<double>(dimension));
  SgdStart start;
  start.k_star.resize(features, dimension);
  start.heads.k.resize(heads, dimension);
  fill_normal_matrix(start.k_star, deviation, random);
  fill_normal_matrix(start.heads.k, eta * deviation, random);
  start.heads.b = Vector<double>::Zero(heads);
  start.heads.v = Vector<double>::Ones(scale_count(activation, heads));
  return start;
}

SgdStart plant(SgdStart start, const Matrix<double>& m) {
  require_shape("plant", "m", m, start.heads.k.rows(), start.k_star.rows());
  const OrderParameters now = order_parameters(start.heads.k, start.k_star);
  const Eigen::LLT<Eigen::MatrixXd> factor(now.p);
  start.heads.k += factor.solve(Eigen::MatrixXd((m - now.m).transpose())).transpose() * start.k_star;
  return start;
}

std::vector<SgdPoint> sgd(HeadActivation activation, const Prior& prior, const SgdStart& start,
                          const SgdOptions& options) {
  const std::vector<Index> record = check_sgd_options("sgd", options);
  const Index dimension = start.k_star.cols(), tokens = options.tokens;
  require_shape("sgd", "k_star", start.k_star, prior.features(), dimension);
  require_shape("sgd", "k", start.heads.k, start.heads.k.rows(), dimension);
  require_offsets("sgd", activation, start.heads.k.rows(), start.heads.b, start.heads.v);
  const Matrix<float> spikes = start.k_star.cast<float>();
  const auto blocks =
      static_cast<std::uint64_t>((options.batch + kSequencesPerBlock - 1) / kSequencesPerBlock);

  const auto batch = [&](Index step, const HeadVectors& heads) {
    const auto draw = [&](Index block, Index size, Matrix<float>& X, std::vector<Index>&) {
      const std::uint64_t stream =
          2 * (static_cast<std::uint64_t>(step) * blocks + static_cast<std::uint64_t>(block));
      fill_normals({X.data(), static_cast<std::size_t>(X.size())}, options.seed, stream);
      numerics::RandomStream random(options.seed, stream + 1);
      Vector<double> theta;
      for (Index mu = 0; mu < size; ++mu) {
        prior.sample(random, theta);
        X.row(mu * tokens) += theta.cast<float>().transpose() * spikes;
      }
    };
    return mean_over_batch<float>(activation, heads, tokens, options.batch, options.run, draw);
  };
  std::vector<SgdPoint> points;
  numerics::on_threads(options.run.threads, [&] {
    run_sgd(options, start.heads, record, batch, [&](Index step, double loss, const HeadVectors& heads) {
      points.push_back({options.gamma * static_cast<double>(step), loss,
                        order_parameters(heads.k, start.k_star), heads.b, heads.v});
    });
  });
  return points;
}

MatchedFlow matched_flow(const SgdPoint& point) {
  return {{point.overlaps.m_whitened, point.overlaps.r, point.b, point.v},
          numerics::symmetric_root(point.overlaps.p, overlap_rounding)};
}

}  // namespace widelimit::specialization
