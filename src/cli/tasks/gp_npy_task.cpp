#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/tasks/gp_targets.hpp"
#include "cli/tasks/npy_inputs.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/distinct_inputs.hpp"
#include "widelimit/gp/metrics.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::cli {
namespace {

using Path = std::filesystem::path;

template <typename Scalar>
xt::xarray<Scalar> read_inputs(const Path& file) {
  auto array = read_numbers<Scalar>(file);
  const std::vector<std::size_t> shape(array.shape().begin(), array.shape().end());
  if (shape.size() < 2 || shape.size() > 5 || array.size() == 0)
    fail_in(file, "expected inputs [n, spatial..., channels] with up to three spatial axes, got [{}]",
            fmt::join(shape, ", "));
  return array;
}

/// The same shape but for the number of inputs.
template <typename Scalar>
void check_same_shape(const xt::xarray<Scalar>& array, const Path& file, const xt::xarray<Scalar>& train) {
  if (array.dimension() == train.dimension() &&
      std::equal(array.shape().begin() + 1, array.shape().end(), train.shape().begin() + 1))
    return;
  fail_in(file, "expected inputs of shape [{}] as in x_train.npy, got [{}]",
          fmt::join(train.shape().begin() + 1, train.shape().end(), ", "),
          fmt::join(array.shape().begin() + 1, array.shape().end(), ", "));
}

/// The mask of the inputs, if there is a file of it. What it leaves must be finite.
template <typename Scalar>
void read_set_mask(const Path& x_file, const Path& mask_file, GpSet<Scalar>& set) {
  Inputs<Scalar> inputs = set.x;
  if (data::array_exists(mask_file)) {
    set.mask = read_mask(mask_file);
    inputs = masked_inputs(inputs, *set.mask, mask_file);
  }
  check_finite_inputs(inputs, x_file);
}

template <typename Scalar>
GpSet<Scalar> read_set(const Path& folder, const std::string& name, const GpSet<Scalar>& train,
                       const TargetReader& reader) {
  const Path x_file = folder / ("x_" + name + ".npy");
  const Path y_file = folder / ("y_" + name + ".npy");
  GpSet<Scalar> set{.x = read_inputs<Scalar>(x_file)};
  set.names = names_of_rows(x_file, set.x.shape(0));
  check_same_shape(set.x, x_file, train.x);
  read_set_mask(x_file, folder / ("mask_" + name + ".npy"), set);
  if (data::array_exists(y_file)) set.targets = reader.read(y_file, set.x.shape(0));
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
  const std::size_t positions = all.mask ? all.mask->size() / all.x.shape(0) : 0;
  if (all.mask) {
    shape.pop_back();
    set.mask = xt::xarray<bool>::from_shape(shape);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(all.x.data() + rows[i] * size, size, set.x.data() + i * size);
    if (all.mask)
      std::copy_n(all.mask->data() + rows[i] * positions, positions, set.mask->data() + i * positions);
    set.targets->row(static_cast<Index>(i)) = all.targets->row(static_cast<Index>(rows[i]));
    set.names.push_back(all.names[rows[i]]);
  }
  return set;
}

template <typename Scalar>
GpSet<Scalar> read_training_set(const Path& x_file, const Path& y_file, const Path& mask_file,
                                const TargetReader& reader) {
  GpSet<Scalar> set;
  set.x = read_inputs<Scalar>(x_file);
  read_set_mask(x_file, mask_file, set);
  set.targets = reader.read(y_file, set.x.shape(0));
  set.names = names_of_rows(x_file, set.x.shape(0));
  return set;
}

/// How many inputs a file holds. Throws DataError where there are none.
std::size_t count_in(const Path& file) {
  const auto shape = data::read_npy_header(file).shape;
  if (shape.empty() || shape[0] == 0)
    fail_in(file, "expected one training input or more, got an array of shape [{}]", fmt::join(shape, ", "));
  return shape[0];
}

/// x_train.npy and its like.
template <typename Scalar>
void read_sets(const Path& folder, const TargetReader& reader, bool test_needed, GpTask<Scalar>& task) {
  task.train = read_training_set<Scalar>(folder / "x_train.npy", folder / "y_train.npy",
                                         folder / "mask_train.npy", reader);
  if (test_needed || data::array_exists(folder / "x_test.npy"))
    task.test = read_set(folder, "test", task.train, reader);
  const bool has_x = data::array_exists(folder / "x_validation.npy");
  const bool has_y = data::array_exists(folder / "y_validation.npy");
  if (has_x != has_y)
    fail_in(folder, "x_validation.npy and y_validation.npy belong together; {} is missing",
            has_x ? "y_validation.npy" : "x_validation.npy");
  if (has_x) task.validation = read_set(folder, "validation", task.train, reader);
}

/// x.npy and y.npy.
template <typename Scalar>
void split_sets(const Path& folder, const TargetReader& reader, const SplitChoice& split,
                GpTask<Scalar>& task) {
  const auto all = read_training_set<Scalar>(folder / "x.npy", folder / "y.npy", folder / "mask.npy", reader);
  const std::vector<int> classes =
      reader.kind() == TargetKind::classes ? gp::classes_of(*all.targets) : std::vector<int>();
  auto parts = split_rows(all.names.size(), split, folder.string(), classes);
  if (!parts[1].empty()) train_on_equal_rows(parts, gp::distinct_inputs(all.inputs()).of_row);
  task.train = rows_of(all, parts[0]);
  if (!parts[1].empty()) task.validation = rows_of(all, parts[1]);
  task.test = rows_of(all, parts[2]);
}

/// A mask whose inputs are not there would be ignored without a word.
void check_masks_have_inputs(const Path& folder, bool one_set) {
  for (const char* name : {"", "_train", "_validation", "_test"}) {
    const Path mask = folder / fmt::format("mask{}.npy", name), x = folder / fmt::format("x{}.npy", name);
    if (!data::array_exists(mask)) continue;
    if (!data::array_exists(x) || one_set != (*name == 0))
      fail_in(mask, "belongs to {}, which {}", x.filename().string(),
              data::array_exists(x) ? "is not read here" : "is not there");
  }
}

}  // namespace

template <typename Scalar>
GpTask<Scalar> npy_task(const Path& folder, std::optional<TargetKind> kind, const SplitChoice& split,
                        bool test_needed) {
  const bool one_set = data::array_exists(folder / "x.npy") && !data::array_exists(folder / "x_train.npy");
  check_masks_have_inputs(folder, one_set);
  if (!one_set && split.is_given())
    fail_in(folder,
            "--train, --validation, --test and --stratify split x.npy and y.npy; x_train.npy and its like "
            "are taken as "
            "they are");
  const std::string ending = one_set ? ".npy" : "_train.npy";
  const TargetReader reader(folder / ("y" + ending), count_in(folder / ("x" + ending)), kind);
  GpTask<Scalar> task;
  if (one_set)
    split_sets(folder, reader, split, task);
  else
    read_sets(folder, reader, test_needed, task);
  task.kind = reader.kind();
  task.class_names = reader.class_names();
  task.description =
      fmt::format("{}: {} training, {} validation, {} test inputs of {}, {}", folder.string(),
                  task.train.x.shape(0), task.validation ? task.validation->x.shape(0) : 0, task.test.size(),
                  fmt::join(task.train.x.shape().begin() + 1, task.train.x.shape().end(), "x"),
                  targets_text(task.kind, task.class_names, *task.train.targets));
  return task;
}

template GpTask<float> npy_task(const Path&, std::optional<TargetKind>, const SplitChoice&, bool);
template GpTask<double> npy_task(const Path&, std::optional<TargetKind>, const SplitChoice&, bool);

}  // namespace widelimit::cli
