#pragma once

#include <vector>

#include "block_sums.hpp"
#include "checks.hpp"
#include "head_pass.hpp"
#include "widelimit/specialization/sgd.hpp"

namespace widelimit::specialization {

/// Sequences a thread works on together; part of the fixed order of summation.
inline constexpr Index kSequencesPerBlock = 16;

/// Sums over sequences of the loss D |..|^2 and of the gradients.
struct BatchSums {
  double loss = 0;
  Matrix<double> k;
  Vector<double> b;
  Vector<double> v;
};

/// Sums over the sequences X ((n L) x D).
template <typename Scalar>
BatchSums sum_sequences(HeadActivation activation, const Matrix<Scalar>& k, const Vector<double>& b,
                        const Vector<double>& v, const Matrix<Scalar>& X, Index tokens, const Index* eps) {
  const Index heads = k.rows(), dimension = k.cols(), count = X.rows() / tokens;
  HeadPass pass(activation, heads, tokens);
  BatchSums sums{0, {}, Vector<double>::Zero(heads), Vector<double>::Zero(v.size())};
  const Matrix<Scalar> chi = k * X.transpose();
  Matrix<Scalar> gradients(heads, X.rows());
  Matrix<double> own(heads, tokens);
  for (Index mu = 0; mu < count; ++mu) {
    const Index first = mu * tokens;
    own = chi.middleCols(first, tokens).template cast<double>();
    pass.forward(own.data(), b.data(), v.data());
    Vector<double> miss = Eigen::Map<const Vector<double>>(pass.a.data(), tokens);
    miss[eps[mu]] -= 1;
    const Vector<Scalar> residual = X.middleRows(first, tokens).transpose() * miss.template cast<Scalar>();
    sums.loss += static_cast<double>(residual.squaredNorm());
    const Vector<double> g = (X.middleRows(first, tokens) * residual).template cast<double>() *
                             (2 / static_cast<double>(dimension));
    pass.backward(g.data(), v.data());
    gradients.middleCols(first, tokens) =
        Eigen::Map<const Matrix<double>>(pass.chi_gradient.data(), heads, tokens).template cast<Scalar>();
    sums.b += Eigen::Map<const Vector<double>>(pass.b_gradient.data(), heads);
    sums.v += Eigen::Map<const Vector<double>>(pass.v_gradient.data(), v.size());
  }
  sums.k = (gradients * X).template cast<double>();
  return sums;
}

/// Mean over `count` sequences. draw(block, size, X, eps) fills the tokens of one block.
template <typename Scalar, typename Draw>
BatchLoss mean_over_batch(HeadActivation activation, const HeadVectors& heads, Index tokens, Index count,
                          const RunControl& run, const Draw& draw) {
  const Matrix<Scalar> k = heads.k.cast<Scalar>();
  const auto sums_of = [&](Index block, Index size) {
    Matrix<Scalar> X(size * tokens, k.cols());
    std::vector<Index> eps(static_cast<std::size_t>(size), 0);
    draw(block, size, X, eps);
    return sum_sequences(activation, k, heads.b, heads.v, X, tokens, eps.data());
  };
  const auto parts = parts_of_blocks(count, kSequencesPerBlock, {.stop = run.stop}, sums_of);
  BatchLoss mean;
  mean.gradient = {Matrix<double>::Zero(k.rows(), k.cols()), Vector<double>::Zero(heads.b.size()),
                   Vector<double>::Zero(heads.v.size())};
  for (const BatchSums& part : parts) {
    mean.loss += part.loss;
    mean.gradient.k += part.k;
    mean.gradient.b += part.b;
    mean.gradient.v += part.v;
  }
  const double n = static_cast<double>(count);
  mean.loss /= n * static_cast<double>(k.cols());
  mean.gradient.k /= n;
  mean.gradient.b /= n;
  mean.gradient.v /= n;
  return mean;
}

/// Checks shared by all forms of SGD; returns the record with the last step in it.
std::vector<Index> check_sgd_options(const char* where, const SgdOptions& options);

/// The loop of SGD: `batch(step)` gives loss and gradient, `observe(step, loss, heads)` is called at recorded
/// steps.
template <typename Batch, typename Observe>
void run_sgd(const SgdOptions& options, HeadVectors heads, const std::vector<Index>& record,
             const Batch& batch, const Observe& observe) {
  auto next = record.begin();
  for (Index step = 0; step <= options.steps; ++step) {
    const BatchLoss now = batch(step, heads);
    if (step == *next) {
      observe(step, now.loss, heads);
      ++next;
    }
    if (options.run.progress) options.run.progress(step, options.steps);
    if (step == options.steps) break;
    heads.k -= options.gamma * now.gradient.k;
    heads.b -= options.gamma * now.gradient.b;
    heads.v -= options.gamma * now.gradient.v;
    if (!heads.k.allFinite())
      throw NumericalError(fmt::format(
          "sgd: k is no longer finite after step {}; take a smaller gamma than {}", step, options.gamma));
  }
}

}  // namespace widelimit::specialization
