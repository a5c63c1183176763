#pragma once

#include <string>

#include "cli/report/page.hpp"

namespace widelimit::cli {

/// The ten wrong predictions of highest probability, with their inputs; for numbers a table of the ten that miss by the
/// most standard deviations.
[[nodiscard]] std::string mistakes_html(const PredictionFacts& info, const GpPrediction& prediction,
                                        const Matrix<double>& targets, const GpFaces& faces);

/// A test input of every class, for up to 20 classes of inputs that have a face; else "".
[[nodiscard]] std::string examples_html(const PredictionFacts& info, const ReportTest& test);

}  // namespace widelimit::cli
