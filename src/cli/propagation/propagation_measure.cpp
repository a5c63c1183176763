#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "cli/options/network_argument.hpp"
#include "cli/options/ranges.hpp"
#include "cli/output/result_text.hpp"
#include "cli/propagation/propagation_command.hpp"
#include "cli/propagation/propagation_model.hpp"
#include "cli/tasks/npy_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/propagation/measured_attention.hpp"
#include "widelimit/propagation/measured_layer.hpp"
#include "widelimit/propagation/repeated_block.hpp"
#include "widelimit/propagation/results.hpp"

namespace widelimit::cli {

using namespace propagation;

namespace {

struct MeasureArguments {
  std::filesystem::path folder, lengths, mask;
  std::string network;
  PropagationOutput output;
  std::stop_token stop;
};

/// PREFIX_0.npy, PREFIX_1.npy, ... DataError unless all files of such names are theirs, which may be none.
std::vector<std::filesystem::path> numbered_files(const std::filesystem::path& folder,
                                                  const std::string& prefix) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix + "_") && name.ends_with(".npy")) names.insert(name);
  }
  std::vector<std::filesystem::path> files;
  const auto next = [&] { return fmt::format("{}_{}.npy", prefix, files.size()); };
  for (std::string name = next(); names.erase(name) > 0; name = next()) files.push_back(folder / name);
  if (!names.empty())
    throw DataError(fmt::format("{}: expected {}_0.npy, {}_1.npy, ..., there is no {}, but {}",
                                folder.string(), prefix, prefix, next(), fmt::join(names, ", ")));
  return files;
}

std::vector<std::filesystem::path> layer_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files = numbered_files(folder, "layer");
  if (files.empty())
    throw DataError(
        fmt::format("{}: expected layer_0.npy, layer_1.npy, ..., there is no layer_0.npy", folder.string()));
  return files;
}

/// One layer's activations, measured.
struct FileLayer {
  MeasuredLayer measured;
  std::array<Index, 3> shape = {};  ///< Sequences, tokens, width.
};

/// What the array of a file lacks of activations, if anything.
void require_activations(const std::filesystem::path& file, const std::vector<std::size_t>& shape) {
  constexpr const char* wanted = "expected activations [sequences, tokens, width] of at least two tokens";
  if (shape.size() == 2)
    fail_in(file, "{}, got [{}]; one sequence is array[None], of the shape [1, {}]", wanted,
            fmt::join(shape, ", "), fmt::join(shape, ", "));
  if (shape.size() != 3 || shape[1] < 2 || shape[0] * shape[1] * shape[2] == 0)
    fail_in(file, "{}, got [{}]", wanted, fmt::join(shape, ", "));
}

/// Distance of 1 from the next number of the type in a file.
double epsilon_of(data::NpyType type) {
  if (type == data::NpyType::bfloat16) return 0x1p-7;
  return type == data::NpyType::float16 ? 0x1p-10 : type == data::NpyType::float32 ? 0x1p-23 : 0x1p-52;
}

/// Padding may be anything, and so is left to measured_layer().
FileLayer measured_in(const std::filesystem::path& file, const std::vector<bool>& kept) {
  const data::NpyHeader header = data::read_npy_header(file);
  require_activations(file, header.shape);
  const auto array = data::read_npy_as<double>(file);
  const auto sequences = static_cast<Index>(array.shape(0)), tokens = static_cast<Index>(array.shape(1)),
             width = static_cast<Index>(array.shape(2));
  try {
    return {measured_layer({array.data(), array.size()}, sequences, tokens,
                           {.kept = kept, .epsilon = epsilon_of(header.type)}),
            {sequences, tokens, width}};
  } catch (const Error& error) {
    fail_in(file, "{}", error.what());
  }
}

/// Tokens [sequences, tokens] before the lengths in a file.
std::vector<bool> kept_in(const std::filesystem::path& file, std::size_t sequences, std::size_t tokens) {
  const auto lengths = data::read_npy_as<std::int64_t>(file);
  if (lengths.dimension() != 1)
    fail_in(file, "expected lengths [{}], one a sequence, got [{}]", sequences,
            fmt::join(lengths.shape(), ", "));
  try {
    return kept_by_lengths({lengths.data(), lengths.size()}, static_cast<Index>(sequences),
                           static_cast<Index>(tokens));
  } catch (const Error& error) {
    fail_in(file, "{}", error.what());
  }
}

/// Which tokens of the first layer, and so of all, are no padding; empty: all.
std::vector<bool> kept_tokens(const MeasureArguments& arguments, const std::filesystem::path& first) {
  const std::vector<std::size_t> shape = data::read_npy_header(first).shape;
  require_activations(first, shape);
  if (!arguments.lengths.empty() && !arguments.mask.empty())
    throw ArgumentError("--lengths: has no effect together with --mask; leave one of them out");
  if (!arguments.lengths.empty()) return kept_in(arguments.lengths, shape[0], shape[1]);
  if (arguments.mask.empty()) return {};
  const auto mask = read_mask(arguments.mask);
  if (mask.dimension() != 2 || mask.shape(0) != shape[0] || mask.shape(1) != shape[1])
    fail_in(arguments.mask, "expected a mask [sequences, tokens] = [{}, {}], got [{}]", shape[0], shape[1],
            fmt::join(mask.shape(), ", "));
  return std::vector<bool>(mask.begin(), mask.end());
}

void add_theory(const MeasureArguments& arguments, const std::vector<FileLayer>& layers, ResultTable& table) {
  const Network block = network_from_argument(arguments.network, 1);
  table.origin.configuration["network"] = nlohmann::json::parse(to_json(block));
  const auto depth = static_cast<Index>(layers.size()) - 1;
  if (depth < 1)
    throw ArgumentError("--network: expected activations of at least two layers to compare with");
  if (layers.front().measured.gram.size() == 0)
    throw ArgumentError(
        "--network: the theory is that of one number of tokens, but sequences keep tokens at different "
        "positions; measure sequences of one length at a time");
  RunControl run;
  run.stop = arguments.stop;
  const auto theory = propagate(block, layers.front().measured.gram, depth, run);
  append_columns(table, token_columns(theory), {"q", "cosine", "product_ratio"}, "theory_");
  const BlockExponents exponents =
      block_exponents(block, layers.front().measured.gram.rows(), depth, {}, run);
  table.summary["theory_lambda_a_log"] = exponents.angle.value;
  note_angles(exponents, "theory_lambda_a_log", table);
  table.summary["theory_lambda_g"] = exponents.gradient.value;
}

/// Says which angles are rounding, in the summary and on standard error.
void note_rounding(const std::vector<MeasuredLayer>& layers, ResultTable& table) {
  table.summary["layers_below_rounding"] =
      std::ranges::count_if(layers, [](const auto& layer) { return !layer.has_gap(); });
  const auto note = rounding_note(layers);
  if (!note) return;
  table.notes["angle_growth"] = *note;
  warn("{}", *note);
}

/// Says where a few tokens are so long that means of products are theirs.
void note_sink(const std::vector<MeasuredLayer>& layers, Index tokens, ResultTable& table) {
  // Half of all of a sequence, and several times its part of it.
  const auto is_sink = [tokens](const MeasuredLayer& layer) {
    return layer.largest_share.value > std::max(0.5, 4 / static_cast<double>(tokens));
  };
  const auto longest = std::max_element(layers.begin(), layers.end(), [](const auto& a, const auto& b) {
    return a.largest_share.value < b.largest_share.value;
  });
  if (!is_sink(*longest)) return;
  const std::string note = fmt::format(
      "in {} of {} layers one token has most of a sequence's squared norm ({:.0f} % in layer {}, token {} in "
      "{:.0f} % of "
      "the sequences): q, product_ratio and the theory are about it; leave it out by a mask to see the "
      "others",
      std::count_if(layers.begin(), layers.end(), is_sink), layers.size(), 100 * longest->largest_share.value,
      longest - layers.begin(), longest->largest_token, 100 * longest->largest_token_share);
  table.summary["sink"] = note;
  warn("{}", note);
}

/// The heads of the blocks whose attention weights the folder has, if it has any.
void add_attention(const MeasureArguments& arguments, const std::array<Index, 3>& shape, std::size_t blocks,
                   const std::vector<bool>& kept, ResultTable& table) {
  const auto files = numbered_files(arguments.folder, "attention");
  if (files.empty()) return;
  if (files.size() != blocks)
    throw DataError(fmt::format("{}: expected attention_K.npy of each of the {} blocks, got {}",
                                arguments.folder.string(), blocks, files.size()));
  for (std::size_t block = 0; block < files.size(); ++block) {
    const std::filesystem::path& file = files[block];
    const auto array = data::read_npy_as<double>(file);
    const auto extent = [&](std::size_t axis) { return static_cast<Index>(array.shape(axis)); };
    if (array.dimension() != 4 || extent(0) != shape[0] || extent(2) != shape[1] || extent(3) != shape[1])
      fail_in(file, "expected attention [sequences, heads, tokens, tokens] = [{}, heads, {}, {}], got [{}]",
              shape[0], shape[1], shape[1], fmt::join(array.shape(), ", "));
    std::vector<MeasuredHead> heads;
    try {
      heads = measured_attention({array.data(), array.size()}, extent(0), extent(1), extent(2), kept,
                                 arguments.lengths.empty() ? LeftOutTokens::some : LeftOutTokens::padding);
    } catch (const Error& error) {
      fail_in(file, "{}", error.what());
    }
    for (std::size_t head = 0; head < heads.size(); ++head)
      table.summary["attention"].push_back({{"block", block},
                                            {"head", head},
                                            {"entropy", estimate_json(heads[head].entropy)},
                                            {"uniform", heads[head].uniform.value},
                                            {"first_weight", estimate_json(heads[head].first_weight)},
                                            {"largest_weight", estimate_json(heads[head].largest_weight)},
                                            {"kept_weight", estimate_json(heads[head].kept_weight)},
                                            {"rows_left_out", heads[head].rows_left_out}});
  }
  if (shape[0] == 1) table.notes["attention"] = "a single sequence has no standard error";
}

void run_measure(const MeasureArguments& arguments) {
  check_output(arguments.output, {.read = {{"--network", arguments.network},
                                           {"--lengths", arguments.lengths},
                                           {"--mask", arguments.mask}}});
  std::vector<FileLayer> layers;
  const auto files = layer_files(arguments.folder);
  const std::vector<bool> kept = kept_tokens(arguments, files.front());
  for (const auto& file : files) {
    layers.push_back(measured_in(file, kept));
    if (layers.back().shape != layers.front().shape)
      fail_in(file, "expected sequences, tokens and width as in layer_0.npy, {}, got {}",
              fmt::join(layers.front().shape, " x "), fmt::join(layers.back().shape, " x "));
  }
  ResultTable table;
  table.origin = {"propagation measure", {{"folder", arguments.folder.string()}}};
  table.summary["shape"] = layers.front().shape;
  if (!arguments.lengths.empty()) table.origin.configuration["lengths"] = arguments.lengths.string();
  if (!arguments.mask.empty()) table.origin.configuration["mask"] = arguments.mask.string();
  std::vector<MeasuredLayer> measured;
  for (FileLayer& layer : layers) measured.push_back(layer.measured);
  const NamedColumns columns = layer_columns(measured);
  table.columns = {"layer"};
  for (std::size_t l = 0; l < measured.size(); ++l) table.rows.push_back({static_cast<double>(l)});
  append_columns(table, columns,
                 {"q", "q_error", "q_spread", "largest_share", "largest_token", "cosine", "cosine_error",
                  "product_ratio", "product_ratio_error", "norm_growth", "angle_growth"});
  const auto blocks = static_cast<double>(std::max<std::size_t>(layers.size() - 1, 1));
  table.summary["norm_growth"] = std::log(measured.back().norm.value / measured.front().norm.value) / blocks;
  table.summary["angle_growth"] = measured.size() > 1 ? angle_growth(measured).mean : 0;
  note_rounding(measured, table);
  if (layers.front().shape[0] == 1)
    for (const char* error : {"q_error", "cosine_error", "product_ratio_error"})
      table.notes[error] = "a single sequence has no standard error";
  note_sink(measured, layers.front().shape[1], table);
  add_attention(arguments, layers.front().shape, layers.size() - 1, kept, table);
  if (!arguments.network.empty()) add_theory(arguments, layers, table);
  write_table(arguments.output, table);
}

}  // namespace

void add_propagation_measure_command(CLI::App& propagation, const RunContext& context) {
  auto arguments = std::make_shared<MeasureArguments>();
  arguments->stop = context.interrupt.token();
  CLI::App* command = propagation.add_subcommand(
      "measure", "Norms and angles in activations of a model of your own, compared with those of a block");
  add_value(
      *command, "folder", arguments->folder,
      "With layer_0.npy, layer_1.npy, ... of one shape: [sequences, tokens, width] before the "
      "first block and after each block; attention_0.npy, ... of each block, [sequences, heads, tokens, "
      "tokens], if they are there",
      "FOLDER")
      ->required();
  add_value(*command, "--lengths", arguments->lengths,
            "True lengths [sequences] of padded sequences; .npy of integers from 2", "FILE.npy");
  add_value(
      *command, "--mask", arguments->mask,
      "Mask [sequences, tokens]: tokens where it is 0 or false are left out; .npy of booleans or of 0 and 1",
      "FILE.npy");
  add_value(*command, "--network", arguments->network,
            "Network file of one block: the theory from the first layer's tokens", "NETWORK");
  add_output_options(*command, arguments->output, "");
  command->callback([arguments] { run_measure(*arguments); });
}

}  // namespace widelimit::cli
