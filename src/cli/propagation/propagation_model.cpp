#include "cli/propagation/propagation_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/options/counts.hpp"
#include "cli/options/ranges.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/output/output_options.hpp"
#include "cli/output/result_text.hpp"
#include "cli/output/text_parts.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"

namespace widelimit::cli {

using nlohmann::json;
using propagation::OutputGain;
using propagation::Parameters;

namespace {

OutputGain gain_of(const std::string& text) {
  if (text == "unit") return OutputGain::unit();
  if (text == "shared") return OutputGain::shared();
  const auto value = whole_text_number(text);
  if (!value)
    throw ArgumentError(fmt::format("--sigma-out: expected unit, shared or a number, got '{}'", text));
  if (!(*value >= 0) || !std::isfinite(*value))
    throw ArgumentError(fmt::format("--sigma-out: expected a finite number of at least 0, got {}", *value));
  return OutputGain::fixed(*value);
}

/// The option's number, or its word.
json gain_json(const std::string& text) {
  const auto value = whole_text_number(text);
  return value ? json(*value) : json(text);
}

}  // namespace

void PropagationModel::exclude(const std::string& option, const std::string& why) {
  if (command != nullptr && command->count(option) > 0)
    throw ArgumentError(fmt::format("{}: {}; leave it out", option, why));
  excluded.insert(option);
}

void PropagationModel::exclude_strengths(bool sets_A, bool sets_M, const std::string& why) {
  if (sets_A) exclude("--alpha-A", why);
  if (sets_M) exclude("--alpha-M", why);
  if ((sets_A || alpha_A) && (sets_M || alpha_M)) exclude("--alpha", why);
}

Parameters PropagationModel::parameters() const {
  Parameters result;
  result.tokens = tokens;
  result.sigma_A = sigma_A;
  result.alpha_A = alpha_A.value_or(alpha);
  result.alpha_M = alpha_M.value_or(alpha);
  result.sigma_w = sigma_w;
  result.sigma_out = gain_of(sigma_out);
  if (alpha_A && alpha_M && command != nullptr && command->count("--alpha") > 0)
    throw ArgumentError("--alpha: has no effect together with --alpha-A and --alpha-M; leave it out");
  if (result.alpha_A == 0 && result.alpha_M == 0)
    throw ArgumentError(
        "--alpha: expected --alpha-A or --alpha-M above 0, got 0 for both: then no block changes anything");
  if (skip && skip_A && skip_M)
    throw ArgumentError("--skip: has no effect together with --skip-A and --skip-M; leave it out");
  result.skip_A = skip_A ? skip_A : skip;
  result.skip_M = skip_M ? skip_M : skip;
  result.mlp_depth = mlp_depth;
  result.activation =
      naming_errors("--activation", [&] { return propagation::activation_named(activation); });
  return result;
}

propagation::Index whole_depth(double depth) {
  if (depth != std::round(depth) || !(depth >= 1))
    throw ArgumentError(fmt::format("--depth: expected a whole number of at least 1, got {}", depth));
  return checked_count(depth, 1e7, "--depth");
}

propagation::SampleOptions SampledNetworks::options(const PropagationModel& model,
                                                    std::stop_token stop) const {
  propagation::SampleOptions options;
  options.width = width;
  options.networks = networks;
  options.mask = model.mask();
  options.seed = seed;
  options.threads = threads;
  options.stop = std::move(stop);
  return options;
}

AttentionMask PropagationModel::mask() const { return causal ? AttentionMask::causal : AttentionMask::full; }

void add_model_options(CLI::App& command, PropagationModel& model) {
  model.command = &command;
  const auto option = [&](const char* name, auto& value, const std::string& description, const char* type) {
    return add_value(command, name, value, description, type)->group("Network");
  };
  const CLI::Validator strength = number_from_to(0, 1), gain = number_from_to(0, 1e6);
  option("--tokens", model.tokens, "Number of tokens n, at least 2 [256]", "N")
      ->check(whole_number<propagation::Index>(2, 1'000'000'000));
  option("--depth", model.depth, "Number of blocks L, above 0 [16]", "L")->check(positive_number());
  option("--alpha", model.alpha, "Strength of both branches, from 0 to 1 [0.5]", "A")->check(strength);
  option("--alpha-A", model.alpha_A, "Strength of the attention branch, from 0 to 1 [--alpha]", "A")
      ->check(strength);
  option("--alpha-M", model.alpha_M, "Strength of the MLP branch, from 0 to 1 [--alpha]", "A")
      ->check(strength);
  option("--skip", model.skip,
         "Factor of both skip connections, from 0 to 1000 (1: as usual transformers) [sqrt(1 - strength^2)]",
         "S")
      ->check(number_from_to(0, 1e3));
  option("--skip-A", model.skip_A, "That of the attention block alone, from 0 to 1000 [--skip]", "S")
      ->check(number_from_to(0, 1e3));
  option("--skip-M", model.skip_M, "That of the MLP block alone, from 0 to 1000 [--skip]", "S")
      ->check(number_from_to(0, 1e3));
  option("--sigma-w", model.sigma_w, "Gain of the hidden MLP matrices, at least 0 [1]", "S")->check(gain);
  option("--sigma-out", model.sigma_out,
         "Gain of the last MLP matrix: unit | shared | number of at least 0 [unit]", "S");
  option("--sigma-A", model.sigma_A, "Scale of the attention scores, at least 0 [1]", "S")->check(gain);
  option("--mlp-depth", model.mlp_depth, "Nonlinearities of the MLP, at least 1 [2]", "N")
      ->check(whole_number(1, 1'000'000));
  option("--activation", model.activation,
         fmt::format("{} [tanh]", fmt::join(propagation::activation_names(), ", ")), "NAME");
  command
      .add_flag("--causal", model.causal,
                "Tokens attend to themselves and earlier ones only; exponents of up to 10 million tokens")
      ->group("Network");
}

void check_start(const CLI::App& command) {
  if (command.count("--c0") > 0 && command.count("--q0") == 0)
    throw ArgumentError("--c0: needs --q0 as well, the squared norm / width of the tokens: give --q0 1");
}

void add_sampling_options(CLI::App& command, SampledNetworks& sampled, Index fewest, const char* networks) {
  constexpr Index widest = 1 << 16, most = 1 << 20;
  add_value(command, "--width", sampled.width, fmt::format("Width d, 1 to {} [{}]", widest, sampled.width),
            whole_number<Index>(1, widest), "D");
  add_value(command, "--networks", sampled.networks,
            fmt::format("{}, {} to {} [{}]", networks, fewest, most, sampled.networks),
            whole_number<Index>(fewest, most), "N");
  add_number(command, "--seed", sampled.seed, "Seed", seed_number(), "N");
  add_threads_option(command, sampled.threads);
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

void check_output(const PropagationOutput& output, const PropagationModel& model, CommandFiles others) {
  others.written.insert(others.written.begin(), {"--block", model.block});
  check_output(output, others);
  if (!model.block.empty() && model.block.extension() != ".json")
    throw ArgumentError(fmt::format("--block: expected FILE.json, got {}", model.block.string()));
}

ResultTable table_of(const std::string& command, const PropagationModel& model, const json& settings) {
  ResultTable table;
  table.summary["parameters"] = described(model.parameters());
  json configuration = table.summary["parameters"];
  configuration.update({{"activation", model.activation},
                        {"depth", model.depth},
                        {"causal", model.causal},
                        {"sigma_out", gain_json(model.sigma_out)}});
  configuration.update(settings);
  for (std::string option : model.excluded) {
    std::replace(option.begin(), option.end(), '-', '_');
    configuration.erase(option.substr(2));
  }
  table.origin = {"propagation " + command, std::move(configuration)};
  return table;
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

json described(const Parameters& parameters) {
  json result{
      {"tokens", parameters.tokens},      {"sigma_A", parameters.sigma_A},
      {"alpha_A", parameters.alpha_A},    {"alpha_M", parameters.alpha_M},
      {"sigma_w", parameters.sigma_w},    {"sigma_out", parameters.sigma_out.value(parameters.sigma_w)},
      {"mlp_depth", parameters.mlp_depth}};
  if (parameters.skip_A) result["skip_A"] = *parameters.skip_A;
  if (parameters.skip_M) result["skip_M"] = *parameters.skip_M;
  return result;
}

}  // namespace widelimit::cli
