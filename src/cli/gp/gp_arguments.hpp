#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/grams/store_options.hpp"
#include "cli/models/fit_search.hpp"
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
  FitChoice fit;
  SearchChoice search;
  StoreArguments store;
  std::filesystem::path reliability;
  OutputArguments output;

  /// Whether anything reads validation data.
  [[nodiscard]] bool reads_validation() const { return fit.options.refit || fit.chooses_by_validation(); }
};

/// Adds all options of `gp`. `arguments` must live until the arguments are parsed.
void add_gp_options(CLI::App& command, GpArguments& arguments);

/// Fills the request, and throws what CLI11 throws for options that do not fit each other.
void check_gp_usage(const CLI::App& command, GpArguments& arguments);

}  // namespace widelimit::cli
