#include "cli/gp_targets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/npy_inputs.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/targets.hpp"

namespace widelimit::cli {
namespace {

using Path = std::filesystem::path;

constexpr int most_labels = 100'000;

void check_count(const Path& file, std::size_t count, std::size_t inputs) {
  if (inputs == 0) fail_in(file, "expected targets of one input or more, there are no inputs");
  if (count != inputs) fail_in(file, "expected {} rows, one for each input, got {}", inputs, count);
}

bool holds_labels(const data::NpyHeader& header) { return !data::is_floating_point(header.type); }

std::vector<int> read_labels(const Path& file, std::size_t inputs) {
  const auto array = data::read_npy_as<double>(file);  // Exact for all integers that can be labels.
  if (array.dimension() != 1 && (array.dimension() != 2 || array.shape(1) != 1))
    fail_in(file, "expected integer labels [n], got {} axes", array.dimension());
  check_count(file, array.size(), inputs);
  std::vector<int> labels;
  for (std::size_t i = 0; i < array.size(); ++i) {
    const double label = array.flat(i);
    if (label < 0)
      fail_in(file,
              "labels are counted from 0 and must not be negative, got {} at index {}; store others as 0, 1, "
              "..., or give --targets numbers",
              label, i);
    if (label > most_labels - 1)
      fail_in(file, "labels must be below {}, got {:.0f} at index {}; store others as 0, 1, ...", most_labels,
              label, i);
    if (label != std::floor(label))
      fail_in(file, "labels must be whole numbers, got {} at index {}", label, i);
    labels.push_back(static_cast<int>(label));
  }
  return labels;
}

Matrix<double> read_numbers(const Path& file, std::size_t inputs) {
  const auto array = read_finite<double>(file);
  if (array.dimension() != 1 && array.dimension() != 2)
    fail_in(file, "expected targets [n, M] or [n], got {} axes", array.dimension());
  check_count(file, array.shape(0), inputs);
  const auto rows = static_cast<Index>(array.shape(0));
  const auto columns = static_cast<Index>(array.dimension() == 2 ? array.shape(1) : 1);
  if (columns < 1) fail_in(file, "expected at least one target an input, got [{}, 0]", rows);
  return Eigen::Map<const Matrix<double>>(array.data(), rows, columns);
}

/// Whether targets look like classes: two values, one larger one in each row (two signs for a single output).
TargetKind looks_like(const Matrix<double>& targets) {
  const double low = targets.minCoeff(), high = targets.maxCoeff();
  if (low == high || !((targets.array() == low) || (targets.array() == high)).all())
    return TargetKind::numbers;
  if (targets.cols() == 1) return low < 0 && high > 0 ? TargetKind::classes : TargetKind::numbers;
  const auto ones = (targets.array() == high).rowwise().count();
  return (ones == 1).all() ? TargetKind::classes : TargetKind::numbers;
}

/// For messages about other files: "y_train.npy", or "train/labels.npy" where folders tell the parts apart.
std::string train_name(const Path& file) {
  const std::string name = file.filename().string();
  return name == "y_train.npy" ? name : (file.parent_path().filename() / name).string();
}

}  // namespace

std::vector<std::string> names_of_rows(const std::filesystem::path& file, std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(fmt::format("{}#{}", file.filename().string(), i));
  return names;
}

std::vector<std::string> numbered_classes(TargetKind kind, Index outputs) {
  std::vector<std::string> names;
  if (kind == TargetKind::classes)
    for (Index c = 0; c < std::max<Index>(outputs, 2); ++c) names.push_back(std::to_string(c));
  return names;
}

TargetReader::TargetReader(Path train_file, std::size_t inputs, std::optional<TargetKind> kind)
    : train_file_{std::move(train_file)}, kind_{kind} {
  labels_ = are_labels(inputs);
  if (!labels_) {
    outputs_ = read_numbers(train_file_, inputs).cols();
    return;
  }
  const auto labels = read_labels(train_file_, inputs);
  outputs_ = *std::max_element(labels.begin(), labels.end()) + 1;
  if (outputs_ < 2) fail_in(train_file_, "expected labels of two or more classes, got 0 only");
}

Matrix<double> TargetReader::read(const Path& file, std::size_t inputs) const {
  const std::string train = train_name(train_file_);
  if (holds_labels(data::read_npy_header(file)) != integers_)
    fail_in(file, "expected {} as in {}", integers_ ? "integer labels" : "real targets", train);
  if (!labels_) {
    Matrix<double> targets = read_numbers(file, inputs);
    if (targets.cols() != outputs_)
      fail_in(file, "expected {} targets an input as in {}, got {}", outputs_, train, targets.cols());
    return targets;
  }
  const auto labels = read_labels(file, inputs);
  const auto largest = std::max_element(labels.begin(), labels.end());
  if (*largest >= outputs_)
    fail_in(file, "labels must be below {}, the number of classes in {}, got {} at index {}", outputs_, train,
            *largest, largest - labels.begin());
  return gp::class_targets(labels, static_cast<int>(outputs_));
}

TargetKind TargetReader::kind_of(const Matrix<double>& train) const {
  return kind_.value_or(labels_ ? TargetKind::classes : looks_like(train));
}

bool TargetReader::are_labels(std::size_t inputs) {
  integers_ = holds_labels(data::read_npy_header(train_file_));
  if (kind_ == TargetKind::numbers) return false;
  if (integers_) return true;
  const Matrix<double> targets = read_numbers(train_file_, inputs);
  const bool like_labels =
      targets.cols() == 1 && targets.minCoeff() >= 0 && (targets.array() == targets.array().floor()).all();
  if (like_labels && !kind_)
    fail_in(
        train_file_,
        "these are real numbers, all of them whole ({} to {}): labels of classes, or numbers? Store labels "
        "as integers, or give --targets classes or --targets numbers",
        targets.minCoeff(), targets.maxCoeff());
  return like_labels;
}

}  // namespace widelimit::cli
