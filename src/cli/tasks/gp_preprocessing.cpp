#include <fmt/format.h>

#include <cstdio>

#include "cli/output/result_text.hpp"
#include "cli/tasks/gp_task.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/input_range.hpp"

namespace widelimit::cli {
namespace {

std::string description_of(const PreprocessingChoice& choice, gp::PreprocessingKind kind) {
  const std::string name = gp::to_string(kind);
  return kind == gp::PreprocessingKind::zca ? fmt::format("{} {}", name, choice.zca_regulariser) : name;
}

template <typename Scalar>
void preprocess(GpTask<Scalar>& task, const PreprocessingChoice& choice, bool flip) {
  using gp::PreprocessingKind;
  const PreprocessingKind kind = choice.kind.value_or(task.default_preprocessing);
  if (task.default_preprocessing != PreprocessingKind::none || kind != PreprocessingKind::none)
    task.description += ", preprocessing " + description_of(choice, kind);
  if (kind == PreprocessingKind::none) return;
  if (!task.train.sequences.empty())
    throw ArgumentError("--preprocess: sequences of different length cannot be preprocessed");
  if (task.train.mask || task.test.mask || (task.validation && task.validation->mask))
    throw ArgumentError(
        "--preprocess: expected none for inputs with masks, whose other positions hold anything");
  task.preprocessing = gp::Preprocessing::fit(kind, task.train.x, choice.zca_regulariser, flip);
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

}  // namespace

template <typename Scalar>
void prepare_inputs(GpTask<Scalar>& task, const PreprocessingChoice& choice, bool flip) {
  preprocess(task, choice, flip);
  warn_of_ranges(task);
  if (flip) task.description += ", kernels averaged over flips";
}

template void prepare_inputs(GpTask<float>&, const PreprocessingChoice&, bool);
template void prepare_inputs(GpTask<double>&, const PreprocessingChoice&, bool);

}  // namespace widelimit::cli
