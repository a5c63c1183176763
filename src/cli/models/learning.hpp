#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/program/interrupt.hpp"
#include "cli/tasks/gp_task.hpp"
#include "widelimit/gp/learned_inputs.hpp"

namespace widelimit::cli {

/// A channel and how much it matters: its scale, or the root of the diagonal of the learned metric.
struct ChannelScale {
  std::string name;
  double scale;
};

/// The largest first. `names`: of the channels; empty: their numbers.
[[nodiscard]] std::vector<ChannelScale> channel_scales(const gp::FeatureMap& map,
                                                       const std::vector<std::string>& names);

/// Lines for people: what was learned, how it did, and whether it was kept.
[[nodiscard]] std::string learned_text(const gp::LearnedInputs& learned,
                                       const std::vector<std::string>& names);

[[nodiscard]] nlohmann::ordered_json learned_json(const gp::LearnedInputs& learned,
                                                  const std::vector<std::string>& names);

/// A task whose inputs went through the map that was learned from its training data.
template <typename Scalar>
struct LearnedTask {
  gp::LearnedInputs inputs;
  GpTask<Scalar> task;
};

/// Learns what was asked for, with the NNGP unless predictions are made with the NTK alone, and adds the regulariser
/// that was learned to the candidates of `inference`; nothing if nothing was asked for.
template <typename Scalar>
[[nodiscard]] std::optional<LearnedTask<Scalar>> learned_task(const Network& network,
                                                              const GpTask<Scalar>& task,
                                                              gp::LearningOptions learning,
                                                              gp::InferenceOptions& inference,
                                                              const Interrupt& interrupt);

}  // namespace widelimit::cli
