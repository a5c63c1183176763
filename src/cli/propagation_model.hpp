#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/origin.hpp"
#include "widelimit/numerics/statistics.hpp"
#include "widelimit/propagation/phase_diagram.hpp"

namespace CLI {
class App;
}

/// Options that the commands of `widelimit propagation` share.
namespace widelimit::cli {

/// The transformer as options give it.
struct PropagationModel {
  propagation::Index tokens = 256;
  double sigma_A = 1, sigma_w = 1;
  double alpha = 0.5;
  std::optional<double> alpha_A, alpha_M;  ///< None: alpha.
  std::string sigma_out = "unit";
  std::string activation = "tanh";
  int mlp_depth = 2;
  double depth = 16;
  bool causal = false;

  /// ArgumentError for an unknown activation or gain; ranges are checked where the parameters are used.
  [[nodiscard]] propagation::Parameters parameters() const;
  [[nodiscard]] AttentionMask mask() const;
};

/// The number of blocks where it must be whole. ArgumentError unless it is, and from 1 to 1e7.
[[nodiscard]] propagation::Index whole_depth(double depth);

void add_model_options(CLI::App& command, PropagationModel& model);

/// Where results go.
struct PropagationOutput {
  std::filesystem::path out;   ///< FILE.json or FILE.csv; empty: JSON on standard output.
  std::filesystem::path plot;  ///< FILE.png, or empty.
};

void add_output_options(CLI::App& command, PropagationOutput& output, const std::string& picture);

/// A table and what surrounds it.
struct PropagationTable {
  Origin origin;
  nlohmann::json summary = nlohmann::json::object();
  std::vector<std::string> columns;
  std::vector<std::vector<double>> rows;
};

/// DataError before the work if a file cannot be written later; ArgumentError if its name ends in nothing
/// known.
void check_output(const PropagationOutput& output);

/// The table of a command, with nothing in it yet but the network and the command's own settings as its
/// origin. "parameters" of the summary: the network.
[[nodiscard]] PropagationTable table_of(const std::string& command, const PropagationModel& model,
                                        const nlohmann::json& settings = nlohmann::json::object());

/// Writes the table as CSV, or everything as JSON; numbers that don't exist become null.
void write_table(const PropagationOutput& output, const PropagationTable& table);

/// Says on standard error where the annealed average of attention, from tokens with the given largest gap
/// 1 - cosine on, is not what networks do, and what else gives the theory.
void warn_of_annealing(const propagation::Parameters& parameters, double largest_gap);
[[nodiscard]] double largest_gap(const std::vector<propagation::TokenState>& states);

/// {"value", "standard_error"}.
[[nodiscard]] nlohmann::json estimate_json(const numerics::Estimate& estimate);

/// The parameters under the names of the options.
[[nodiscard]] nlohmann::json described(const propagation::Parameters& parameters);

}  // namespace widelimit::cli
