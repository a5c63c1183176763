#include "cli/models/learning.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "cli/output/output_options.hpp"
#include "cli/output/result_text.hpp"
#include "cli/tasks/table_notes.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/distinct_inputs.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {
namespace {

/// What was learned, kept or not.
const gp::FeatureMap& found_map(const gp::LearnedInputs& learned) {
  return learned.kept ? learned.map : learned.rejected;
}

/// The inputs of a set, mapped.
template <typename Scalar>
void map_inputs(GpSet<Scalar>& set, const gp::FeatureMap& map) {
  if (map.is_identity() || set.size() == 0) return;
  const Inputs<Scalar> mapped = map.apply(set.inputs());
  if (mapped.channels() != set.inputs().channels())
    set.x = xt::xarray<Scalar>::from_shape(
        {static_cast<std::size_t>(mapped.size()), static_cast<std::size_t>(mapped.channels())});
  for (Index i = 0; i < mapped.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::size_t size = mapped[i].size();
    Scalar* to = set.sequences.empty() ? set.x.data() + at * size : set.sequences[at].data();
    std::copy(mapped[i].begin(), mapped[i].end(), to);
  }
}

}  // namespace

std::vector<ChannelScale> channel_scales(const gp::FeatureMap& map, const std::vector<std::string>& names) {
  std::vector<ChannelScale> scales;
  const Matrix<double>& factors = map.factors();
  for (Index c = 0; c < factors.cols(); ++c) {
    const double scale = map.is_diagonal() ? factors(0, c) : factors.row(c).norm();
    const auto at = static_cast<std::size_t>(c);
    scales.push_back({at < names.size() ? names[at] : fmt::format("channel {}", c), scale});
  }
  std::ranges::stable_sort(scales, [](const auto& a, const auto& b) { return a.scale > b.scale; });
  return scales;
}

std::string learned_text(const gp::LearnedInputs& learned, const std::vector<std::string>& names) {
  constexpr std::size_t most = 20;
  std::string text = "channels by their scale:";
  const std::vector<ChannelScale> scales = channel_scales(found_map(learned), names);
  for (std::size_t i = 0; i < std::min(most, scales.size()); ++i)
    text += fmt::format("{} {} {:.3g}", i == 0 ? "" : ",", visible_text(scales[i].name), scales[i].scale);
  if (scales.size() > most) text += fmt::format(" and {} others", scales.size() - most);
  text += fmt::format(
      "\nthirds of the training data predicted from the other two: {:.4f} with them, {:.4f} without "
      "(difference {:+.4f}, "
      "standard error {:.4f}): {}\n",
      learned.after, learned.before, learned.after - learned.before, learned.standard_error,
      learned.kept ? "kept" : "not kept, inputs and network stay as they are");
  return text;
}

nlohmann::ordered_json learned_json(const gp::LearnedInputs& learned, const std::vector<std::string>& names) {
  nlohmann::ordered_json scales = nlohmann::ordered_json::array();
  for (const ChannelScale& one : channel_scales(found_map(learned), names))
    scales.push_back({{"name", one.name}, {"scale", one.scale}});
  return {{"kept", learned.kept},
          {"held_out_score", learned.after},
          {"held_out_score_without", learned.before},
          {"standard_error", learned.standard_error},
          {"course", learned.course},
          {"scales", std::move(scales)}};
}

template <typename Scalar>
GpTask<Scalar> mapped_task(GpTask<Scalar> task, const gp::FeatureMap& map) {
  map_inputs(task.train, map);
  if (task.validation) map_inputs(*task.validation, map);
  map_inputs(task.test, map);
  return task;
}

template GpTask<float> mapped_task(GpTask<float>, const gp::FeatureMap&);
template GpTask<double> mapped_task(GpTask<double>, const gp::FeatureMap&);

namespace {

/// Channels in which all of these vectors are equal, unless all are.
template <typename Scalar>
std::vector<Index> constant_channels(const Inputs<Scalar>& x) {
  std::vector<Index> constant;
  for (Index c = 0; c < x.channels(); ++c) {
    const auto at = static_cast<std::size_t>(c);
    bool varies = false;
    for (Index i = 1; i < x.size() && !varies; ++i) varies = x[i][at] != x[0][at];
    if (!varies) constant.push_back(c);
  }
  return static_cast<Index>(constant.size()) == x.channels() ? std::vector<Index>() : constant;
}

/// What is said of channels is said by their places, or names, in the data.
void name_others(GpTaskFacts& task, const std::vector<Index>& left_out, Index channels) {
  std::vector<std::string> names;
  std::vector<Index> groups;
  for (Index c = 0; c < channels; ++c) {
    if (std::ranges::find(left_out, c) != left_out.end()) continue;
    const auto at = static_cast<std::size_t>(c);
    names.push_back(task.channel_names.empty() ? fmt::format("channel {}", c) : task.channel_names[at]);
    if (!task.channel_groups.empty()) groups.push_back(task.channel_groups[at]);
  }
  task.channel_names = std::move(names);
  task.channel_groups = std::move(groups);
}

}  // namespace

template <typename Scalar>
gp::FeatureMap without_constants(GpTask<Scalar>& task) {
  const Inputs<Scalar> x = task.train.inputs();
  if (!gp::takes_automatic_network(x) || x.size() < 2) return {};
  const std::vector<Index> constant = constant_channels(x);
  if (constant.empty()) return {};
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  std::vector<std::string> names;
  for (const Index c : constant) {
    values[std::to_string(c)] = static_cast<double>(x[0][static_cast<std::size_t>(c)]);
    names.push_back(std::to_string(c));
  }
  task.preparation["constant_channels"] = std::move(values);
  name_others(task, constant, x.channels());
  task.notes.push_back(
      fmt::format("the same in all training inputs, and left out: channels {} (from 0)", short_list(names)));
  return gp::FeatureMap::without(constant, x.channels());
}

template gp::FeatureMap without_constants(GpTask<float>&);
template gp::FeatureMap without_constants(GpTask<double>&);

template <typename Scalar>
std::string new_values_text(const nlohmann::json& preparation, const Inputs<Scalar>& x) {
  if (!preparation.contains("constant_channels") || !gp::takes_automatic_network(x)) return "";
  std::vector<std::string> names;
  for (const auto& [place, value] : preparation.at("constant_channels").items()) {
    const auto at = static_cast<std::size_t>(std::stoul(place));
    const auto known = value.template get<double>();
    bool is_new = false;
    for (Index i = 0; i < x.size() && at < x[i].size() && !is_new; ++i)
      is_new = std::abs(static_cast<double>(x[i][at]) - known) > 1e-6 * std::abs(known);
    if (is_new) names.push_back(place);
  }
  if (names.empty()) return "";
  return fmt::format(
      "channels {} (from 0) are constant in the training data: other numbers there change no prediction",
      short_list(names));
}

template std::string new_values_text(const nlohmann::json&, const Inputs<double>&);

bool takes_double(const CLI::App& command, const std::vector<std::string>& networks) {
  return command.count("--precision") == 0 &&
         std::ranges::find(networks, automatic_argument) != networks.end();
}

template <typename Scalar>
gp::AutomaticNetwork automatic_network(GpTask<Scalar>& task, const gp::FeatureMap& map,
                                       const gp::AutomaticOptions& options, std::optional<Index> depth,
                                       int threads, const Interrupt& interrupt) {
  if (depth) throw ArgumentError("--depth is for named networks; --network auto has none");
  const Inputs<Scalar> x = task.train.inputs();
  if (!gp::takes_automatic_network(x))
    throw ArgumentError(
        "--network: auto is for tables and other vectors; images, sequences and graphs need a network of "
        "their own "
        "(widelimit networks lists them)");
  say("{}\n", gp::automatic_cost(x.size()));
  flush_standard_output();
  const Inputs<Scalar> seen = map.apply(x);
  const gp::Problem problem{.kind = task.kind,
                            .targets = *task.train.targets,
                            .validation = task.validation ? task.validation->targets : std::nullopt,
                            .noise_variances = task.noise_variances,
                            .weights = task.weights,
                            .inputs = gp::distinct_inputs(seen, task.groups)};
  gp::AutomaticNetwork found =
      gp::choose_network(seen, problem, options, {.threads = threads, .stop = interrupt.token()});
  task.notes.push_back(gp::automatic_text(found, task.kind));
  return found;
}

template gp::AutomaticNetwork automatic_network(GpTask<float>&, const gp::FeatureMap&,
                                                const gp::AutomaticOptions&, std::optional<Index>, int,
                                                const Interrupt&);
template gp::AutomaticNetwork automatic_network(GpTask<double>&, const gp::FeatureMap&,
                                                const gp::AutomaticOptions&, std::optional<Index>, int,
                                                const Interrupt&);

namespace {

nlohmann::ordered_json treatment_json(const gp::AutomaticTrial& trial) {
  return {{"network", trial.network},
          {"inputs", trial.inputs},
          {"targets", trial.targets == gp::TargetTransform::log ? "logarithms" : "as they are"}};
}

}  // namespace

nlohmann::ordered_json automatic_json(const gp::AutomaticNetwork& found) {
  nlohmann::ordered_json trials = nlohmann::ordered_json::array();
  for (const gp::AutomaticTrial& trial : found.trials) {
    nlohmann::ordered_json one = treatment_json(trial);
    if (trial.unsolved.empty())
      one["score"] = trial.score;
    else
      one["unsolved"] = trial.unsolved;
    trials.push_back(std::move(one));
  }
  nlohmann::ordered_json json = treatment_json(found.trials[found.chosen]);
  json["rows"] = found.rows;
  json["trials"] = std::move(trials);
  return json;
}

template <typename Scalar>
std::optional<LearnedTask<Scalar>> learned_task(const Network& network, const GpTask<Scalar>& task,
                                                gp::LearningOptions learning, gp::InferenceOptions& inference,
                                                const Interrupt& interrupt) {
  if (learning.how == gp::InputLearning::none) return std::nullopt;
  // Numbers of a table that come from one column share a scale.
  learning.groups = task.channel_groups;
  learning.row_groups = task.groups;
  learning.kernel = inference.kernels == Kernels::ntk ? Kernels::ntk : Kernels::nngp;
  learning.kind = task.kind;
  learning.noise = inference.fit.noise;
  const Matrix<double> y = gp::standardised_targets(*task.train.targets, task.kind, inference.fit);
  LearnedTask<Scalar> learned{gp::learn_inputs(network, task.train.inputs(), y, learning,
                                               {.threads = inference.fit.threads, .stop = interrupt.token()}),
                              task};
  learned.task = mapped_task(std::move(learned.task), learned.inputs.map);
  if (learned.inputs.regulariser && !inference.fit.noise)
    inference.fit.candidates.push_back(*learned.inputs.regulariser);
  return learned;
}

template std::optional<LearnedTask<float>> learned_task(const Network&, const GpTask<float>&,
                                                        gp::LearningOptions, gp::InferenceOptions&,
                                                        const Interrupt&);
template std::optional<LearnedTask<double>> learned_task(const Network&, const GpTask<double>&,
                                                         gp::LearningOptions, gp::InferenceOptions&,
                                                         const Interrupt&);

}  // namespace widelimit::cli
