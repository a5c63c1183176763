#include "cli/models/learning.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/output/output_options.hpp"
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
  const Matrix<double>& y = *task.train.targets;
  const gp::TargetScale scale = gp::fit_scale(y, task.kind, inference.fit);
  LearnedTask<Scalar> learned{gp::learn_inputs(network, task.train.inputs(), scale.standardised(y), learning,
                                               {.threads = inference.fit.threads, .stop = interrupt.token()}),
                              task};
  map_inputs(learned.task.train, learned.inputs.map);
  if (learned.task.validation) map_inputs(*learned.task.validation, learned.inputs.map);
  map_inputs(learned.task.test, learned.inputs.map);
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
