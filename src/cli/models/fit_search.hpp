#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/program/interrupt.hpp"
#include "cli/tasks/gp_task.hpp"
#include "widelimit/gp/model.hpp"

namespace CLI {
class App;
}

namespace widelimit::cli {

/// What --search was asked for.
struct SearchChoice {
  std::vector<std::string> specs;  ///< Empty: no search.
  int trials = 50;
  std::filesystem::path table;  ///< Of the trials; empty: none is kept.
  std::filesystem::path plot;   ///< Empty: none is drawn.

  [[nodiscard]] bool is_asked() const { return !specs.empty(); }
};

/// Adds --search, --trials, --table and --plot.
void add_search_options(CLI::App& command, SearchChoice& search);

/// Throws CLI::ValidationError for --trials, --table and --plot without --search.
void check_search_usage(const CLI::App& command, const SearchChoice& search);

/// Throws CLI::ValidationError for a search among the numbers of a network that is chosen itself.
void require_named_network(const SearchChoice& search, const std::string& network);

/// `given`, with the numbers that were asked for chosen: the network whose best regulariser does best by the criterion
/// of `options`, which are those of a fit; nothing is learned of the inputs meanwhile. `given` as it is where no search
/// was asked for. Prints a line a trial. A network that cannot be computed is a trial without a score; the search goes
/// on. Throws NumericalError if none can.
template <typename Scalar>
[[nodiscard]] Network searched_network(const Network& given, const SearchChoice& choice,
                                       const GpTask<Scalar>& task, gp::ModelOptions options,
                                       const Interrupt& interrupt);

}  // namespace widelimit::cli
