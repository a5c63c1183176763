#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/grams/store_options.hpp"
#include "cli/models/fit_search.hpp"
#include "cli/models/learning.hpp"
#include "cli/options/inference_options.hpp"
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
  gp::InferenceOptions options;  ///< Kernels, threads and what `choice` has are given apart.
  RegulariserChoice choice;
  bool flip = false;
  std::filesystem::path gram;
  std::optional<gp::Solver> solver;
  bool noise_is_known = false;  ///< For each row: a column of the table.

  /// Whether the regulariser is chosen on validation data.
  [[nodiscard]] bool takes_validation() const {
    const bool factorizes = !solver || *solver != gp::Solver::conjugate_gradients;
    return !noise_is_known && !choice.regulariser &&
           (choice.criterion ? gp::needs_validation(*choice.criterion) : !factorizes);
  }
  /// Whether anything reads validation data.
  [[nodiscard]] bool reads_validation() const { return options.refit || takes_validation(); }
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
  LearningChoice learning;
  SearchChoice search;
  StoreArguments store;
  std::filesystem::path reliability;
  OutputArguments output;
};

/// Adds --store, a folder of stores, and the options of its tiles.
void add_stores_options(CLI::App& command, StoreArguments& store);

/// Throws CLI::ValidationError where stores cannot keep the kernels.
void check_stores_usage(const StoreArguments& store, const std::filesystem::path& gram, bool flip,
                        const LearningChoice& learning);

/// Adds all options of `gp`. `arguments` must live until the arguments are parsed.
void add_gp_options(CLI::App& command, GpArguments& arguments);

/// Throws what CLI11 throws for options that do not fit each other.
void check_gp_usage(const CLI::App& command, const GpArguments& arguments);

}  // namespace widelimit::cli
