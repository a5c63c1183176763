#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "cli/output/result_text.hpp"
#include "cli/tasks/gp_task.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/distinct_inputs.hpp"
#include "widelimit/gp/input_range.hpp"

namespace widelimit::cli {
namespace {

std::string description_of(const PreprocessingChoice& choice, gp::PreprocessingKind kind) {
  const std::string name = gp::to_string(kind);
  return kind == gp::PreprocessingKind::zca ? fmt::format("{} {}", name, choice.zca_regulariser) : name;
}

/// Leaves indicators as they are. Each with a variance of 1, those of a column of 20 categories would weigh as much as
/// 20 columns of numbers; as 0 and 1 they weigh as one, which was best where it was measured (docs/data.md).
gp::Preprocessing without_indicators(const gp::Preprocessing& fitted, const std::vector<bool>& indicators) {
  if (fitted.kind() != gp::PreprocessingKind::channel || indicators.empty()) return fitted;
  Vector<double> offsets = fitted.offsets();
  Matrix<double> factors = fitted.factors();
  for (std::size_t c = 0; c < indicators.size(); ++c)
    if (indicators[c]) {
      offsets(static_cast<Index>(c)) = 0;
      factors(0, static_cast<Index>(c)) = 1;
    }
  return gp::Preprocessing::from_json(fitted.to_json(), std::move(offsets), std::move(factors),
                                      "preprocessing");
}

template <typename Scalar>
void preprocess(GpTask<Scalar>& task, const PreprocessingChoice& choice, bool flip) {
  using gp::PreprocessingKind;
  const PreprocessingKind kind = choice.kind.value_or(task.default_preprocessing);
  if (task.default_preprocessing != PreprocessingKind::none || kind != PreprocessingKind::none)
    task.description += ", preprocessing " + description_of(choice, kind);
  if (!choice.kind && !task.default_reason.empty()) task.description += " (" + task.default_reason + ")";
  if (kind == PreprocessingKind::none) return;
  if (!task.train.sequences.empty())
    throw ArgumentError("--preprocess: sequences of different length cannot be preprocessed");
  if (task.train.mask || task.test.mask || (task.validation && task.validation->mask))
    throw ArgumentError(
        "--preprocess: expected none for inputs with masks, whose other positions hold anything");
  task.preprocessing = without_indicators(
      gp::Preprocessing::fit(kind, task.train.x, choice.zca_regulariser, flip), task.indicators);
  task.train.x = task.preprocessing.apply(task.train.x);
  if (task.validation) task.validation->x = task.preprocessing.apply(task.validation->x);
  if (task.test.size() > 0) task.test.x = task.preprocessing.apply(task.test.x);
}

template <typename Scalar>
void warn_of_ranges(const GpTask<Scalar>& task) {
  const Inputs<Scalar> train = task.train.inputs();
  const auto check = [&](const char* name, const GpSet<Scalar>& set) {
    if (set.size() == 0) return;
    const std::string warning = gp::range_warning(train, set.inputs(), task.preprocessing);
    if (!warning.empty()) warn("{} data: {}", name, warning);
  };
  if (task.validation) check("validation", *task.validation);
  check("test", task.test);
}

GpSet<float> rounded(GpSet<double> set, const char* name, bool is_training) {
  if (set.size() > 0)
    if (const auto lost = gp::lost_in_float(set.inputs(), is_training))
      throw DataError(fmt::format(
          "{}: {} (--preprocess channel, --precision double)",
          lost->input ? set.names[static_cast<std::size_t>(*lost->input)] : fmt::format("{} data", name),
          lost->text));
  GpSet<float> result;
  result.x = xt::cast<float>(set.x);
  for (const auto& sequence : set.sequences) result.sequences.emplace_back(xt::cast<float>(sequence));
  result.targets = std::move(set.targets);
  result.names = std::move(set.names);
  result.graphs = std::move(set.graphs);
  result.mask = std::move(set.mask);
  return result;
}

}  // namespace

template <typename Scalar, typename Read>
GpTask<Scalar> in_precision_of(GpTask<Read> task) {
  if constexpr (std::is_same_v<Scalar, Read>) {
    return task;
  } else {
    GpTask<Scalar> result;
    static_cast<GpTaskFacts&>(result) = std::move(static_cast<GpTaskFacts&>(task));
    result.train = rounded(std::move(task.train), "training", true);
    if (task.validation) result.validation = rounded(std::move(*task.validation), "validation", false);
    result.test = rounded(std::move(task.test), "test", false);
    return result;
  }
}

template GpTask<float> in_precision_of(GpTask<double>);
template GpTask<float> in_precision_of(GpTask<float>);
template GpTask<double> in_precision_of(GpTask<double>);

template <typename Scalar>
void prepare_inputs(GpTask<Scalar>& task, const PreprocessingChoice& choice, bool flip) {
  preprocess(task, choice, flip);
  warn_of_ranges(task);
  if (flip) task.description += ", kernels averaged over flips";
}

template <typename Scalar>
void note_repeats(GpTask<Scalar>& task) {
  const gp::DistinctInputs inputs = gp::distinct_inputs(task.train.inputs(), task.groups);
  task.repeated_rows = inputs.repeats();
  if (std::string text = inputs.text(); !text.empty()) task.notes.push_back(std::move(text));
  if (inputs.groups.empty()) return;
  task.notes.push_back(
      fmt::format("{} groups of rows are left out together", std::ranges::max(inputs.groups) + 1));
}

template void note_repeats(GpTask<float>&);
template void note_repeats(GpTask<double>&);
template void prepare_inputs(GpTask<float>&, const PreprocessingChoice&, bool);
template void prepare_inputs(GpTask<double>&, const PreprocessingChoice&, bool);

}  // namespace widelimit::cli
