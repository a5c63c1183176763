#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/named_files.hpp"
#include "cli/options/table_options.hpp"
#include "cli/output/result_table.hpp"
#include "widelimit/propagation/results.hpp"
#include "widelimit/propagation/transformer.hpp"

/// Options that the commands of `widelimit propagation` share.
namespace widelimit::cli {

/// What a command is told: the rows of its computation's table (widelimit/propagation/fields.hpp), and where the block
/// of its transformer goes.
struct PropagationOptions : TableOptions {
  std::filesystem::path block;  ///< A network file; empty: nowhere.

  /// An option for each row.
  void add_computation(CLI::App& command, std::string_view computation);
  /// --block, of commands whose results are those of one block.
  void add_block(CLI::App& command);

  /// exclude() of alpha_A and alpha_M (or skip_A and skip_M), as far as something else sets them, and of alpha where
  /// nothing of it is left. `both`: "alpha" or "skip".
  void exclude_both(const std::string& both, bool sets_A, bool sets_M, const std::string& why);

  /// As TableOptions::with().
  [[nodiscard]] PropagationOptions with(const nlohmann::json& values) const {
    return {TableOptions::with(values), block};
  }

  /// As TableOptions::read(); ArgumentError also for alpha or skip beside both of what they stand for.
  template <typename Read>
  auto read(const Read& read) const {
    check_shared();
    return TableOptions::read(read);
  }

 private:
  void check_shared() const;
};

/// Writes a block as a network file where --block asks for it.
void write_block(const PropagationOptions& options, const propagation::Transformer& transformer);

/// ArgumentError for --c0 without --q0: a cosine of tokens of no given norm.
void check_start(const TableOptions& options);

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
void check_output(const PropagationOutput& output, const PropagationOptions& options,
                  CommandFiles others = {});

/// The table of a command, with nothing in it yet but the network and the command's own settings as its
/// origin: the options that have an effect, by their names, so that the command can be repeated. "parameters" of the
/// summary: the network.
[[nodiscard]] ResultTable table_of(const std::string& command, const PropagationOptions& options,
                                   const propagation::Transformer& transformer,
                                   const nlohmann::json& settings = nlohmann::json::object());

/// Adds the columns of these names, in this order.
void append_columns(ResultTable& table, const propagation::NamedColumns& columns,
                    const std::vector<std::string>& names, const std::string& prefix = "");

/// Where equal tokens do not stay equal: says so of the angle exponent of this name, and notes it.
void note_angles(const propagation::BlockExponents& exponents, const std::string& name, ResultTable& table);

/// Writes the table as CSV, or everything as JSON, after note_missing(); numbers that don't exist become null. In CSV
/// the summary stands in comment lines "# NAME: JSON" above the table; without a table its numbers are the only row.
void write_table(const PropagationOutput& output, ResultTable table);

/// Says on standard error where the annealed average of attention, from tokens with the given largest gap
/// 1 - cosine on, is not what networks do, and the `propagation network` that does without it: with as many blocks, and
/// `start`, options that say where tokens start.
void warn_of_annealing(const PropagationOptions& options, const propagation::Transformer& transformer,
                       double largest_gap, propagation::Index depth, const std::string& start);
/// "--tokens 16 --q0 1 --c0 0"
[[nodiscard]] std::string start_options(const propagation::Transformer& transformer, double q0, double c0);
[[nodiscard]] double largest_gap(const std::vector<propagation::TokenState>& states);

}  // namespace widelimit::cli
