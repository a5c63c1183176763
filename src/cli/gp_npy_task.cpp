#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/gp_task.hpp"
#include "cli/npy_inputs.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/targets.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::cli {
namespace {

using Path = std::filesystem::path;

template <typename... Arguments>
[[noreturn]] void fail(const Path& file, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  throw DataError(
      fmt::format("{}: {}", file.string(), fmt::format(format, std::forward<Arguments>(arguments)...)));
}

template <typename Scalar>
xt::xarray<Scalar> read_inputs(const Path& file) {
  auto array = read_finite<Scalar>(file);
  const std::vector<std::size_t> shape(array.shape().begin(), array.shape().end());
  if (shape.size() < 2 || shape.size() > 5 || array.size() == 0)
    fail(file, "expected inputs [n, spatial..., channels] with up to three spatial axes, got [{}]",
         fmt::join(shape, ", "));
  return array;
}

/// The same shape but for the number of inputs.
template <typename Scalar>
void check_same_shape(const xt::xarray<Scalar>& array, const Path& file, const xt::xarray<Scalar>& train) {
  if (array.dimension() == train.dimension() &&
      std::equal(array.shape().begin() + 1, array.shape().end(), train.shape().begin() + 1))
    return;
  fail(file, "expected inputs of shape [{}] as in x_train.npy, got [{}]",
       fmt::join(train.shape().begin() + 1, train.shape().end(), ", "),
       fmt::join(array.shape().begin() + 1, array.shape().end(), ", "));
}

void check_count(const Path& file, std::size_t count, std::size_t inputs) {
  if (count != inputs) fail(file, "expected {} rows, one for each input, got {}", inputs, count);
}

bool holds_labels(const data::NpyHeader& header) { return !data::is_floating_point(header.type); }

std::vector<int> read_labels(const Path& file, std::size_t inputs) {
  const auto array = data::read_npy_as<double>(file);  // Exact for all integers that can be labels.
  if (array.dimension() != 1 && (array.dimension() != 2 || array.shape(1) != 1))
    fail(file, "expected integer labels [n], got {} axes", array.dimension());
  check_count(file, array.size(), inputs);
  std::vector<int> labels;
  for (std::size_t i = 0; i < array.size(); ++i) {
    const double label = array.flat(i);
    if (!(label >= 0 && label < std::numeric_limits<int>::max()))
      fail(file, "labels must not be negative, got {} at index {}", label, i);
    if (label != std::floor(label)) fail(file, "labels must be whole numbers, got {} at index {}", label, i);
    labels.push_back(static_cast<int>(label));
  }
  return labels;
}

Matrix<double> read_numbers(const Path& file, std::size_t inputs) {
  const auto array = read_finite<double>(file);
  if (array.dimension() != 1 && array.dimension() != 2)
    fail(file, "expected targets [n, M] or [n], got {} axes", array.dimension());
  check_count(file, array.shape(0), inputs);
  const auto rows = static_cast<Index>(array.shape(0));
  const auto columns = static_cast<Index>(array.dimension() == 2 ? array.shape(1) : 1);
  if (columns < 1) fail(file, "expected at least one target an input, got [{}, 0]", rows);
  return Eigen::Map<const Matrix<double>>(array.data(), rows, columns);
}

/// Reads targets in the form that the training targets have.
class TargetReader {
 public:
  TargetReader(const Path& train_file, std::size_t inputs, std::optional<TargetKind> kind) {
    labels_ = are_labels(train_file, inputs, kind);
    if (!labels_) {
      outputs_ = read_numbers(train_file, inputs).cols();
      return;
    }
    const auto labels = read_labels(train_file, inputs);
    outputs_ = *std::max_element(labels.begin(), labels.end()) + 1;
    if (outputs_ < 2) fail(train_file, "expected labels of two or more classes, got 0 only");
    if (outputs_ > 100'000) fail(train_file, "expected at most 100000 classes, got label {}", outputs_ - 1);
  }

  [[nodiscard]] bool labels() const { return labels_; }

  [[nodiscard]] Matrix<double> read(const Path& file, std::size_t inputs) const {
    if (holds_labels(data::read_npy_header(file)) != integers_)
      fail(file, "expected {} as in y_train.npy", integers_ ? "integer labels" : "real targets");
    if (!labels_) {
      Matrix<double> targets = read_numbers(file, inputs);
      if (targets.cols() != outputs_)
        fail(file, "expected {} targets an input as in y_train.npy, got {}", outputs_, targets.cols());
      return targets;
    }
    const auto labels = read_labels(file, inputs);
    const auto largest = std::max_element(labels.begin(), labels.end());
    if (*largest >= outputs_)
      fail(file, "labels must be below {}, the number of classes in y_train.npy, got {} at index {}",
           outputs_, *largest, largest - labels.begin());
    return gp::class_targets(labels, static_cast<int>(outputs_));
  }

 private:
  bool are_labels(const Path& file, std::size_t inputs, std::optional<TargetKind> kind) {
    integers_ = holds_labels(data::read_npy_header(file));
    if (kind == TargetKind::numbers) return false;
    if (integers_) return true;
    const Matrix<double> targets = read_numbers(file, inputs);
    const bool like_labels =
        targets.cols() == 1 && targets.minCoeff() >= 0 && (targets.array() == targets.array().floor()).all();
    if (like_labels && !kind)
      fail(
          file,
          "these are real numbers, all of them whole ({} to {}): labels of classes, or numbers? Store labels "
          "as integers, or give --targets classes or --targets numbers",
          targets.minCoeff(), targets.maxCoeff());
    return like_labels;
  }

  bool integers_ = false;  ///< Of type, in y_train.npy.
  bool labels_ = false;
  Index outputs_ = 0;
};

/// Whether targets look like classes: two values, one larger one in each row (two signs for a single output).
TargetKind kind_of(const Matrix<double>& targets) {
  const double low = targets.minCoeff(), high = targets.maxCoeff();
  if (low == high || !((targets.array() == low) || (targets.array() == high)).all())
    return TargetKind::numbers;
  if (targets.cols() == 1) return low < 0 && high > 0 ? TargetKind::classes : TargetKind::numbers;
  const auto ones = (targets.array() == high).rowwise().count();
  return (ones == 1).all() ? TargetKind::classes : TargetKind::numbers;
}

/// "FILE#ROW", rows counted from 0.
std::vector<std::string> names_of_rows(const Path& file, std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(fmt::format("{}#{}", file.filename().string(), i));
  return names;
}

/// Classes by their numbers; two for a single output.
std::vector<std::string> numbered_classes(TargetKind kind, Index outputs) {
  std::vector<std::string> names;
  if (kind == TargetKind::classes)
    for (Index c = 0; c < std::max<Index>(outputs, 2); ++c) names.push_back(std::to_string(c));
  return names;
}

template <typename Scalar>
GpSet<Scalar> read_set(const Path& folder, const std::string& name, const GpSet<Scalar>& train,
                       const TargetReader& reader) {
  const Path x_file = folder / ("x_" + name + ".npy");
  const Path y_file = folder / ("y_" + name + ".npy");
  GpSet<Scalar> set{.x = read_inputs<Scalar>(x_file), .sequences = {}, .targets = std::nullopt, .names = {}};
  set.names = names_of_rows(x_file, set.x.shape(0));
  check_same_shape(set.x, x_file, train.x);
  if (std::filesystem::exists(y_file)) set.targets = reader.read(y_file, set.x.shape(0));
  return set;
}

/// Rows of an array or of targets, in this order.
template <typename Scalar>
GpSet<Scalar> rows_of(const GpSet<Scalar>& all, const std::vector<std::size_t>& rows) {
  GpSet<Scalar> set;
  std::vector<std::size_t> shape(all.x.shape().begin(), all.x.shape().end());
  const std::size_t size = all.x.size() / shape[0];
  shape[0] = rows.size();
  set.x = xt::xarray<Scalar>::from_shape(shape);
  set.targets = Matrix<double>(static_cast<Index>(rows.size()), all.targets->cols());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(all.x.data() + rows[i] * size, size, set.x.data() + i * size);
    set.targets->row(static_cast<Index>(i)) = all.targets->row(static_cast<Index>(rows[i]));
    set.names.push_back(all.names[rows[i]]);
  }
  return set;
}

template <typename Scalar>
GpSet<Scalar> read_training_set(const Path& x_file, const Path& y_file, const TargetReader& reader) {
  GpSet<Scalar> set;
  set.x = read_inputs<Scalar>(x_file);
  set.targets = reader.read(y_file, set.x.shape(0));
  set.names = names_of_rows(x_file, set.x.shape(0));
  return set;
}

/// How many inputs a file holds.
std::size_t count_in(const Path& file) {
  const auto shape = data::read_npy_header(file).shape;
  return shape.empty() ? 0 : shape[0];
}

/// x_train.npy and its like.
template <typename Scalar>
void read_sets(const Path& folder, const TargetReader& reader, bool test_needed, GpTask<Scalar>& task) {
  task.train = read_training_set<Scalar>(folder / "x_train.npy", folder / "y_train.npy", reader);
  if (test_needed || std::filesystem::exists(folder / "x_test.npy"))
    task.test = read_set(folder, "test", task.train, reader);
  const bool has_x = std::filesystem::exists(folder / "x_validation.npy");
  const bool has_y = std::filesystem::exists(folder / "y_validation.npy");
  if (has_x != has_y)
    fail(folder, "x_validation.npy and y_validation.npy belong together; {} is missing",
         has_x ? "y_validation.npy" : "x_validation.npy");
  if (has_x) task.validation = read_set(folder, "validation", task.train, reader);
}

/// x.npy and y.npy.
template <typename Scalar>
void split_sets(const Path& folder, const TargetReader& reader, const SplitChoice& split,
                GpTask<Scalar>& task) {
  const auto all = read_training_set<Scalar>(folder / "x.npy", folder / "y.npy", reader);
  const auto parts = split_rows(all.names.size(), split, folder.string());
  task.train = rows_of(all, parts[0]);
  if (!parts[1].empty()) task.validation = rows_of(all, parts[1]);
  task.test = rows_of(all, parts[2]);
}

}  // namespace

template <typename Scalar>
GpTask<Scalar> npy_task(const Path& folder, std::optional<TargetKind> kind, const SplitChoice& split,
                        bool test_needed) {
  const bool one_set =
      std::filesystem::exists(folder / "x.npy") && !std::filesystem::exists(folder / "x_train.npy");
  if (!one_set && split.is_given())
    fail(folder,
         "--train, --validation and --test split x.npy and y.npy; x_train.npy and its like are taken as they "
         "are");
  const std::string ending = one_set ? ".npy" : "_train.npy";
  const TargetReader reader(folder / ("y" + ending), count_in(folder / ("x" + ending)), kind);
  GpTask<Scalar> task;
  if (one_set)
    split_sets(folder, reader, split, task);
  else
    read_sets(folder, reader, test_needed, task);
  task.kind = kind.value_or(reader.labels() ? TargetKind::classes : kind_of(*task.train.targets));
  task.class_names = numbered_classes(task.kind, task.train.targets->cols());
  task.description =
      fmt::format("{}: {} training, {} validation, {} test inputs of {}, {} outputs ({})", folder.string(),
                  task.train.x.shape(0), task.validation ? task.validation->x.shape(0) : 0, task.test.size(),
                  fmt::join(task.train.x.shape().begin() + 1, task.train.x.shape().end(), "x"),
                  task.train.targets->cols(), task.kind == TargetKind::classes ? "classes" : "numbers");
  return task;
}

template GpTask<float> npy_task(const Path&, std::optional<TargetKind>, const SplitChoice&, bool);
template GpTask<double> npy_task(const Path&, std::optional<TargetKind>, const SplitChoice&, bool);

}  // namespace widelimit::cli
