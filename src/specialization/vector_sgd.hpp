#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "numerics/block_sums.hpp"
#include "numerics/float_normals.hpp"
#include "specialization/checks.hpp"
#include "specialization/head_parts.hpp"
#include "specialization/head_pass.hpp"

namespace widelimit::specialization {

/// Sequences a thread works on together; part of the fixed order of summation.
inline constexpr Index sequences_per_block = 16;

/// Sums over the sequences X ((n L) x D) of the loss D |..|^2 and of the gradients.
template <typename Scalar>
BatchLoss sum_sequences(HeadActivation activation, const Matrix<Scalar>& k, const Vector<double>& b,
                        const Vector<double>& v, const Matrix<Scalar>& X, Index tokens, const Index* eps) {
  const Index heads = k.rows(), dimension = k.cols(), count = X.rows() / tokens;
  HeadPass pass(activation, heads, tokens);
  BatchLoss sums{0, {{}, Vector<double>::Zero(heads), Vector<double>::Zero(v.size())}};
  // One product of matrices makes the scores of all sequences.
  const Matrix<Scalar> chi = k * X.transpose();
  Matrix<Scalar> gradients(heads, X.rows());
  Matrix<double> own(heads, tokens);
  for (Index mu = 0; mu < count; ++mu) {
    const Index first = mu * tokens;
    own = chi.middleCols(first, tokens).template cast<double>();
    pass.forward(own, b, v);
    Vector<double> miss = pass.a;
    miss[eps[mu]] -= 1;
    // y^ - y = sum_l (a_l - delta_l) X_l.
    const Vector<Scalar> residual = X.middleRows(first, tokens).transpose() * miss.template cast<Scalar>();
    sums.loss += static_cast<double>(residual.squaredNorm());
    // g_l = (2 / D) X_l . (y^ - y) is the derivative of the loss with respect to a_l.
    const Vector<double> g = (X.middleRows(first, tokens) * residual).template cast<double>() *
                             (2 / static_cast<double>(dimension));
    pass.backward(g, v);
    gradients.middleCols(first, tokens) = pass.chi_gradient.template cast<Scalar>();
    sums.gradient.b += pass.b_gradient;
    sums.gradient.v += pass.v_gradient;
  }
  // This is the chain rule through chi = k X^T, for all sequences in one product.
  sums.gradient.k = (gradients * X).template cast<double>();
  return sums;
}

/// Mean over `count` sequences. draw(block, X, eps) fills the tokens of one block; eps is 0 where it leaves it.
template <typename Scalar, typename Draw>
BatchLoss mean_over_batch(HeadActivation activation, const HeadVectors& heads, Index tokens, Index count,
                          const RunControl& run, const Draw& draw) {
  const Matrix<Scalar> k = heads.k.cast<Scalar>();
  const auto sums_of = [&](Index block, Index size) {
    Matrix<Scalar> X(size * tokens, k.cols());
    std::vector<Index> eps(static_cast<std::size_t>(size), 0);
    draw(block, X, eps);
    return sum_sequences(activation, k, heads.b, heads.v, X, tokens, eps.data());
  };
  const auto parts = numerics::parts_of_blocks(count, sequences_per_block, {.stop = run.stop}, sums_of);
  BatchLoss mean = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    mean.loss += parts[i].loss;
    add_scaled(mean.gradient, 1, parts[i].gradient);
  }
  const double n = static_cast<double>(count);
  mean.loss /= n * static_cast<double>(k.cols());
  for_each_part([&](auto& part) { part /= n; }, mean.gradient);
  return mean;
}

/// Fills X ((n L) x D) with the noise of a stream of `seed`; add_signal(random, row) then adds its signal to the first
/// token of each sequence.
template <typename AddSignal>
void draw_sequences(std::uint64_t seed, std::uint64_t stream, Index tokens, Matrix<float>& X,
                    const AddSignal& add_signal) {
  numerics::fill_normals({X.data(), static_cast<std::size_t>(X.size())}, seed, 2 * stream);
  numerics::RandomStream random(seed, 2 * stream + 1);
  for (Index first = 0; first < X.rows(); first += tokens) add_signal(random, X.row(first));
}

/// Checks shared by all forms of SGD; returns the record with the last step in it.
std::vector<Index> check_sgd_options(const char* where, const SgdOptions& options);
/// At least one head, of `dimension` entries, with the offsets of the activation.
void check_heads(const char* where, HeadActivation activation, const HeadVectors& heads, Index dimension);
/// Sizes of a start in at least so many dimensions.
void check_start(const char* where, Index heads, Index features, Index dimension, Index least, double eta);

/// Watches SGD for a learning rate that is too large: batches scatter, but not by a factor of a thousand.
class SgdGuard {
 public:
  SgdGuard(const char* where, double gamma) : where_{where}, gamma_{gamma} {}

  /// NumericalError if the loss of this step says that the run is lost.
  void see(Index step, double loss) {
    if (step == 0) first_ = std::max(loss, 1.0);
    constexpr double lost = 1000;
    if (!(loss <= lost * first_))
      throw NumericalError(
          fmt::format("{}: the loss is {:.4g} at step {}, from {:.4g} at the start; take a smaller "
                      "gamma than {}",
                      where_, std::abs(loss), step, first_, gamma_));
  }

 private:
  const char* where_;
  double gamma_, first_ = 1;
};

/// The loop of SGD, a fresh batch every step: draw(stream, X) fills the tokens of a block of sequences,
/// observe(tau, loss, heads) is called at recorded steps, on threads as `options` says.
template <typename Draw, typename Observe>
void run_sgd(HeadActivation activation, const SgdOptions& options, const std::vector<Index>& record,
             HeadVectors heads, const Draw& draw, const Observe& observe) {
  const Index blocks = (options.batch + sequences_per_block - 1) / sequences_per_block;
  auto next = record.begin();
  SgdGuard guard("sgd", options.gamma);
  const auto take_step = [&](Index step) {
    const BatchLoss now =
        mean_over_batch<float>(activation, heads, options.tokens, options.batch, options.run,
                               [&](Index block, Matrix<float>& X, std::vector<Index>&) {
                                 // Every step and every block has a stream of its own, so that all sequences are fresh.
                                 draw(static_cast<std::uint64_t>(step * blocks + block), X);
                               });
    guard.see(step, now.loss);
    if (step == *next) {
      observe(options.gamma * static_cast<double>(step), now.loss, heads);
      ++next;
    }
    if (options.run.progress) options.run.progress(step, options.steps);
    if (step == options.steps) return;
    add_scaled(heads, -options.gamma, now.gradient);
    if (!heads.k.allFinite())
      throw NumericalError(fmt::format(
          "sgd: k is no longer finite after step {}; take a smaller gamma than {}", step, options.gamma));
  };
  numerics::on_threads(options.run.threads, [&] {
    for (Index step = 0; step <= options.steps; ++step) take_step(step);
  });
}

}  // namespace widelimit::specialization
