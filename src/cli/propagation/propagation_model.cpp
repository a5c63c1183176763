#include "cli/propagation/propagation_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/options/ranges.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/output/output_options.hpp"
#include "cli/output/result_text.hpp"
#include "cli/program/run_context.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/propagation/attention_map.hpp"
#include "widelimit/propagation/fields.hpp"

namespace widelimit::cli {

using namespace propagation;
using nlohmann::json;

void PropagationOptions::add_computation(CLI::App& command, std::string_view computation) {
  const Computation& rows = propagation::computation(computation);
  add_to(command, rows.transformer, "Network");
  add_to(command, rows.own);
}

void PropagationOptions::add_block(CLI::App& command) {
  add_value(command, "--block", block,
            "Also the block as a network file, its attention sampled rather than averaged, for "
            "widelimit propagation network",
            "FILE.json");
}

void PropagationOptions::exclude_both(const std::string& both, bool sets_A, bool sets_M,
                                      const std::string& why) {
  if (!sets_A && !sets_M) return;
  const std::string of_A = both + "_A", of_M = both + "_M";
  if (sets_A) exclude(of_A, why);
  if (sets_M) exclude(of_M, why);
  if ((sets_A || has(of_A)) && (sets_M || has(of_M))) exclude(both, why);
}

void PropagationOptions::check_shared() const {
  for (const std::string both : {"alpha", "skip"})
    if (has(both) && has(both + "_A") && has(both + "_M"))
      throw ArgumentError(
          fmt::format("--{}: has no effect together with --{}-A and --{}-M; leave it out", both, both, both));
}

void write_block(const PropagationOptions& options, const Transformer& transformer) {
  if (!options.block.empty()) files::replace_file(options.block, to_json(transformer.block()));
}

void check_start(const TableOptions& options) {
  if (options.has("c0") && !options.has("q0"))
    throw ArgumentError("--c0: needs --q0 as well, the squared norm / width of the tokens: give --q0 1");
}

void add_output_options(CLI::App& command, PropagationOutput& output, const std::string& picture) {
  add_value(command, "--out", output.out, "FILE.json or FILE.csv [JSON on standard output]", "FILE");
  // What these commands print is JSON anyway.
  add_json_option(command);
  if (!picture.empty()) add_picture_option(command, "--plot", output.plot, picture);
}

void check_output(const PropagationOutput& output, const CommandFiles& others) {
  if (!output.out.empty() && output.out.extension() != ".json" && output.out.extension() != ".csv")
    throw ArgumentError(fmt::format("--out: expected FILE.json or FILE.csv, got {}", output.out.string()));
  CommandFiles files = others;
  files.written.insert(files.written.begin(), {{"--out", output.out}, {"--plot", output.plot}});
  check_output_files(files);
}

void check_output(const PropagationOutput& output, const PropagationOptions& options, CommandFiles others) {
  others.written.insert(others.written.begin(), {"--block", options.block});
  check_output(output, others);
  if (!options.block.empty() && options.block.extension() != ".json")
    throw ArgumentError(fmt::format("--block: expected FILE.json, got {}", options.block.string()));
}

namespace {

/// The option's number, or its word.
json gain_json(const json& given) {
  if (given.is_number()) return given.get<double>();
  return given.is_null() ? json("unit") : given;
}

}  // namespace

ResultTable table_of(const std::string& command, const PropagationOptions& options,
                     const Transformer& transformer, const json& settings) {
  ResultTable table;
  table.summary["parameters"] = described(transformer.parameters);
  json configuration = table.summary["parameters"];
  configuration.update({{"activation", transformer.activation},
                        {"depth", transformer.depth},
                        {"causal", transformer.mask == AttentionMask::causal},
                        {"sigma_out", gain_json(options.given("sigma_out"))}});
  configuration.update(settings);
  for (const std::string& field : options.excluded()) configuration.erase(field);
  table.origin = {"propagation " + command, std::move(configuration)};
  return table;
}

void append_columns(ResultTable& table, const NamedColumns& columns, const std::vector<std::string>& names,
                    const std::string& prefix) {
  for (const std::string& name : names) {
    const auto column = std::ranges::find(columns, name, &NamedColumns::value_type::first);
    table.columns.push_back(prefix + name);
    table.rows.resize(column->second.size());
    for (std::size_t row = 0; row < table.rows.size(); ++row) table.rows[row].push_back(column->second[row]);
  }
}

namespace {

/// Adds a column and its value.
void append_number(ResultTable& table, const std::string& name, const json& value) {
  table.columns.push_back(name);
  table.rows[0].push_back(value.is_null() ? std::nan("") : value.get<double>());
}

/// The numbers of the summary as its only row, estimates with a column "NAME_error"; what found no column stays.
ResultTable row_of_summary(ResultTable table) {
  table.rows.emplace_back();
  const json summary = table.summary;
  for (const auto& [name, value] : summary.items()) {
    if (name == "parameters" || name == "notes") continue;
    if (value.is_number() || value.is_null()) {
      append_number(table, name, value);
    } else if (value.is_object() && value.contains("standard_error")) {
      append_number(table, name, value.at("value"));
      append_number(table, name + "_error", value.at("standard_error"));
    } else if (name == "critical") {
      for (const auto& [inner, number] : value.items()) append_number(table, inner, number);
    } else {
      continue;
    }
    table.summary.erase(name);
  }
  return table;
}

std::string csv_with_summary(const ResultTable& given) {
  const ResultTable table = given.columns.empty() ? row_of_summary(given) : given;
  std::string text = origin_comment(table.origin);
  for (const auto& [name, value] : table.summary.items())
    // The network stands in the configuration.
    if (name != "network") text += fmt::format("# {}: {}\n", name, value.dump());
  return text + csv_rows(table);
}

/// Of a file that was written: where it is and what it holds, or with --json the summary.
void say_written(const PropagationOutput& output, const ResultTable& table) {
  if (prints_json()) {
    json printed = table.summary;
    printed["out"] = output.out.string();
    return print_result(printed);
  }
  if (table.columns.empty()) return say("{}: results of {}\n", output.out.string(), table.origin.command);
  say("{}: {} {} of {}\n", output.out.string(), table.rows.size(), table.rows.size() == 1 ? "row" : "rows",
      fmt::join(table.columns, ", "));
}

}  // namespace

void note_angles(const BlockExponents& exponents, const std::string& name, ResultTable& table) {
  if (std::isinf(exponents.angle.value))
    table.notes[name] = table.notes["exponents"] = "-infinity: one block makes nearly equal tokens equal";
  if (exponents.no_angles.empty()) return;
  table.notes[name] = exponents.no_angles;
  warn("{}: {}", name, exponents.no_angles);
}

void write_table(const PropagationOutput& output, ResultTable table) {
  note_missing(table);
  std::string text;
  if (output.out.extension() == ".csv") {
    text = csv_with_summary(table);
  } else {
    json all = table.summary;
    all["origin"] = origin_json(table.origin);
    if (!table.columns.empty()) {
      all["columns"] = table.columns;
      all["rows"] = table.rows;
    }
    text = all.dump(1) + "\n";
  }
  if (output.out.empty()) {
    print_document(text);
    return;
  }
  files::replace_file(output.out, text);
  say_written(output, table);
}

namespace {

/// The command that needs no average, or what keeps it from being one.
std::string exact_command(const PropagationOptions& options, Index tokens, Index depth,
                          const std::string& start) {
  if (tokens > most_block_tokens || depth > most_blocks)
    return fmt::format("without that average, up to {} tokens and {} blocks: widelimit propagation network",
                       most_block_tokens, most_blocks);
  const bool has_file = !options.block.empty();
  return fmt::format("without that average: {}widelimit propagation network {} --depth {} {}",
                     has_file ? "" : "the same command with --block block.json, then ",
                     has_file ? shell_quoted(options.block.string()) : "block.json", depth, start);
}

}  // namespace

double largest_gap(const std::vector<TokenState>& states) {
  double largest = 0;
  for (const TokenState& state : states) largest = std::max(largest, state.cosine_gap());
  return largest;
}

std::string start_options(const Transformer& transformer, double q0, double c0) {
  return fmt::format("--tokens {} --q0 {} --c0 {}", transformer.parameters.tokens, q0, c0);
}

void warn_of_annealing(const PropagationOptions& options, const Transformer& transformer, double largest_gap,
                       Index depth, const std::string& start) {
  const Parameters& parameters = transformer.parameters;
  const double limit = largest_annealed_gap(static_cast<double>(parameters.tokens), parameters.sigma_A);
  if (largest_gap <= limit) return;
  warn(
      "the theory averages attention's numerator and denominator apart (annealed), which "
      "is good up to 1 - cosine = ln(tokens) / (2 sigma_A^2) = {:.3g}, but tokens come to {:.3g}; {}",
      limit, largest_gap, exact_command(options, parameters.tokens, depth, start));
}

}  // namespace widelimit::cli
