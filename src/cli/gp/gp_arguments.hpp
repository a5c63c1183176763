#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/grams/store_options.hpp"
#include "cli/options/kernel_options.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/tasks/data_arguments.hpp"
#include "widelimit/gp/conjugate_gradients.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/gp/solver_choice.hpp"

namespace CLI {
class App;
}

namespace widelimit::cli {

struct InferenceArguments {
  std::optional<double> regulariser;
  std::optional<double> amplitude;
  std::optional<gp::Criterion> criterion;
  std::vector<double> candidates;  ///< Empty: the library's grid.
  std::vector<double> times;
  bool flip = false;
  bool targets_as_they_are = false;
  std::filesystem::path gram;
  std::optional<gp::Solver> solver;
  double residual = gp::ConjugateGradientOptions{}.relative_residual;

  /// Whether the regulariser is chosen on validation data.
  [[nodiscard]] bool takes_validation() const {
    const bool factorizes = !solver || *solver == gp::Solver::cholesky;
    return !regulariser && (criterion ? gp::needs_validation(*criterion) : !factorizes);
  }
};

struct OutputArguments {
  std::filesystem::path folder;
  OtherFiles other_files = OtherFiles::refused;
  bool no_pictures = false;
  bool no_report = false;
};

/// What the user of `gp` wrote.
struct GpArguments {
  std::vector<std::string> networks;
  std::optional<Index> depth;
  DataArguments data;
  KernelOptions kernel;
  InferenceArguments inference;
  StoreArguments store;
  OutputArguments output;
};

/// Adds all options of `gp`. `arguments` must live until the arguments are parsed.
void add_gp_options(CLI::App& command, GpArguments& arguments);

/// Throws what CLI11 throws for options that do not fit each other.
void check_gp_usage(const CLI::App& command, const GpArguments& arguments);

}  // namespace widelimit::cli
