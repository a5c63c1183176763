#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/data_arguments.hpp"
#include "cli/kernel_options.hpp"
#include "cli/output_folder.hpp"

namespace widelimit::cli {

struct InferenceArguments {
  std::optional<double> regulariser;
  std::optional<double> amplitude;
  std::vector<double> times;
  bool flip = false;
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
  OutputArguments output;
};

/// Adds all options of `gp`. `arguments` must live until the arguments are parsed.
void add_gp_options(CLI::App& command, GpArguments& arguments);

/// Throws what CLI11 throws for options that do not fit each other.
void check_gp_usage(const CLI::App& command, const GpArguments& arguments);

}  // namespace widelimit::cli
