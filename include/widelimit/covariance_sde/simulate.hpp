#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "widelimit/covariance_sde/ensemble.hpp"
#include "widelimit/covariance_sde/model.hpp"

namespace widelimit::covariance_sde {

/// How a path steps; see time_step.hpp for their orders.
enum class StepScheme {
  geometric,  ///< Stays in the cone; at equal step a tenth of the error of Euler-Maruyama or less. Full attention.
  euler_maruyama,  ///< The paper's scheme, structured noise. Exits from the cone are clipped and counted.
  /// The same with the symmetric root of the D x D diffusion: the cross-check, O(m^6) a step.
  euler_maruyama_dense,
};

/// Suffices for quantiles.
inline constexpr double default_step_control = 0.02;

/// Options of simulate(). Memory: paths * times * m (m + 1) / 2 doubles.
struct SimulationOptions {
  /// Times at which covariances are kept, increasing and positive; the last is the horizon T = depth / width.
  std::vector<double> times;
  /// Largest step; each interval between times is cut into ceil(length / max_step) equal steps.
  double max_step = 0.01;
  /// Steps are cut to at most step_control / rate, where rate is the relative speed of the attention terms; 0: fixed
  /// steps. None: default_step_control if the model attends, else 0. With fixed steps, paths that explode
  /// leap over the bounds from far inside, and fewer of them explode. Use 0.005 for probabilities of explosion.
  std::optional<double> step_control = {};
  StepScheme scheme = StepScheme::geometric;
  StopBounds bounds;
  Index paths = 1024;
  std::uint64_t seed = 0;
  int threads = 0;            ///< 0: as many as there are processors.
  std::stop_token stop = {};  ///< Cancelled is thrown once a stop is requested.
  /// Called now and then with the paths done and all paths, from one thread at a time.
  std::function<void(std::ptrdiff_t, std::ptrdiff_t)> progress = {};
};

/// Sample paths of dV = b dt + Sigma^{1/2} dB from V_0 = v0.
///
/// Randomness  Path p draws from RandomStream(seed, p): equal seeds give equal bits for any number of threads
///             and the first paths of a larger ensemble. A step draws G_1 + G_1^T (pairs a <= b row by row),
///             then, with attention noise, G_2 row by row; the dense scheme draws D normals.
/// Errors      ArgumentError unless v0 is a covariance of positive variances within the bounds, times increase, steps,
///             paths and bounds are positive and the scheme fits the model (see geometric_step).
/// Cost        O(paths * steps * m^3): see docs/experiments/shaped-transformer.md for measured times.
[[nodiscard]] CovarianceEnsemble simulate(const SdeModel& model, const Matrix<double>& v0,
                                          const SimulationOptions& options);

}  // namespace widelimit::covariance_sde
