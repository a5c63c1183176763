#include "cli/tasks/gp_targets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/tasks/npy_inputs.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/metrics.hpp"
#include "widelimit/json/read_json.hpp"

namespace widelimit::cli {
namespace {

using Path = std::filesystem::path;

void check_count(const Path& file, std::size_t count, std::size_t inputs) {
  if (inputs == 0) fail_in(file, "expected targets of one input or more, there are no inputs");
  if (count != inputs) fail_in(file, "expected {} rows, one for each input, got {}", inputs, count);
}

bool holds_labels(const data::NpyHeader& header) { return !data::is_floating_point(header.type); }

/// Whether an array has a column for each of several classes.
bool has_columns(const data::NpyHeader& header) { return header.shape.size() == 2 && header.shape[1] > 1; }

std::vector<std::int64_t> read_labels(const Path& file, std::size_t inputs) {
  constexpr double largest = 9007199254740992;  // Up to here every whole number is a double.
  const auto array = data::read_npy_as<double>(file);
  if (array.dimension() != 1 && (array.dimension() != 2 || array.shape(1) != 1))
    fail_in(file, "expected integer labels [n], got {} axes", array.dimension());
  check_count(file, array.size(), inputs);
  std::vector<std::int64_t> labels;
  labels.reserve(array.size());
  for (std::size_t i = 0; i < array.size(); ++i) {
    const double label = array.flat(i);
    if (label != std::floor(label))
      fail_in(file, "labels must be whole numbers, got {} at index {}; give --targets numbers for numbers",
              label, i);
    if (std::abs(label) > largest)
      fail_in(file, "labels must lie between -2^53 and 2^53, got {} at index {}", label, i);
    labels.push_back(static_cast<std::int64_t>(label));
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

/// Whether all targets are one of two values, and of each row one stands out.
bool are_one_hot(const Matrix<double>& targets) {
  const double low = targets.minCoeff(), high = targets.maxCoeff();
  if (low == high || !((targets.array() == low) || (targets.array() == high)).all()) return false;
  return ((targets.array() == high).rowwise().count() == 1).all();
}

bool are_signs(const Matrix<double>& targets) {
  const double low = targets.minCoeff(), high = targets.maxCoeff();
  return low < 0 && high > 0 && ((targets.array() == low) || (targets.array() == high)).all();
}

bool are_whole(const Matrix<double>& targets) { return (targets.array() == targets.array().floor()).all(); }

std::vector<std::int64_t> largest_columns(const Matrix<double>& targets) {
  std::vector<std::int64_t> labels;
  for (const int label : gp::classes_of(targets)) labels.push_back(label);
  return labels;
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

std::string targets_text(TargetKind kind, const std::vector<std::string>& class_names,
                         const Matrix<double>& targets) {
  return kind == TargetKind::classes ? fmt::format("{} classes", class_names.size())
                                     : fmt::format("{} outputs (numbers)", targets.cols());
}

TargetReader::TargetReader(Path train_file, std::size_t inputs, std::optional<TargetKind> kind)
    : train_file_{std::move(train_file)},
      kind_{kind},
      integers_{holds_labels(data::read_npy_header(train_file_))},
      form_{form_of(inputs)} {
  const std::string name = train_file_.string();
  if (form_ == Form::labels) {
    classes_ =
        naming_errors(name, [&] { return gp::ClassLabels::of(read_labels(train_file_, inputs), "labels"); });
    return;
  }
  const Matrix<double> targets = read_numbers(train_file_, inputs);
  columns_ = targets.cols();
  if (form_ == Form::one_hot)
    classes_ = naming_errors(name, [&] { return gp::ClassLabels::of(largest_columns(targets), "targets"); });
}

Matrix<double> TargetReader::read(const Path& file, std::size_t inputs) const {
  const std::string train = train_name(train_file_);
  // Rows of which one column stands out are classes whatever the type of their numbers.
  if (form_ != Form::one_hot && holds_labels(data::read_npy_header(file)) != integers_)
    fail_in(file, "expected {} as in {}", integers_ ? "integer labels" : "real targets", train);
  if (form_ == Form::labels)
    return naming_errors(file.string(),
                         [&] { return classes_->targets(read_labels(file, inputs), "labels"); });
  Matrix<double> targets = read_numbers(file, inputs);
  if (targets.cols() != columns_)
    fail_in(file, "expected {} targets an input as in {}, got {}", columns_, train, targets.cols());
  return form_ == Form::one_hot ? one_hot_targets(file, targets) : targets;
}

Matrix<double> TargetReader::one_hot_targets(const Path& file, const Matrix<double>& rows) const {
  if (!are_one_hot(rows) && !(rows.rows() == 1 && rows.maxCoeff() > rows.minCoeff()))
    fail_in(file, "expected rows of which one column stands out, as in {}", train_name(train_file_));
  return naming_errors(file.string(), [&] { return classes_->targets(largest_columns(rows), "targets"); });
}

TargetKind TargetReader::kind() const {
  return form_ == Form::numbers ? kind_.value_or(TargetKind::numbers) : TargetKind::classes;
}

std::vector<std::string> TargetReader::class_names() const {
  if (classes_) return classes_->names();
  std::vector<std::string> names;
  if (kind() == TargetKind::classes)
    for (Index c = 0; c < std::max<Index>(columns_, 2); ++c) names.push_back(std::to_string(c));
  return names;
}

TargetReader::Form TargetReader::form_of(std::size_t inputs) const {
  if (kind_ == TargetKind::numbers) return Form::numbers;
  if (integers_ && !has_columns(data::read_npy_header(train_file_))) return Form::labels;
  const Matrix<double> targets = read_numbers(train_file_, inputs);
  if (integers_ && !are_one_hot(targets))
    fail_in(
        train_file_,
        "expected integer labels [n], or rows of integers of which one column stands out, got [{}, {}]; give "
        "--targets numbers for numbers",
        targets.rows(), targets.cols());
  if (targets.cols() > 1) return are_one_hot(targets) ? Form::one_hot : Form::numbers;
  if (are_whole(targets)) {
    if (kind_ == TargetKind::classes) return Form::labels;
    if (targets.minCoeff() >= 0)
      fail_in(train_file_,
              "these are real numbers, all of them whole ({} to {}): labels of classes, or numbers? Store "
              "labels as integers, or give --targets classes or --targets numbers",
              targets.minCoeff(), targets.maxCoeff());
  }
  return are_signs(targets) ? Form::signs : Form::numbers;
}

}  // namespace widelimit::cli
