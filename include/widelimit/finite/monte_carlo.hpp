#pragma once

#include <cstdint>
#include <functional>

#include "widelimit/finite/empirical_kernel.hpp"

namespace widelimit::finite {

/// Running mean and scatter of matrices of one shape (Welford's recurrence).
struct KernelMoments {
  Index draws = 0;              ///< Draws taken in so far.
  Matrix<double> mean = {};     ///< Empty before the first draw.
  Matrix<double> squares = {};  ///< Sum of squared deviations from the mean.

  /// Takes in one more draw; the first one determines the shape.
  void add(const Matrix<double>& draw);
  /// The standard error of the mean, entry by entry; NaN for fewer than two draws.
  [[nodiscard]] Matrix<double> standard_error() const;
};

/// Means of a kernel over sampled networks of one width. NTK empty if it was not asked for.
struct MonteCarloKernel {
  KernelMoments nngp;
  KernelMoments ntk;
};

/// Which networks are drawn, and which results are wanted.
struct MonteCarloOptions {
  Widths widths = {};      ///< Of the hidden layers and the outputs.
  Heads heads = {};        ///< Of attention.
  std::uint64_t seed = 0;  ///< Of all draws.
  Index first_draw = 0;    ///< Draw k is the network with number k of this seed, whatever else is drawn.
  Index draws = 64;
  enum class Kernels { nngp, both } kernels = Kernels::both;
  NtkOptions ntk = {.outputs = 1};  ///< All options except its stop.
  int threads = 0;                  ///< Draws at a time; 0: one for each core. Results do not depend on it.
  /// Called with every draw's kernels, in the order of draws, from one thread at a time.
  std::function<void(Index draw, const Matrix<double>& nngp, const Matrix<double>& ntk)> on_draw = {};
  std::stop_token stop = {};  ///< Cancelled is thrown once a stop was asked for.
};

/// Mean over independent networks of their empirical kernels between x1 and x2, [n1, n2], with standard errors.
///
/// Resuming: set `so_far` to the result of draws 0 .. k - 1 and first_draw = k; the result is the same bit for
/// bit as that of one run. Errors as FiniteNetwork; ArgumentError for fewer than one draw or a `so_far` of
/// another shape. Cost: a network for each draw; memory: a network and its passes for each thread.
template <typename Scalar>
[[nodiscard]] MonteCarloKernel monte_carlo_kernel(const Network& network, const Inputs<Scalar>& x1,
                                                  const Inputs<Scalar>& x2, const MonteCarloOptions& options,
                                                  MonteCarloKernel so_far = {});

/// The same for all pairs of one batch.
template <typename Scalar>
[[nodiscard]] MonteCarloKernel monte_carlo_kernel(const Network& network, const Inputs<Scalar>& x,
                                                  const MonteCarloOptions& options,
                                                  MonteCarloKernel so_far = {});

}  // namespace widelimit::finite
