#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/gp/gp_run.hpp"
#include "cli/options/kernel_options.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/quality/test_quality.hpp"
#include "widelimit/gp/automatic.hpp"
#include "widelimit/gp/learned_inputs.hpp"

namespace widelimit::cli {

/// What files say about a run besides its numbers.
struct PredictionFacts {
  const Network& network;
  std::string data;
  TargetKind kind;
  Precision precision;
  const std::vector<std::string>& names;        ///< Of the test inputs.
  const std::vector<std::string>& class_names;  ///< Empty for numbers.
  const gp::Preprocessing& preprocessing;
  /// What was learned about the inputs, or null.
  const gp::LearnedInputs* learned = nullptr;
  /// What the network was chosen from, or null.
  const gp::AutomaticNetwork* automatic = nullptr;
  const std::vector<std::string>* channels = nullptr;  ///< The names of their channels.
  const std::vector<std::string>* targets = nullptr;   ///< The names of the outputs, if they have any.
  const TestQuality* quality = nullptr;                ///< Null where test targets are not known.
  nlohmann::ordered_json missing = {};                 ///< Of cells of tables, as the task has it; else null.
  nlohmann::ordered_json unknown = {};                 ///< Of categories, as the task has it; else null.
  nlohmann::ordered_json columns = {};                 ///< Of tables, how they were read; else null.
};

/// results.json: what every prediction is made with, and its scores.
[[nodiscard]] std::string results_json(const PredictionFacts& info, const GpResult& result);

/// All files that the functions below may write for one network.
[[nodiscard]] std::vector<std::string> gp_file_names(const gp::InferenceOptions& options);

/// Writes mean_NAME.npy [n_test, M] and variance_NAME.npy [n_test, M] of every prediction, predictions.csv and
/// results.json. `place` stands before their names: a folder in the output folder, with "/", or nothing.
void write_gp_files(OutputFolder& folder, const std::string& place, const PredictionFacts& info,
                    const GpResult& result, const std::optional<Matrix<double>>& test_targets);

/// Draws confusion_NAME.png of every prediction, for classes with known targets; nothing for others.
void draw_gp_pictures(OutputFolder& folder, const std::string& place, Gnuplot& gnuplot,
                      const PredictionFacts& info, const GpResult& result,
                      const std::optional<Matrix<double>>& test_targets);

}  // namespace widelimit::cli
