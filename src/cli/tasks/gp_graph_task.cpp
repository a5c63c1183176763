#include <fmt/format.h>

#include <algorithm>

#include "cli/tasks/gp_targets.hpp"
#include "cli/tasks/npy_inputs.hpp"
#include "widelimit/data/graph_folder.hpp"

namespace widelimit::cli {
namespace {

using Path = std::filesystem::path;

constexpr const char* labels_name = "labels.npy";

template <typename Scalar>
GpSet<Scalar> read_graph_set(const Path& folder) {
  auto graphs = data::read_graphs<Scalar>(folder);
  const std::size_t count = graphs.graphs.size();
  return {.sequences = std::move(graphs.features),
          .names = names_of_rows(folder, count),
          .graphs = std::move(graphs.graphs)};
}

template <typename Scalar>
void check_same_channels(const GpSet<Scalar>& set, const Path& folder, const GpSet<Scalar>& train) {
  const std::size_t expected = train.sequences[0].shape(1), channels = set.sequences[0].shape(1);
  if (channels != expected)
    fail_in(folder / "node_features.npy", "expected {} channels as in train, got {}", expected, channels);
}

template <typename Scalar>
std::string sizes_text(const GpSet<Scalar>& set) {
  const auto [least, most] =
      std::minmax_element(set.graphs.begin(), set.graphs.end(),
                          [](const InputGraph& a, const InputGraph& b) { return a.nodes() < b.nodes(); });
  return least->nodes() == most->nodes() ? fmt::format("{}", most->nodes())
                                         : fmt::format("{} to {}", least->nodes(), most->nodes());
}

}  // namespace

template <typename Scalar>
GpTask<Scalar> graph_task(const Path& folder, std::optional<TargetKind> kind) {
  const Path train = folder / "train", validation = folder / "validation", test = folder / "test";
  GpTask<Scalar> task;
  task.train = read_graph_set<Scalar>(train);
  const TargetReader reader(train / labels_name, task.train.graphs.size(), kind);
  const auto read = [&](const Path& part) {
    GpSet<Scalar> set = read_graph_set<Scalar>(part);
    check_same_channels(set, part, task.train);
    if (part != test || std::filesystem::exists(part / labels_name))
      set.targets = reader.read(part / labels_name, set.graphs.size());
    return set;
  };
  task.train.targets = reader.read(train / labels_name, task.train.graphs.size());
  task.kind = reader.kind();
  task.class_names = reader.class_names();
  task.test = read(test);
  if (std::filesystem::exists(validation)) task.validation = read(validation);
  task.description = fmt::format(
      "{}: {} training, {} validation, {} test graphs of {} nodes and {} channels, {}", folder.string(),
      task.train.graphs.size(), task.validation ? task.validation->graphs.size() : 0, task.test.graphs.size(),
      sizes_text(task.train), task.train.sequences[0].shape(1),
      targets_text(task.kind, task.class_names, *task.train.targets));
  return task;
}

template GpTask<float> graph_task(const Path&, std::optional<TargetKind>);
template GpTask<double> graph_task(const Path&, std::optional<TargetKind>);

}  // namespace widelimit::cli
