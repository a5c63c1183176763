#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "widelimit/specialization/activation.hpp"
#include "widelimit/specialization/image_task.hpp"
#include "widelimit/specialization/samples.hpp"

/// Times at which heads specialise, along SGD in D dimensions and along flows from its starts.
namespace widelimit::specialization {

/// Why a run from one start ended: everything had specialised, its gradient had become small, or time was up.
enum class RunEnd { specialised, rest, tau };

/// First times at which quantities exceeded their bound, for those that did.
struct FirstTimes {
  std::vector<std::optional<double>> times;
  RunEnd end = RunEnd::tau;

  explicit FirstTimes(std::size_t quantities) : times(quantities) {}
  [[nodiscard]] bool all() const;
  /// Keeps `tau` for each of `values` that is the first above `bound`.
  void see(double tau, const Vector<double>& values, double bound);
};

/// Flows whose times are looked for: their common options.
struct TimedFlows {
  HeadActivation activation = HeadActivation::softmax;
  Prior prior = Prior::spikes(1, 1);
  Index heads = 0;
  Index tokens = 0;
  Index dimension = 0;     ///< D of the random start, at least H + F.
  Index samples = 20'000;  ///< Drawn once for each flow.
  Index steps = 0;         ///< The last step.
  double step = 0.1;       ///< Time of one step, in tau.
  double delta = 0.2;      ///< The bound that counts as specialised, see below.
  /// The flow ends at rest once every entry of its gradient is below this; 0: never.
  double stop_gradient = 0;
  SampleSymmetry symmetry = SampleSymmetry::closed;
  RunControl run = {};  ///< Progress counts steps.
};

/// The time at which max_split() exceeds delta, one quantity, from a random start of size eta.
/// Errors  as random_gram_start(), SampleSet::draw and gradient_flow().
[[nodiscard]] FirstTimes head_split_time(const TimedFlows& flows, double eta, std::uint64_t seed);

/// The same for SGD in Gram form itself, whose step is flows.step = gamma, with `batch` fresh sequences in each step
/// (0: D). `samples`, `symmetry` and `stop_gradient` have no effect here.
/// Errors  as random_gram_start() and gram_sgd().
/// Cost    that of gram_sgd() up to the time, and at most 50 steps more.
[[nodiscard]] FirstTimes head_split_time_of_sgd(const TimedFlows& flows, Index batch, double eta,
                                                std::uint64_t seed);

/// The times at which each of the feature_splits() of the heads' overlaps with the class means exceeds delta along
/// image_sgd() from a random start of size eta: one for each class. options.seed is that of the start and of all
/// batches, options.record is not looked at.
/// Errors  as image_sgd(), and ArgumentError for heads < 1.
/// Cost    that of image_sgd() up to the last of the times, and at most 50 steps more.
[[nodiscard]] FirstTimes class_split_times_of_sgd(HeadActivation activation, Index heads,
                                                  const ImageTask& task, double eta, double delta,
                                                  const SgdOptions& options);

/// The times at which each of the feature_splits() exceeds delta.
[[nodiscard]] FirstTimes feature_split_times(const TimedFlows& flows, double eta, std::uint64_t seed);

}  // namespace widelimit::specialization
