#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/models/search_spec.hpp"
#include "cli/output/result_table.hpp"
#include "cli/program/interrupt.hpp"
#include "widelimit/gp/model.hpp"

namespace CLI {
class App;
}

namespace widelimit::cli {

/// What `fit --search` was asked for.
struct SearchChoice {
  std::vector<std::string> specs;  ///< Empty: no search.
  int trials = 50;
  std::filesystem::path table;  ///< Of the trials; empty: none is kept.
  std::filesystem::path plot;   ///< Empty: none is drawn.
};

/// Adds --search, --trials, --table and --plot.
void add_search_options(CLI::App& command, SearchChoice& search);

/// The network whose best regulariser does best by `criterion`. Prints a line a trial. A network that cannot be
/// computed is a trial without a score; the search goes on. Throws NumericalError if none can.
template <typename Scalar>
[[nodiscard]] Network searched_network(const SearchSpace& space, const SearchChoice& choice,
                                       const gp::LabelledInputs<Scalar>& train,
                                       const std::optional<gp::LabelledInputs<Scalar>>& validation,
                                       const gp::ModelOptions& options, gp::Criterion criterion,
                                       const Origin& origin, const Interrupt& interrupt);

}  // namespace widelimit::cli
