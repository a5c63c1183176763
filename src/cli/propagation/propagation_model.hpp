#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "cli/options/named_files.hpp"
#include "cli/output/result_table.hpp"
#include "widelimit/numerics/statistics.hpp"
#include "widelimit/propagation/estimators.hpp"
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
  std::optional<double> alpha_A, alpha_M;      ///< None: alpha.
  std::optional<double> skip, skip_A, skip_M;  ///< None: skip, and without it sqrt(1 - strength^2).
  std::string sigma_out = "unit";
  std::string activation = "tanh";
  int mlp_depth = 2;
  double depth = 16;
  bool causal = false;
  std::filesystem::path block;          ///< Where the block goes as a network file; empty: nowhere.
  const CLI::App* command = nullptr;    ///< Whose options these are.
  std::set<std::string> excluded = {};  ///< Options without effect, by name.

  /// An option that has no effect in what is asked for: ArgumentError "OPTION: WHY; leave it out" if it was given, and
  /// origins leave it out.
  void exclude(const std::string& option, const std::string& why);
  /// The same of --alpha-A and --alpha-M, as far as something else sets
  /// them, and of --alpha where nothing of it is left.
  void exclude_strengths(bool sets_A, bool sets_M, const std::string& why);

  /// ArgumentError for an unknown activation or gain; ranges are checked where the parameters are used.
  [[nodiscard]] propagation::Parameters parameters() const;
  [[nodiscard]] AttentionMask mask() const;
};

/// The number of blocks where it must be whole. ArgumentError unless it is, and from 1 to 1e7.
[[nodiscard]] propagation::Index whole_depth(double depth);

void add_model_options(CLI::App& command, PropagationModel& model);
/// --block, of commands whose results are those of one block.
void add_block_option(CLI::App& command, PropagationModel& model);
/// Writes the transformer of the parameters as a network file, its attention not averaged, where --block asks for it.
void write_block(const PropagationModel& model, const propagation::Parameters& parameters);

/// The networks that a command samples.
struct SampledNetworks {
  propagation::Index width = 64;
  propagation::Index networks = 0;
  std::uint64_t seed = 0;
  int threads = 0;

  [[nodiscard]] propagation::SampleOptions options(const PropagationModel& model, std::stop_token stop) const;
};

/// --width, --networks with at least `fewest` of them, --seed and --threads; `networks` is what the help begins with.
void add_sampling_options(CLI::App& command, SampledNetworks& sampled, propagation::Index fewest,
                          const char* networks);

/// Where results go.
struct PropagationOutput {
  std::filesystem::path out;   ///< FILE.json or FILE.csv; empty: JSON on standard output.
  std::filesystem::path plot;  ///< FILE.png, .svg or .pdf, or empty.
};

void add_output_options(CLI::App& command, PropagationOutput& output, const std::string& picture);

/// As check_output_files(); `others`: what the command reads and writes besides. ArgumentError also if the table's name
/// ends in nothing known.
void check_output(const PropagationOutput& output, const CommandFiles& others = {});

/// The same beside --block, which must be a FILE.json.
void check_output(const PropagationOutput& output, const PropagationModel& model, CommandFiles others = {});

/// The table of a command, with nothing in it yet but the network and the command's own settings as its
/// origin: the options that have an effect, by their names, so that the command can be repeated. "parameters" of the
/// summary: the network.
[[nodiscard]] ResultTable table_of(const std::string& command, const PropagationModel& model,
                                   const nlohmann::json& settings = nlohmann::json::object());

/// Writes the table as CSV, or everything as JSON, after note_missing(); numbers that don't exist become null. In CSV
/// the summary stands in comment lines "# NAME: JSON" above the table; without a table its numbers are the only row.
void write_table(const PropagationOutput& output, ResultTable table);

/// Says on standard error where the annealed average of attention, from tokens with the given largest gap
/// 1 - cosine on, is not what networks do, and the `propagation network` that does without it: with as many blocks, and
/// `start`, options that say where tokens start.
void warn_of_annealing(const PropagationModel& model, double largest_gap, propagation::Index depth,
                       const std::string& start);
/// ArgumentError for --c0 without --q0: a cosine of tokens of no given norm.
void check_start(const CLI::App& command);
/// "--tokens 16 --q0 1 --c0 0"
[[nodiscard]] std::string start_options(const PropagationModel& model, double q0, double c0);
[[nodiscard]] double largest_gap(const std::vector<propagation::TokenState>& states);

/// The parameters under the names of the options.
[[nodiscard]] nlohmann::json described(const propagation::Parameters& parameters);

}  // namespace widelimit::cli
