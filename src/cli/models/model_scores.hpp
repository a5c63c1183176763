#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/tasks/gp_task.hpp"
#include "widelimit/gp/inference.hpp"
#include "widelimit/gp/model.hpp"

namespace widelimit::cli {

/// How good predictions are that a model made.
struct ModelScores {
  std::string of;  ///< E.g. "test".
  Index inputs;
  gp::PredictionScores scores;
};

[[nodiscard]] ModelScores scores_of(const std::string& name, const gp::ModelPrediction& prediction,
                                    const Matrix<double>& targets);

/// What the model would predict with the amplitude 1: the same means, other variances and probabilities.
[[nodiscard]] gp::ModelPrediction with_amplitude_one(const gp::Model& model,
                                                     const gp::ModelPrediction& prediction);

/// Of predictions in closed form; nothing for networks trained for a finite time.
[[nodiscard]] std::optional<ModelScores> leave_one_out_scores(const gp::Model& model,
                                                              const Matrix<double>& targets);

/// A line for each.
[[nodiscard]] std::string scores_table(const std::vector<ModelScores>& scores);

[[nodiscard]] nlohmann::ordered_json to_json(const ModelScores& scores);

/// What a model is, a line or two.
[[nodiscard]] std::string model_text(const gp::Model& model);

}  // namespace widelimit::cli
