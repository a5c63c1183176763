#pragma once

#include <cstdint>
#include <vector>

#include "widelimit/specialization/loss.hpp"
#include "widelimit/specialization/order_parameters.hpp"
#include "widelimit/specialization/prior.hpp"

namespace widelimit::specialization {

/// Trained parameters at finite D.
struct HeadVectors {
  Matrix<double> k;  ///< H x D.
  Vector<double> b;  ///< H.
  Vector<double> v;  ///< scale_count.
};

/// Sequences with their label tokens.
struct TokenBatch {
  Index tokens = 0;        ///< L.
  Matrix<double> X;        ///< (N L) x D; sequence mu owns rows mu L to mu L + L - 1.
  std::vector<Index> eps;  ///< N.
};

/// (1/N) sum (1/D) |y - y_hat|^2 with the true inner products of the tokens, and its gradients.
struct BatchLoss {
  double loss = 0;
  HeadVectors gradient;
};

/// Errors   ArgumentError for shapes that do not match, N < 1, eps outside [0, L), non-finite values.
[[nodiscard]] BatchLoss batch_loss(HeadActivation activation, const HeadVectors& heads,
                                   const TokenBatch& batch);

/// Sizes and rates of an online run; a fresh batch every step.
struct SgdOptions {
  Index tokens = 0;     ///< L.
  Index batch = 0;      ///< N_b >= 1; the paper takes D.
  double gamma = 0.02;  ///< Learning rate of k, b and v; time is tau = gamma t.
  Index steps = 0;
  std::vector<Index> record;  ///< As FlowOptions::record.
  std::uint64_t seed = 0;
  RunControl run = {};  ///< Progress counts steps.
};

/// A recorded step of sgd() or gram_sgd(), before it is taken.
struct SgdPoint {
  double tau = 0;
  double loss = 0;  ///< Of the batch of this step, before it is taken.
  OrderParameters overlaps;
  Vector<double> b;
  Vector<double> v;
};

/// The start of a run in D dimensions.
struct SgdStart {
  HeadVectors heads;
  Matrix<double> k_star;  ///< F x D.
};

/// k* ~ N(0, I/D), k ~ N(0, eta^2 I/D), b = 0, v = 1. ArgumentError for sizes < 1 and eta < 0.
[[nodiscard]] SgdStart random_start(HeadActivation activation, Index heads, Index features, Index dimension,
                                    double eta, std::uint64_t seed);

/// Changes the part of k in the span of the spikes such that k k*^T = m.
[[nodiscard]] SgdStart plant(SgdStart start, const Matrix<double>& m);

/// Online SGD with vectors: k <- k - gamma grad, likewise b and v.
///
/// Depends on the seed, not on the number of threads. Tokens are drawn and multiplied in single precision.
/// Errors   ArgumentError for gamma <= 0, N_b < 1, L < 1, shapes; NumericalError naming the step at which
///          the state stopped being finite.
/// Cost     N_b L D (2H + 3) multiply-adds and N_b L D normals a step.
[[nodiscard]] std::vector<SgdPoint> sgd(HeadActivation activation, const Prior& prior, const SgdStart& start,
                                        const SgdOptions& options);

/// The flow that belongs to a point of SGD at finite D: spikes whitened, so that p = I.
struct MatchedFlow {
  HeadParameters start;       ///< Flow start: m p^(-1/2), symmetric root of S, b, v.
  Matrix<double> spike_root;  ///< p^(1/2): SampleOptions::theta_map, and m = m_flow spike_root.
};
[[nodiscard]] MatchedFlow matched_flow(const SgdPoint& point);

/// State of SGD as the Gram matrix of heads and spikes: the same process in distribution without vectors of length D.
struct GramState {
  Matrix<double> gram;  ///< (H + F) x (H + F): q, m; m^T, p.
  Vector<double> b;
  Vector<double> v;
  Index dimension = 0;  ///< D.
};

/// Gaussian variables of one step: z ((N L) x (H + F)) gives the projections of the tokens, T ((N L) x L, lower
/// triangular for every sequence) the Gram matrices T T^T of their parts orthogonal to heads and spikes.
struct GramBatch {
  Index tokens = 0;
  Matrix<double> z;
  Matrix<double> T;
  Matrix<double> theta;    ///< N x F.
  std::vector<Index> eps;  ///< N.
};

/// The Gram matrix of random_start in distribution: Wishart. ArgumentError as random_start and for D < H + F.
[[nodiscard]] GramState random_gram_start(HeadActivation activation, Index heads, Index features,
                                          Index dimension, double eta, std::uint64_t seed);
/// Changes the part of the heads in the span of the spikes such that their overlaps become m (H x F): q and m of the
/// Gram matrix change. ArgumentError for another shape.
[[nodiscard]] GramState plant(GramState start, const Matrix<double>& m);

/// One step on given variables; returns the loss of the batch. Products of different sequences, of zero mean
/// and relative size D^(-1/2), are left out of the change of q. NumericalError where the Gram matrix is not
/// positive definite.
[[nodiscard]] double gram_step(HeadActivation activation, GramState& state, const GramBatch& batch,
                               double gamma);

/// Online SGD in Gram form. Errors as sgd, and ArgumentError for D < H + F + L. Cost N_b L (H + F + L)^2 a
/// step: hundreds of times less than sgd at D = 10^4.
[[nodiscard]] std::vector<SgdPoint> gram_sgd(HeadActivation activation, const Prior& prior, GramState start,
                                             const SgdOptions& options);

}  // namespace widelimit::specialization
