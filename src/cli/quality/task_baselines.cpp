#include "cli/quality/task_baselines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "widelimit/gp/baselines.hpp"
#include "widelimit/gp/metrics.hpp"

namespace widelimit::cli {
namespace {

/// The mean of the positions that count.
template <typename Scalar>
void add_mean(const Inputs<Scalar>& inputs, Index i, Eigen::Ref<Vector<double>> row) {
  const auto numbers = inputs[i];
  const auto channels = static_cast<std::size_t>(inputs.channels());
  double count = 0;
  for (std::size_t position = 0; position < numbers.size() / channels; ++position) {
    if (inputs.is_masked() && !inputs.mask(i).empty() && inputs.mask(i)[position] == 0) continue;
    for (std::size_t c = 0; c < channels; ++c)
      row(static_cast<Index>(c)) += static_cast<double>(numbers[position * channels + c]);
    ++count;
  }
  if (count > 0) row /= count;
}

template <typename Scalar>
bool takes_means(const Inputs<Scalar>& inputs) {
  return inputs.is_ragged() || inputs.is_masked() || !inputs.graphs().empty();
}

/// [inputs, columns]
template <typename Scalar>
Matrix<double> rows_of(const Inputs<Scalar>& inputs, bool means, Index columns) {
  Matrix<double> rows = Matrix<double>::Zero(inputs.size(), columns);
  for (Index i = 0; i < inputs.size(); ++i) {
    Vector<double> row = Vector<double>::Zero(columns);
    const auto numbers = inputs[i];
    if (means)
      add_mean(inputs, i, row);
    else
      for (std::size_t k = 0; k < numbers.size(); ++k) row(static_cast<Index>(k)) = numbers[k];
    rows.row(i) = row.transpose();
  }
  return rows;
}

/// What a linear model takes: numbers that it holds, and products of one of its passes.
std::string too_large(Index train, Index test, Index columns, Index outputs) {
  constexpr double most_numbers = 2e6, most_side = 1024, most_products = 2e7;
  const auto rows = static_cast<double>(train), width = static_cast<double>(columns);
  const double rank = std::min(rows, width);
  if ((rows + static_cast<double>(test)) * width <= most_numbers && rank <= most_side &&
      rows * rank * static_cast<double>(outputs) <= most_products)
    return "";
  return fmt::format("no linear model beside them: {} rows of {} numbers and {} outputs are many for one\n",
                     train, columns, outputs);
}

struct BaselineRows {
  Matrix<double> train, test;
};

/// Nothing, and a note, where they are many.
template <typename Scalar>
std::optional<BaselineRows> baseline_rows(TestQuality& quality, const GpTask<Scalar>& task, Index outputs) {
  const Inputs<Scalar> train = task.train.inputs(), test = task.test.inputs();
  const bool means = takes_means(train) || takes_means(test);
  const Index columns = means ? train.channels() : static_cast<Index>(train[0].size());
  quality.note = too_large(train.size(), test.size(), columns, outputs);
  if (!quality.note.empty()) return std::nullopt;
  return BaselineRows{rows_of(train, means, columns), rows_of(test, means, columns)};
}

void add_numbers(TestQuality& quality, const char* name, const gp::NumberBaseline& found,
                 const Matrix<double>& targets) {
  // Equal training targets have no density.
  if ((found.variances.array() > 0).all() && found.variances.allFinite())
    quality.baselines.push_back(
        {name, targets.rows(), {.numbers = gp::numbers_quality(found.mean, found.variances, targets)}});
}

}  // namespace

template <typename Scalar>
void add_baselines(TestQuality& quality, const GpTask<Scalar>& task) {
  const Matrix<double>&train = *task.train.targets, &test = *task.test.targets;
  const std::optional<BaselineRows> rows = baseline_rows(quality, task, train.cols());
  if (task.kind == TargetKind::numbers) {
    add_numbers(quality, "mean", gp::mean_baseline(train, test.rows()), test);
    if (rows)
      add_numbers(quality, "linear regression", gp::linear_baseline(rows->train, train, rows->test), test);
    return;
  }
  const auto labels = gp::classes_of(train), truths = gp::classes_of(test);
  const int classes = std::max(2, static_cast<int>(train.cols()));
  const auto add = [&](const char* name, const Matrix<double>& probabilities) {
    quality.baselines.push_back({name, test.rows(), {.classes = gp::classes_quality(probabilities, truths)}});
  };
  add("class frequencies", gp::frequency_baseline(labels, classes, test.rows()));
  if (rows) add("logistic regression", gp::logistic_baseline(rows->train, labels, classes, rows->test));
}

template void add_baselines(TestQuality&, const GpTask<float>&);
template void add_baselines(TestQuality&, const GpTask<double>&);

}  // namespace widelimit::cli
