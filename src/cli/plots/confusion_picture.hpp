#pragma once

#include <string>
#include <vector>

#include "widelimit/gp/metrics.hpp"

namespace widelimit::cli {

/// A gnuplot script that draws a confusion matrix as a PNG: true classes downwards, predicted ones to the
/// right. Up to twenty classes are named, one each of `class_names`; more are numbered.
[[nodiscard]] std::string confusion_script(const gp::ConfusionMatrix& matrix, const std::string& title,
                                           const std::vector<std::string>& class_names);

}  // namespace widelimit::cli
