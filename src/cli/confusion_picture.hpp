#pragma once

#include <string>

#include "widelimit/gp/metrics.hpp"

namespace widelimit::cli {

/// A gnuplot script that draws a confusion matrix as a PNG: true classes downwards, predicted ones to the
/// right.
[[nodiscard]] std::string confusion_script(const gp::ConfusionMatrix& matrix, const std::string& title);

}  // namespace widelimit::cli
