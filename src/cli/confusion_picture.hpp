#pragma once

#include <filesystem>
#include <string>

#include "widelimit/gp/metrics.hpp"

namespace widelimit::cli {

/// Draws a confusion matrix as a PNG through gnuplot: true classes downwards, predicted ones to the right.
/// Throws Error if gnuplot is not there or fails.
void draw_confusion_matrix(const std::filesystem::path& file, const gp::ConfusionMatrix& matrix,
                           const std::string& title);

}  // namespace widelimit::cli
