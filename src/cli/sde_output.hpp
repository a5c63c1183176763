#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/origin.hpp"
#include "cli/output_folder.hpp"
#include "widelimit/covariance_sde/ensemble.hpp"
#include "widelimit/network/shape.hpp"

/// Files and pictures of `widelimit sde`; pictures are gnuplot scripts that write a PNG to standard output.
namespace widelimit::cli {

/// One sampled quantity of an ensemble.
struct Observable {
  std::string name;
  std::vector<double> values;
};

/// V of every pair, rho of every pair of two tokens and the largest eigenvalue, of up to four tokens each,
/// for the given paths.
[[nodiscard]] std::vector<Observable> observables(const covariance_sde::CovarianceEnsemble& ensemble,
                                                  Index time, const std::vector<Index>& paths);

/// Which times samples are written of.
enum class SampleTimes { last, all };

/// Files that write_ensemble() writes.
[[nodiscard]] std::vector<std::string> ensemble_file_names(SampleTimes times);

/// quantiles.csv (every time; apart for the paths that run and those that have stopped), samples.csv (the
/// last time), summary.json (counts), and for all times trajectories.csv: path by path, a row a time.
void write_ensemble(OutputFolder& folder, const covariance_sde::CovarianceEnsemble& ensemble,
                    SampleTimes times, const Origin& origin);

/// Number of paths, of each kind of end and of exits from the cone.
[[nodiscard]] nlohmann::json ensemble_counts(const covariance_sde::CovarianceEnsemble& ensemble);

/// A named sample of each curve; densities over their central 99 percent, and no further than three
/// interquartile ranges from the quartiles.
struct DensityPanel {
  std::string quantity;
  std::vector<Observable> curves;
};
[[nodiscard]] std::string densities_script(const std::vector<DensityPanel>& panels);

/// Samples of a quantity at each x, with the ends of their error bars.
struct PointBars {
  std::string name;
  std::vector<double> values, lower, upper;
};

/// Lines through points: x, and one column of y a curve. Samples are points with bars, each in the colour of the curve
/// with its number, which is its theory; joined where there are no curves.
struct LinePlot {
  std::string x_label, y_label;
  std::vector<double> x;
  std::vector<Observable> curves;
  std::vector<PointBars> samples = {};
};
[[nodiscard]] std::string lines_script(const LinePlot& plot);

}  // namespace widelimit::cli
