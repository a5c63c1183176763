#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/prior.hpp"
#include "widelimit/specialization/samples.hpp"

namespace widelimit::specialization {

/// Trained heads depend on their start: flows rest in different minima, whose losses can differ by more than
/// any other error. One start is one sample; results are medians and ranges over several.
struct TrainingSetup {
  HeadActivation activation = HeadActivation::softmax;
  Prior prior = Prior::spikes(1, 1);
  Index tokens = 0;
  Index heads = 0;
  FlowOptions flow{.stop_gradient = 1e-4};  ///< Its `run` is used for everything here.
  Index samples = 100'000;                  ///< Training set of each start, drawn anew for each.
  Index fresh_samples = 200'000;            ///< Samples on which all starts are judged, >= 2.
  SampleSymmetry symmetry = SampleSymmetry::plain;
  double eta = 1;  ///< Size of the random start; see noise_start.
  /// A flow that comes to rest at a saddle is moved a little along its descending direction and continues; the time
  /// that its noise would have needed to find that direction is not counted. False: it ends there.
  bool leave_saddles = true;
  Index starts = 5;        ///< >= 1
  std::uint64_t seed = 1;  ///< Start k uses seed + k.
};

/// A rest at which the Hessian has an eigenvalue below -saddle_rate, and below -saddle_gradients times the largest
/// entry of the remaining gradient, is a saddle. Smaller ones cannot be told from the rounding of gradients, or from
/// the bending of valleys in which the flow still descends; they would hold a flow for thousands of units of tau.
inline constexpr double saddle_rate = 5e-5, saddle_gradients = 3;

/// A saddle at which a flow rested before it continued.
struct LeftSaddle {
  double tau = 0;
  double loss = 0;  ///< On the samples of the flow.
  double rate = 0;  ///< Per unit of tau: minus the lowest eigenvalue of the Hessian.
};

/// The heads after one flow.
struct TrainedStart {
  std::uint64_t seed = 0;
  std::vector<FlowPoint> points;
  bool converged = false;  ///< The gradient fell below flow.stop_gradient; false where that is 0.
  double loss = 0;         ///< On the fresh samples, with its standard error.
  double standard_error = 0;
  /// Lowest eigenvalue of the Hessian at the end, on the samples of the flow; only of a flow that converged and has
  /// no batch noise.
  std::optional<double> curvature;
  std::vector<LeftSaddle> left_saddles;  ///< In the order of their times.

  [[nodiscard]] const FlowPoint& end() const { return points.back(); }
  /// Whether the flow rests where the loss still falls in some direction.
  [[nodiscard]] bool at_saddle() const {
    return curvature && *curvature < -std::max(saddle_rate, saddle_gradients * end().gradient);
  }
};

/// The set of samples on which all starts of a setup are judged.
[[nodiscard]] SampleSet<float> fresh_samples(const TrainingSetup& setup);

/// Runs one start after the other, each on all threads. Results depend only on the setup.
/// Errors  ArgumentError for starts < 1 and fresh_samples < 2, which have no standard error, for a given start that is
///         not one of require_heads(), and as SampleSet::draw, noise_start and gradient_flow.
[[nodiscard]] std::vector<TrainedStart> train_from_starts(const TrainingSetup& setup);
/// The same from given parameters: only the training samples differ between the starts.
[[nodiscard]] std::vector<TrainedStart> train_from_starts(const TrainingSetup& setup,
                                                          const HeadParameters& start);

/// Index of the start with the median loss, the lower of the middle two; ArgumentError if there is none.
[[nodiscard]] std::size_t median_start(const std::vector<TrainedStart>& starts);

/// Median (between the middle two for an even number) and ends; ArgumentError for an empty list.
struct Spread {
  double median = 0;
  double least = 0;
  double greatest = 0;
};
[[nodiscard]] Spread spread_of(std::span<const double> values);
[[nodiscard]] Spread loss_spread(const std::vector<TrainedStart>& starts);

}  // namespace widelimit::specialization
