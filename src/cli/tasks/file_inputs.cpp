#include "cli/tasks/file_inputs.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/options/ranges.hpp"
#include "cli/tasks/npy_inputs.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/error.hpp"

namespace widelimit::cli {
namespace {

template <typename Scalar>
Inputs<Scalar> sequences_of(const xt::xarray<Scalar>& array, const InputFiles& files) {
  Inputs<Scalar> inputs = cut_inputs(inputs_of(array, files.x), files.lengths);
  if (!files.mask.empty()) inputs = masked_inputs(inputs, read_mask(files.mask), files.mask);
  check_finite_inputs(inputs, files.x);
  return inputs;
}

}  // namespace

std::vector<NamedFile> InputFiles::named(const std::string& suffix) const {
  return {{"--x" + suffix, x}, {"--lengths" + suffix, lengths}, {"--mask" + suffix, mask}};
}

template <typename Scalar>
FileInputs<Scalar>::FileInputs(const InputFiles& files)
    : FileInputs(files, files.x.empty() ? xt::xarray<Scalar>() : read_numbers<Scalar>(files.x)) {}

template <typename Scalar>
FileInputs<Scalar>::FileInputs(const InputFiles& files, xt::xarray<Scalar> array)
    : array_{std::move(array)},
      graphs_{files.graphs.empty() ? data::GraphFolder<Scalar>() : data::read_graphs<Scalar>(files.graphs)},
      inputs_{files.graphs.empty() ? sequences_of(array_, files)
                                   : Inputs<Scalar>(Inputs<Scalar>(graphs_.features), graphs_.graphs)} {}

template <typename Scalar>
nlohmann::ordered_json FileInputs<Scalar>::shape() const {
  if (graphs_.graphs.empty()) return std::vector<std::size_t>(array_.shape().begin(), array_.shape().end());
  Index largest = 0;
  for (const InputGraph& graph : graphs_.graphs) largest = std::max(largest, graph.nodes());
  return {inputs_.size(), largest, inputs_.channels()};
}

namespace {

CLI::Option* add_x(CLI::App& command, InputFiles& files) {
  return add_value(command, "--x", files.x,
                   "Inputs [n, spatial..., channels], or [n, channels]; .npy of any numeric type, or "
                   "ARCHIVE/NAME of an .npz or .safetensors file",
                   "FILE");
}

void add_lengths(CLI::App& command, InputFiles& files, CLI::Option* x) {
  add_value(command, "--lengths", files.lengths,
            "True lengths [n] of padded sequences [n, longest, channels]; .npy of integers", "FILE")
      ->needs(x);
}

void add_mask(CLI::App& command, InputFiles& files, CLI::Option* x) {
  add_value(command, "--mask", files.mask,
            "Mask [n, spatial...]: positions where it is 0 or false do not count; .npy of booleans", "FILE")
      ->needs(x);
}

CLI::Option* add_graphs(CLI::App& command, InputFiles& files, CLI::Option* x) {
  return add_value(command, "--graphs", files.graphs,
                   "In place of --x: a folder of graphs, node_features.npy, "
                   "graph_offsets.npy, edges.npy and optional "
                   "edge_weights.npy (docs/graphs.md)",
                   "DIR")
      ->excludes(x);
}

}  // namespace

void add_inputs(CLI::App& command, InputFiles& files) {
  CLI::Option* x = add_x(command, files);
  add_lengths(command, files, x);
  add_mask(command, files, x);
  add_graphs(command, files, x);
}

void add_gram_inputs(CLI::App& command, InputFiles& rows, InputFiles& columns) {
  CLI::Option* x = add_x(command, rows);
  CLI::Option* x2 =
      add_value(command, "--x2", columns.x, "Inputs of the columns, if they are others than --x", "FILE")
          ->needs(x);
  add_lengths(command, rows, x);
  add_value(command, "--lengths2", columns.lengths, "The same for --x2", "FILE")->needs(x2);
  add_mask(command, rows, x);
  add_value(command, "--mask2", columns.mask, "The same for --x2", "FILE")->needs(x2);
  CLI::Option* graphs = add_graphs(command, rows, x);
  add_value(command, "--graphs2", columns.graphs, "Graphs of the columns, if they are others than --graphs",
            "DIR")
      ->needs(graphs);
}

template class FileInputs<float>;
template class FileInputs<double>;

}  // namespace widelimit::cli
