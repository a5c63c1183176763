#pragma once

#include <filesystem>
#include <string>

#include "cli/gp_run.hpp"
#include "cli/kernel_options.hpp"

namespace widelimit::cli {

/// What results.json says about a run besides its numbers.
struct GpRunInfo {
  const Network& network;
  std::string data;
  TargetKind kind;
  Precision precision;
};

/// Writes into an existing folder: mean_NAME.npy [n_test, M] and variance_NAME.npy [n_test] of every
/// prediction, predictions.csv and results.json.
void write_gp_files(const std::filesystem::path& folder, const GpRunInfo& info, const GpResult& result,
                    const std::optional<Matrix<double>>& test_targets);

/// Draws confusion_NAME.png of every prediction, for classes with known targets; nothing for others. Throws
/// as run_gnuplot().
void draw_gp_pictures(const std::filesystem::path& folder, const GpRunInfo& info, const GpResult& result,
                      const std::optional<Matrix<double>>& test_targets);

}  // namespace widelimit::cli
