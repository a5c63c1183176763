#include "cli/tasks/data_arguments.hpp"

#include <algorithm>
#include <type_traits>

#include "cli/tasks/data_sources.hpp"

namespace widelimit::cli {

template <typename Scalar>
GpTask<Scalar> load_task(const DataArguments& arguments) {
  const DataSource& source = data_source(arguments.kind);
  source.require_folder(arguments.path);
  if constexpr (std::is_same_v<Scalar, float>)
    return source.read_float(arguments);
  else
    return source.read_double(arguments);
}

bool takes_preprocessing(const DataArguments& arguments) {
  return data_source(arguments.kind).takes("--preprocess");
}

namespace {

/// Of sequences, which may differ, the length of the longest.
template <typename Scalar>
nlohmann::ordered_json shape_of_set(const GpSet<Scalar>& set) {
  if (set.sequences.empty()) return std::vector<std::size_t>(set.x.shape().begin(), set.x.shape().end());
  std::size_t longest = 0;
  for (const auto& sequence : set.sequences) longest = std::max(longest, sequence.shape(0));
  return {set.sequences.size(), longest, set.sequences[0].shape(1)};
}

}  // namespace

template <typename Scalar>
nlohmann::ordered_json shapes_of(const GpTask<Scalar>& task) {
  nlohmann::ordered_json shapes;
  shapes["train"] = shape_of_set(task.train);
  if (task.validation) shapes["validation"] = shape_of_set(*task.validation);
  shapes["test"] = shape_of_set(task.test);
  return shapes;
}

template GpTask<float> load_task(const DataArguments&);
template GpTask<double> load_task(const DataArguments&);
template nlohmann::ordered_json shapes_of(const GpTask<float>&);
template nlohmann::ordered_json shapes_of(const GpTask<double>&);

}  // namespace widelimit::cli
