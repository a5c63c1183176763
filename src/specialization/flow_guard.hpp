#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "specialization/moving_parts.hpp"
#include "widelimit/error.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/lowest_curvature.hpp"

namespace widelimit::specialization {

/// Watches a flow for steps that are too long. Along a flow on fixed samples the loss falls, so that an integrator
/// whose loss rises has left it, whether or not its numbers are finite.
template <typename Scalar>
class FlowGuard {
 public:
  FlowGuard(HeadActivation activation, const SampleSet<Scalar>& samples, const FlowOptions& options)
      : activation_{activation}, samples_{samples}, options_{options} {}

  /// NumericalError if the loss of this step says that the flow is lost.
  void see(Index step, double loss, const HeadParameters& state) {
    if (!std::isfinite(loss)) fail(step, fmt::format("the loss is {}", std::abs(loss)));
    if (!begun_ || loss <= lowest_) {
      if (!begun_) first_ = loss;
      begun_ = true;
      lowest_ = loss;
      last_good_ = state;
      return;
    }
    // Noise of batches lets the loss rise; without it a step near its limit may overshoot by a little.
    constexpr double overshoot = 0.05;
    const double scale = std::max(first_, 1.0);
    const double allowed = options_.batch_noise > 0 ? 2 * scale : lowest_ + overshoot * scale;
    if (loss > allowed)
      fail(step,
           fmt::format("the loss, which falls along a flow, has risen from {:.4g} to {:.4g}", lowest_, loss));
  }

  /// For a state that is no longer finite.
  [[noreturn]] void fail(Index step, const std::string& what) const {
    throw NumericalError(fmt::format("gradient_flow: {} at step {}: {}", what, step, advice()));
  }

 private:
  [[nodiscard]] std::string advice() const {
    const double taken = options_.step;
    if (options_.stepper == FlowStepper::dormand_prince)
      return fmt::format("take a smaller tolerance than {} or a smaller step than {}", options_.tolerance,
                         taken);
    const double stable = begun_ ? largest_stable_step() : taken / 2;
    return fmt::format("take a smaller step than {:g}; the largest that is stable there is about {:.2g}",
                       taken, std::min(stable, taken / 2));
  }

  /// 2 over the largest curvature (2.78 for Runge-Kutta) on some way down from the last state that was good.
  [[nodiscard]] double largest_stable_step() const {
    constexpr int looks = 10, steps_a_look = 20;
    RunControl silent;
    silent.stop = options_.run.stop;
    HeadParameters state = last_good_;
    double largest = 0;
    for (int look = 0; look < looks; ++look) {
      largest = std::max(largest, highest_curvature(activation_, state, samples_, options_.variant, silent));
      const double step = std::min(options_.step / 2, largest > 0 ? 0.5 / largest : 1.0);
      for (int k = 0; k < steps_a_look; ++k) {
        SampledLoss now = sampled_loss(activation_, state, samples_, LossDetail::gradients, silent);
        keep_what_moves(activation_, options_.variant, now.gradient);
        add_scaled(state, -step, now.gradient);
      }
    }
    const double limit = options_.stepper == FlowStepper::runge_kutta4 ? 2.78 : 2;
    return largest > 0 ? limit / largest : options_.step / 2;
  }

  HeadActivation activation_;
  const SampleSet<Scalar>& samples_;
  const FlowOptions& options_;
  bool begun_ = false;
  double first_ = 0, lowest_ = 0;
  HeadParameters last_good_;
};

}  // namespace widelimit::specialization
