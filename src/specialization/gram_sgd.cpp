#include <Eigen/Cholesky>
#include <cmath>

#include "numerics/wishart.hpp"
#include "specialization/vector_sgd.hpp"

namespace widelimit::specialization {

namespace {

/// Sums over the sequences of a block; see gram_step.
struct GramSums {
  double loss = 0;
  Matrix<double> projection;  ///< H x (H + F): sum G z^T.
  Matrix<double> orthogonal;  ///< H x H: sum G W G^T.
  Vector<double> b;
  Vector<double> v;
};

Matrix<double> cholesky(const Matrix<double>& gram) {
  const Eigen::LLT<Eigen::MatrixXd> factor(gram);
  if (factor.info() != Eigen::Success)
    throw NumericalError(
        "gram_step: the Gram matrix of heads and spikes is not positive definite; take a smaller gamma");
  // The state is C C^T, with C in the order of heads, then spikes.
  return factor.matrixL();
}

GramSums sum_block(HeadActivation activation, const GramState& state, const Matrix<double>& C,
                   const GramBatch& block) {
  const Index heads = state.b.size(), size = C.rows(), features = size - heads, tokens = block.tokens;
  HeadPass pass(activation, heads, tokens);
  GramSums sums{0, Matrix<double>::Zero(heads, size), Matrix<double>::Zero(heads, heads),
                Vector<double>::Zero(heads), Vector<double>::Zero(state.v.size())};
  Matrix<double> z(tokens, size), chi(heads, tokens), W(tokens, tokens), products(tokens, tokens),
      GW(heads, tokens);
  Vector<double> miss(tokens), g(tokens);
  for (Index mu = 0; mu < block.theta.rows(); ++mu) {
    const Index eps = block.eps[static_cast<std::size_t>(mu)];
    z = block.z.middleRows(mu * tokens, tokens);
    // C^-1 M = C^T: the signal in the coordinates of z.
    z.row(eps).noalias() += block.theta.row(mu) * C.bottomRows(features);
    // A head is its row of C in the coordinates of z, so that its scores are products with z.
    chi.noalias() = C.topRows(heads).lazyProduct(z.transpose());
    const auto T = block.T.middleRows(mu * tokens, tokens);
    // W has the products of the tokens' parts that are orthogonal to all heads and spikes.
    W.noalias() = T.lazyProduct(T.transpose());
    products.noalias() = z.lazyProduct(z.transpose());
    products += W;
    pass.forward(chi, state.b, state.v);
    miss = pass.a;
    miss[eps] -= 1;
    // g_l = (2 / D) X_l . (y^ - y): products of tokens are z z^T within the span of heads and spikes, and W beside it.
    g.noalias() = products.lazyProduct(miss);
    sums.loss += g.dot(miss);
    g *= 2 / static_cast<double>(state.dimension);
    pass.backward(g, state.v);
    const Matrix<double>& G = pass.chi_gradient;
    sums.projection.noalias() += G.lazyProduct(z);
    GW.noalias() = G.lazyProduct(W);
    sums.orthogonal.noalias() += GW.lazyProduct(G.transpose());
    sums.b += pass.b_gradient;
    sums.v += pass.v_gradient;
  }
  return sums;
}

/// Applies the summed step; returns the mean loss.
double apply_step(GramState& state, const Matrix<double>& C, const std::vector<GramSums>& parts, Index count,
                  double gamma) {
  GramSums total = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    total.loss += parts[i].loss;
    total.projection += parts[i].projection;
    total.orthogonal += parts[i].orthogonal;
    total.b += parts[i].b;
    total.v += parts[i].v;
  }
  const double n = static_cast<double>(count);
  const Index heads = state.b.size(), size = C.rows();
  // docs/theory/head-specialization.md, section 4: the change of the heads is -gamma c in the coordinates of z, and its
  // part orthogonal to all heads and spikes enters q alone.
  const Matrix<double> c = total.projection / n;
  const Matrix<double> change = gamma * c * C.transpose();
  state.gram.topRows(heads) -= change;
  state.gram.leftCols(heads) -= change.transpose();
  state.gram.topLeftCorner(heads, heads) += gamma * gamma * (c * c.transpose() + total.orthogonal / (n * n));
  // Both triangles are kept equal to the last bit.
  state.gram.bottomLeftCorner(size - heads, heads) =
      state.gram.topRightCorner(heads, size - heads).transpose();
  state.b -= gamma / n * total.b;
  state.v -= gamma / n * total.v;
  return total.loss / (n * static_cast<double>(state.dimension));
}

void check_state(const char* where, HeadActivation activation, const GramState& state) {
  const Index heads = state.b.size();
  require_at_least(where, "heads (entries of b)", heads, 1);
  require_offsets(where, activation, heads, state.b, state.v);
  require_at_least(where, "rows of the Gram matrix", state.gram.rows(), heads + 1);
  require_shape(where, "gram", state.gram, state.gram.rows(), state.gram.rows());
  require_finite(where, "gram", state.gram);
}

void check_dimension(const char* where, const GramState& state, Index tokens) {
  // The orthogonal parts of L tokens need L dimensions beside heads and spikes.
  const Index least = state.gram.rows() + tokens;
  if (state.dimension < least)
    throw ArgumentError(
        fmt::format("{}: dimension D must be at least H + F + L = {}, got {}; use sgd for smaller D", where,
                    least, state.dimension));
}

constexpr Index gram_block = 128;

/// Draws `count` sequences from a stream: z and the lower triangles below the diagonal are normal, the diagonals of T
/// chi.
GramBatch drawn_block(const Prior& prior, const GramState& state, const SgdOptions& options,
                      std::uint64_t stream, Index count) {
  const Index size = state.gram.rows(), tokens = options.tokens;
  const Index below = tokens * (tokens - 1) / 2, each = tokens * size + below;
  std::vector<float> normals(static_cast<std::size_t>(count * each));
  numerics::fill_normals(normals, options.seed, 2 * stream);
  numerics::RandomStream random(options.seed, 2 * stream + 1);
  GramBatch block{tokens, Matrix<double>(count * tokens, size), Matrix<double>::Zero(count * tokens, tokens),
                  Matrix<double>(count, prior.features()),
                  std::vector<Index>(static_cast<std::size_t>(count))};
  Vector<double> features;
  const float* next = normals.data();
  for (Index mu = 0; mu < count; ++mu) {
    for (Index l = 0; l < tokens; ++l)
      for (Index i = 0; i < size; ++i) block.z(mu * tokens + l, i) = static_cast<double>(*next++);
    for (Index l = 0; l < tokens; ++l) {
      for (Index j = 0; j < l; ++j) block.T(mu * tokens + l, j) = static_cast<double>(*next++);
      // This is Bartlett's decomposition of a Wishart matrix of D - H - F degrees of freedom.
      block.T(mu * tokens + l, l) = std::sqrt(numerics::chi_squared(state.dimension - size - l, random));
    }
    prior.sample(random, features);
    block.theta.row(mu) = features.transpose();
  }
  return block;
}

}  // namespace

GramState random_gram_start(HeadActivation activation, Index heads, Index features, Index dimension,
                            double eta, std::uint64_t seed) {
  const Index size = heads + features;
  check_start("random_gram_start", heads, features, dimension, size, eta);
  numerics::RandomStream random(seed);
  // Rows of the root over sqrt(D) stand for heads, scaled by eta, and spikes.
  Matrix<double> factor(size, size);
  numerics::draw_wishart_root(dimension, random, factor);
  factor /= std::sqrt(static_cast<double>(dimension));
  factor.topRows(heads) *= eta;
  return {factor * factor.transpose(), Vector<double>::Zero(heads),
          Vector<double>::Ones(scale_count(activation, heads)), dimension};
}

GramState plant(GramState start, const Matrix<double>& m) {
  const Index heads = start.b.size(), features = start.gram.rows() - heads;
  require_shape("plant", "m", m, heads, features);
  const Matrix<double> old_m = start.gram.topRightCorner(heads, features);
  const Matrix<double> p = start.gram.bottomRightCorner(features, features);
  const Eigen::LLT<Eigen::MatrixXd> factor(p);
  // m p^-1 m^T is the part of q that lies in the span of the spikes.
  const auto along_spikes = [&](const Matrix<double>& overlaps) {
    return Matrix<double>(overlaps * factor.solve(Eigen::MatrixXd(overlaps.transpose())));
  };
  // What the heads have orthogonal to the spikes stays as it was drawn.
  start.gram.topLeftCorner(heads, heads) += along_spikes(m) - along_spikes(old_m);
  start.gram.topRightCorner(heads, features) = m;
  start.gram.bottomLeftCorner(features, heads) = m.transpose();
  return start;
}

double gram_step(HeadActivation activation, GramState& state, const GramBatch& batch, double gamma) {
  constexpr const char* where = "gram_step";
  check_state(where, activation, state);
  require_positive(where, "gamma", gamma);
  require_at_least(where, "tokens L", batch.tokens, 1);
  const Index count = static_cast<Index>(batch.eps.size()), size = state.gram.rows();
  require_at_least(where, "sequences N", count, 1);
  check_dimension(where, state, batch.tokens);
  require_shape(where, "z", batch.z, count * batch.tokens, size);
  require_shape(where, "T", batch.T, count * batch.tokens, batch.tokens);
  require_shape(where, "theta", batch.theta, count, size - state.b.size());
  for (const Index eps : batch.eps) require_index(where, "eps", eps, batch.tokens);
  const Matrix<double> C = cholesky(state.gram);
  return apply_step(state, C, {sum_block(activation, state, C, batch)}, count, gamma);
}

std::vector<SgdPoint> gram_sgd(HeadActivation activation, const Prior& prior, GramState state,
                               const SgdOptions& options) {
  constexpr const char* where = "gram_sgd";
  const std::vector<Index> record = check_sgd_options(where, options);
  check_state(where, activation, state);
  check_dimension(where, state, options.tokens);
  const Index heads = state.b.size(), features = state.gram.rows() - heads;
  if (features != prior.features())
    throw ArgumentError(
        fmt::format("{}: the state has {} spikes, the prior {} features", where, features, prior.features()));
  const Index blocks = (options.batch + gram_block - 1) / gram_block;
  std::vector<SgdPoint> points;
  SgdGuard guard(where, options.gamma);
  auto next = record.begin();
  numerics::on_threads(options.run.threads, [&] {
    for (Index step = 0; step <= options.steps; ++step) {
      // Parameters are recorded as they are before the step, because the loss is theirs.
      const GramState before = state;
      const Matrix<double> C = cholesky(before.gram);
      const auto sums_of = [&](Index block, Index count) {
        // Every block of every step has a stream of its own.
        const auto stream = static_cast<std::uint64_t>(step * blocks + block);
        return sum_block(activation, before, C, drawn_block(prior, before, options, stream, count));
      };
      const auto parts =
          numerics::parts_of_blocks(options.batch, gram_block, {.stop = options.run.stop}, sums_of);
      const double loss = apply_step(state, C, parts, options.batch, options.gamma);
      guard.see(step, loss);
      if (options.run.progress) options.run.progress(step, options.steps);
      if (step != *next) continue;
      ++next;
      points.push_back({options.gamma * static_cast<double>(step), loss,
                        order_parameters(before.gram.topLeftCorner(heads, heads),
                                         before.gram.topRightCorner(heads, features),
                                         before.gram.bottomRightCorner(features, features)),
                        before.b, before.v});
    }
  });
  return points;
}

}  // namespace widelimit::specialization
