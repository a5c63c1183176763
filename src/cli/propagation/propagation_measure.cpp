#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "cli/options/network_argument.hpp"
#include "cli/options/ranges.hpp"
#include "cli/propagation/propagation_command.hpp"
#include "cli/propagation/propagation_model.hpp"
#include "cli/tasks/npy_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/propagation/measured_layer.hpp"
#include "widelimit/propagation/repeated_block.hpp"

namespace widelimit::cli {

using namespace propagation;

namespace {

struct MeasureArguments {
  std::filesystem::path folder;
  std::string network;
  PropagationOutput output;
  std::stop_token stop;
};

/// layer_0.npy, layer_1.npy, ... DataError unless all files of such names are theirs.
std::vector<std::filesystem::path> layer_files(const std::filesystem::path& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("layer_") && name.ends_with(".npy")) names.insert(name);
  }
  std::vector<std::filesystem::path> files;
  for (std::string name = "layer_0.npy"; names.erase(name) > 0;
       name = fmt::format("layer_{}.npy", files.size()))
    files.push_back(folder / name);
  const std::string next = fmt::format("layer_{}.npy", files.size());
  if (files.empty() || !names.empty())
    throw DataError(fmt::format("{}: expected layer_0.npy, layer_1.npy, ..., there is no {}{}",
                                folder.string(), next,
                                names.empty() ? "" : fmt::format(", but {}", fmt::join(names, ", "))));
  return files;
}

/// One layer's activations, measured.
struct FileLayer {
  MeasuredLayer measured;
  std::array<Index, 3> shape = {};  ///< Sequences, tokens, width.
};

FileLayer measured_in(const std::filesystem::path& file) {
  const auto array = read_finite<double>(file);
  if (array.dimension() != 3 || array.shape(1) < 2 || array.size() == 0)
    fail_in(file, "expected activations [sequences, tokens, width] of at least two tokens");
  const auto sequences = static_cast<Index>(array.shape(0)), tokens = static_cast<Index>(array.shape(1)),
             width = static_cast<Index>(array.shape(2));
  try {
    return {measured_layer({array.data(), array.size()}, sequences, tokens), {sequences, tokens, width}};
  } catch (const ArgumentError& error) {
    fail_in(file, "{}", error.what());
  }
}

void add_theory(const MeasureArguments& arguments, const std::vector<FileLayer>& layers, ResultTable& table) {
  const Network block = network_from_argument(arguments.network, 1);
  table.origin.configuration["network"] = nlohmann::json::parse(to_json(block));
  const auto depth = static_cast<Index>(layers.size()) - 1;
  if (depth < 1)
    throw ArgumentError("--network: expected activations of at least two layers to compare with");
  RunControl run;
  run.stop = arguments.stop;
  const auto theory = propagate(block, layers.front().measured.gram, depth, run);
  for (const char* name : {"theory_q", "theory_cosine"}) table.columns.emplace_back(name);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    table.rows[l].push_back(theory[l].squared_norm.value);
    table.rows[l].push_back(theory[l].cosine.value);
  }
  const BlockExponents exponents =
      block_exponents(block, layers.front().measured.gram.rows(), depth, {}, run);
  table.summary["theory_lambda_a_log"] = exponents.angle.value;
  table.summary["theory_lambda_g"] = exponents.gradient.value;
}

void run_measure(const MeasureArguments& arguments) {
  check_output(arguments.output, {.read = {{"--network", arguments.network}}});
  std::vector<FileLayer> layers;
  const auto files = layer_files(arguments.folder);
  for (const auto& file : files) {
    layers.push_back(measured_in(file));
    if (layers.back().shape != layers.front().shape)
      fail_in(file, "expected sequences, tokens and width as in layer_0.npy, {}, got {}",
              fmt::join(layers.front().shape, " x "), fmt::join(layers.back().shape, " x "));
  }
  ResultTable table;
  table.origin = {"propagation measure", {{"folder", arguments.folder.string()}}};
  table.summary["shape"] = layers.front().shape;
  table.columns = {"layer", "q", "q_error", "cosine", "cosine_error", "norm_growth", "angle_growth"};
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const MeasuredLayer &layer = layers[l].measured, &before = layers[l == 0 ? l : l - 1].measured;
    table.rows.push_back({static_cast<double>(l), layer.norm.value, layer.norm.standard_error,
                          layer.cosine.value, layer.cosine.standard_error,
                          std::log(layer.norm.value / before.norm.value), std::log(layer.gap / before.gap)});
  }
  const auto blocks = static_cast<double>(std::max<std::size_t>(layers.size() - 1, 1));
  const MeasuredLayer &first = layers.front().measured, &last = layers.back().measured;
  table.summary["norm_growth"] = std::log(last.norm.value / first.norm.value) / blocks;
  table.summary["angle_growth"] = std::log(last.gap / first.gap) / blocks;
  if (!arguments.network.empty()) add_theory(arguments, layers, table);
  write_table(arguments.output, table);
}

}  // namespace

void add_propagation_measure_command(CLI::App& propagation, const RunContext& context) {
  auto arguments = std::make_shared<MeasureArguments>();
  arguments->stop = context.interrupt.token();
  CLI::App* command = propagation.add_subcommand(
      "measure", "Norms and angles in activations of a model of your own, compared with those of a block");
  add_value(*command, "folder", arguments->folder,
            "With layer_0.npy, layer_1.npy, ... of one shape: [sequences, tokens, width] before the "
            "first block and after each block",
            "FOLDER")
      ->required();
  add_value(*command, "--network", arguments->network,
            "Network file of one block: the theory from the first layer's tokens", "NETWORK");
  add_output_options(*command, arguments->output, "");
  command->callback([arguments] { run_measure(*arguments); });
}

}  // namespace widelimit::cli
