#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/models/model_predictions.hpp"
#include "cli/quality/test_quality.hpp"
#include "widelimit/gp/model.hpp"

namespace widelimit::cli {

/// How good predictions are that a model made.
[[nodiscard]] QualityLine scores_of(const std::string& name, const gp::ModelPrediction& prediction,
                                    const Matrix<double>& targets);

/// What the model would predict with the amplitude 1: the same means, other variances and probabilities, and a normal
/// law.
[[nodiscard]] gp::ModelPrediction with_amplitude_one(const gp::Model& model,
                                                     const gp::ModelPrediction& prediction);

/// Of predictions in closed form with the amplitude of the model, under which they are normal; nothing for networks
/// trained for a finite time.
[[nodiscard]] std::optional<QualityLine> leave_one_out_scores(const gp::Model& model,
                                                              const Matrix<double>& targets);

/// A line for each set with known targets and each time, and one for what its variances would be without the amplitude,
/// unless logarithms were fitted;
/// then the baselines of the test data.
[[nodiscard]] std::vector<QualityLine> model_scores(const gp::Model& model,
                                                    const std::vector<Predicted>& predicted,
                                                    const TestQuality& baselines);

/// Those of the model as it is: the others have a comma in their names.
[[nodiscard]] std::vector<QualityLine> of_the_model(const std::vector<QualityLine>& scores);
/// Those of them that are of test data, "the model" or "the model at time 1" by name.
[[nodiscard]] std::vector<QualityLine> of_the_test(const std::vector<QualityLine>& scores);

/// With the name of the predictions and the number of inputs.
[[nodiscard]] nlohmann::ordered_json score_json(const QualityLine& line,
                                                const std::vector<std::string>& class_names);

/// What a model is, a line or two.
[[nodiscard]] std::string model_text(const gp::Model& model);

}  // namespace widelimit::cli
