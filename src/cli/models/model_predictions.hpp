#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/gp/gp_files.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/report/page.hpp"
#include "widelimit/gp/model.hpp"

namespace widelimit::cli {

/// The times at which a model predicts: its own, and more.
[[nodiscard]] std::vector<double> prediction_times(const gp::Model& model, const std::vector<double>& more);

/// " at time 5" where it is not the model's own.
[[nodiscard]] std::string at_time_text(const gp::Model& model, double time);

/// Predictions for a set, at each time of a model.
struct Predicted {
  std::string name;
  const std::optional<Matrix<double>>& targets;
  std::vector<gp::ModelPrediction> found;
  double seconds;
};

/// What a model predicts at these times, the first one its own, as gp has it: "nngp", or "ntk", "ntk_time0", ...
/// `truth`: the targets, if they are known.
[[nodiscard]] GpResult kernel_predictions(const gp::Model& model,
                                          const std::vector<gp::ModelPrediction>& found,
                                          const std::vector<double>& times,
                                          const std::optional<Matrix<double>>& truth, double seconds);

/// What files say of a model; what is known of the inputs is to be added.
[[nodiscard]] PredictionFacts facts_of(const gp::Model& model, std::string data,
                                       const std::vector<std::string>& names);

/// All files that write_model_predictions() may write for so many predictions.
[[nodiscard]] std::vector<std::string> prediction_file_names(std::size_t predictions);

/// mean.npy, standard_deviation.npy and class_probabilities.npy of the model's own time, the same with the name of the
/// prediction of others, predictions.csv, results.json and, unless `reports` is false, report.html. Returns
/// results.json.
std::string write_model_predictions(OutputFolder& folder, const GpResult& result, const PredictionFacts& info,
                                    ReportHead head, const ReportTest& test, bool reports);

}  // namespace widelimit::cli
