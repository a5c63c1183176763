#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/program/interrupt.hpp"
#include "cli/tasks/gp_task.hpp"
#include "widelimit/gp/automatic.hpp"
#include "widelimit/gp/learned_inputs.hpp"

namespace CLI {
class App;
}

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

/// The word for a network that is chosen for a task.
inline constexpr const char* automatic_argument = "auto";

/// Whether a chosen network is among them and the precision is not given: then it is double. Smooth kernels of tables
/// are chosen in double, and some of them want regularisers that are lost in the rounding errors of float.
[[nodiscard]] bool takes_double(const CLI::App& command, const std::vector<std::string>& networks);

/// Leaves channels out that all training inputs have in common, of which predictions then do not depend: vectors [n,
/// channels] only, of which some channel varies. The task gets a note, and says in its preparation which they are; its
/// inputs are those of before.
template <typename Scalar>
[[nodiscard]] gp::FeatureMap without_constants(GpTask<Scalar>& task);

/// What is said of inputs that have other numbers in channels that a preparation calls constant; empty: nothing.
template <typename Scalar>
[[nodiscard]] std::string new_values_text(const nlohmann::json& preparation, const Inputs<Scalar>& x);

/// The network that choose_network() finds for a task whose inputs go through the map, with what it says about it among
/// the task's notes; its cost is said before. ArgumentError, naming the option, for inputs that are no vectors, and for
/// a depth.
template <typename Scalar>
[[nodiscard]] gp::AutomaticNetwork automatic_network(GpTask<Scalar>& task, const gp::FeatureMap& map,
                                                     const gp::AutomaticOptions& options,
                                                     std::optional<Index> depth, int threads,
                                                     const Interrupt& interrupt);

/// The task with its inputs mapped.
template <typename Scalar>
[[nodiscard]] GpTask<Scalar> mapped_task(GpTask<Scalar> task, const gp::FeatureMap& map);

/// What was chosen and all scores.
[[nodiscard]] nlohmann::ordered_json automatic_json(const gp::AutomaticNetwork& found);

}  // namespace widelimit::cli
