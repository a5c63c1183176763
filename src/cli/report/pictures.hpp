#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/gp/gp_prior.hpp"
#include "cli/models/learning.hpp"
#include "cli/output/share_interval.hpp"
#include "widelimit/gp/calibration.hpp"
#include "widelimit/gp/metrics.hpp"

/// The figures of a report, each an inline SVG.
namespace widelimit::cli {

/// One accuracy with its 95 % interval.
struct AccuracyBar {
  std::string label;
  double accuracy;
  ShareInterval interval;
  std::string_view colour;
};

[[nodiscard]] std::string accuracy_picture(const std::vector<AccuracyBar>& bars);

/// How much each channel matters, the largest first: scales relative to the largest.
[[nodiscard]] std::string relevance_picture(const std::vector<ChannelScale>& scales);

/// True classes downwards, predicted ones to the right.
[[nodiscard]] std::string confusion_picture(const gp::ConfusionMatrix& matrix,
                                            const std::vector<std::string>& class_names);

/// A reliability diagram: the share of right predictions against confidence; dots grow with their numbers.
[[nodiscard]] std::string reliability_picture(const gp::Calibration& calibration, std::string_view colour);

/// How every regulariser of the grid did by the criterion, for each kernel that had one chosen; "" if none had.
[[nodiscard]] std::string choice_picture(const GpResult& result);

/// Samples of the prior, with twice its standard deviation.
[[nodiscard]] std::string prior_picture(const GpPrior& prior);

/// For every p the share of numbers that lie in the interval around their prediction that should hold a share p of
/// them.
[[nodiscard]] std::string coverage_picture(const GpPrediction& prediction, const Matrix<double>& targets,
                                           std::string_view colour);

/// Predicted numbers against true ones.
[[nodiscard]] std::string scatter_picture(const Matrix<double>& mean, const Matrix<double>& targets,
                                          std::string_view colour);

}  // namespace widelimit::cli
