#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/gp_targets.hpp"
#include "cli/npy_inputs.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::cli {
namespace {

using Path = std::filesystem::path;

template <typename Scalar>
xt::xarray<Scalar> read_inputs(const Path& file) {
  auto array = read_finite<Scalar>(file);
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

template <typename Scalar>
GpSet<Scalar> read_set(const Path& folder, const std::string& name, const GpSet<Scalar>& train,
                       const TargetReader& reader) {
  const Path x_file = folder / ("x_" + name + ".npy");
  const Path y_file = folder / ("y_" + name + ".npy");
  GpSet<Scalar> set{.x = read_inputs<Scalar>(x_file)};
  check_same_shape(set.x, x_file, train.x);
  if (std::filesystem::exists(y_file)) set.targets = reader.read(y_file, set.x.shape(0));
  return set;
}

}  // namespace

template <typename Scalar>
GpTask<Scalar> npy_task(const Path& folder, std::optional<TargetKind> kind) {
  GpTask<Scalar> task;
  task.train.x = read_inputs<Scalar>(folder / "x_train.npy");
  const Path y_file = folder / "y_train.npy";
  const TargetReader reader(y_file, task.train.x.shape(0), kind);
  task.train.targets = reader.read(y_file, task.train.x.shape(0));
  task.kind = reader.kind_of(*task.train.targets);
  task.test = read_set(folder, "test", task.train, reader);
  const bool has_x = std::filesystem::exists(folder / "x_validation.npy");
  const bool has_y = std::filesystem::exists(folder / "y_validation.npy");
  if (has_x != has_y)
    fail_in(folder, "x_validation.npy and y_validation.npy belong together; {} is missing",
            has_x ? "y_validation.npy" : "x_validation.npy");
  if (has_x) task.validation = read_set(folder, "validation", task.train, reader);
  task.description = fmt::format(
      "{}: {} training, {} validation, {} test inputs of {}, {} outputs ({})", folder.string(),
      task.train.x.shape(0), task.validation ? task.validation->x.shape(0) : 0, task.test.x.shape(0),
      fmt::join(task.train.x.shape().begin() + 1, task.train.x.shape().end(), "x"),
      task.train.targets->cols(), task.kind == TargetKind::classes ? "classes" : "numbers");
  return task;
}

template GpTask<float> npy_task(const Path&, std::optional<TargetKind>);
template GpTask<double> npy_task(const Path&, std::optional<TargetKind>);

}  // namespace widelimit::cli
