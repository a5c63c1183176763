#include "cli/tasks/data_arguments.hpp"

#include <algorithm>

namespace widelimit::cli {
namespace {

TextChoice text_choice(const DataArguments& arguments) {
  TextChoice choice = arguments.texts;
  choice.counts = {.train = arguments.images.train,
                   .validation = arguments.images.validation,
                   .test = arguments.images.test};
  choice.seed = arguments.images.seed;
  return choice;
}

/// The task of arrays, tables and graphs, whose inputs are taken as they are.
template <typename Scalar>
GpTask<Scalar> stored_task(const DataArguments& arguments) {
  if (arguments.kind == "graphs") return graph_task<Scalar>(arguments.path, arguments.targets);
  if (arguments.kind == "csv")
    return csv_task<Scalar>(arguments.path, arguments.encoding, arguments.targets, arguments.split,
                            arguments.test_needed);
  return npy_task<Scalar>(arguments.path, arguments.targets, arguments.split, arguments.test_needed);
}

}  // namespace

template <typename Scalar>
GpTask<Scalar> load_task(const DataArguments& arguments) {
  if (arguments.kind == "reviews") return reviews_task<Scalar>(text_choice(arguments));
  if (arguments.kind == "imdb")
    return imdb_task<Scalar>(arguments.path, arguments.vectors, text_choice(arguments));
  if (arguments.kind == "sample") return sample_task<Scalar>(arguments.images);
  if (arguments.kind == "cifar10") return cifar10_task<Scalar>(arguments.path, arguments.images);
  if (arguments.kind == "mnist") return mnist_task<Scalar>(arguments.path, arguments.images);
  return stored_task<Scalar>(arguments);
}

/// Spatial shape of the inputs, of the longest ones if they differ.
template <typename Scalar>
Shape shape_of(const GpSet<Scalar>& set) {
  if (set.sequences.empty()) return {set.x.shape().begin() + 1, set.x.shape().end() - 1};
  std::size_t longest = 0;
  for (const auto& sequence : set.sequences) longest = std::max(longest, sequence.shape(0));
  return {static_cast<Index>(longest)};
}

template <typename Scalar>
nlohmann::ordered_json shape_of_set(const GpSet<Scalar>& set) {
  if (set.sequences.empty()) return std::vector<std::size_t>(set.x.shape().begin(), set.x.shape().end());
  return {set.sequences.size(), shape_of(set)[0], set.sequences[0].shape(1)};
}

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
template Shape shape_of(const GpSet<float>&);
template Shape shape_of(const GpSet<double>&);
template nlohmann::ordered_json shapes_of(const GpTask<float>&);
template nlohmann::ordered_json shapes_of(const GpTask<double>&);

}  // namespace widelimit::cli
