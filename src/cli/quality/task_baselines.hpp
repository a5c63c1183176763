#pragma once

#include "cli/quality/test_quality.hpp"
#include "cli/tasks/gp_task.hpp"

namespace widelimit::cli {

/// Baselines from the training inputs of a task, as its preprocessing left them, on the test inputs, whose targets are
/// known: class frequencies and logistic regression, or the mean and ridge regression. An input is the row of all its
/// numbers; one with positions that do not count, or of a length of its own, is the mean of its positions. The linear
/// one is left out, with a note, where it would take more memory or time than a small part of the run.
template <typename Scalar>
void add_baselines(TestQuality& quality, const GpTask<Scalar>& task);

}  // namespace widelimit::cli
