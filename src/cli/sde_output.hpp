#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "widelimit/covariance_sde/ensemble.hpp"
#include "widelimit/network/shape.hpp"

/// Files and pictures of `widelimit sde`.
namespace widelimit::cli {

/// One sampled quantity of an ensemble.
struct Observable {
  std::string name;
  std::vector<double> values;
};

/// V of every pair, rho of every pair of two tokens and the largest eigenvalue, of up to four tokens each.
[[nodiscard]] std::vector<Observable> observables(const covariance_sde::CovarianceEnsemble& ensemble,
                                                  Index time);

/// quantiles.csv (every time), samples.csv (the last time) and summary.json (counts) in the folder.
void write_ensemble(const std::filesystem::path& folder, const covariance_sde::CovarianceEnsemble& ensemble);

/// Number of paths, of each kind of end and of exits from the cone.
[[nodiscard]] nlohmann::json ensemble_counts(const covariance_sde::CovarianceEnsemble& ensemble);

void write_json(const std::filesystem::path& file, const nlohmann::json& value);

/// A named sample of each curve; densities over their central 99 percent.
struct DensityPanel {
  std::string quantity;
  std::vector<Observable> curves;
};
void draw_densities(const std::filesystem::path& file, const std::vector<DensityPanel>& panels);

/// Lines through points: x, and one column of y a curve.
struct LinePlot {
  std::string x_label, y_label;
  std::vector<double> x;
  std::vector<Observable> curves;
};
void draw_lines(const std::filesystem::path& file, const LinePlot& plot);

}  // namespace widelimit::cli
