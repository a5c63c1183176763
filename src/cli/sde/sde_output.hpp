#pragma once

#include <limits>
#include <string>
#include <vector>

#include "widelimit/covariance_sde/ensemble.hpp"
#include "widelimit/network/shape.hpp"

/// What `widelimit sde` takes from ensembles, and its pictures: gnuplot scripts that write a PNG to standard output.
namespace widelimit::cli {

/// One sampled quantity of an ensemble.
struct Observable {
  std::string name;
  std::vector<double> values;
};

/// V of every pair, rho and |rho| of every pair of two tokens and the largest eigenvalue, of up to four tokens each,
/// and of three tokens and more the means of rho, |rho| and |V| over all pairs; for the given paths.
[[nodiscard]] std::vector<Observable> observables(const covariance_sde::CovarianceEnsemble& ensemble,
                                                  Index time, const std::vector<Index>& paths);

/// A sample whose density is drawn; curves of one colour belong together, dashed ones are of the theory.
struct DensityCurve {
  std::string name;
  std::vector<double> values;
  int colour = 1;
  bool dashed = false;
};

/// Densities of one quantity, from where all of them rise to where they have fallen, but within the quantity's own
/// range and no further than four interquartile ranges from the quartiles: heavy tails would leave a spike of the rest.
struct DensityPanel {
  std::string quantity;  ///< In words.
  std::vector<DensityCurve> curves;
  double lowest = -std::numeric_limits<double>::infinity(), highest = std::numeric_limits<double>::infinity();
};
[[nodiscard]] std::string densities_script(const std::string& title, const std::vector<DensityPanel>& panels);

/// The panels of V00, V01 and rho01, as far as there are as many tokens, without curves.
[[nodiscard]] std::vector<DensityPanel> covariance_panels(Index tokens);
/// Adds a curve of each panel's quantity.
void add_covariance_curves(std::vector<DensityPanel>& panels,
                           const covariance_sde::CovarianceEnsemble& ensemble, Index time,
                           const std::vector<Index>& paths, const DensityCurve& style);

/// Samples of a quantity at each x, with the ends of their error bars.
struct PointBars {
  std::string name;
  std::vector<double> values = {}, lower = {}, upper = {};

  void add(double value, double low, double high) {
    values.push_back(value);
    lower.push_back(low);
    upper.push_back(high);
  }
  void add_with_error(double value, double error) { add(value, value - error, value + error); }
};

/// Lines through points: x, and one column of y a curve. Samples are points with bars, each in the colour of the curve
/// with its number, which is its theory; joined where there are no curves.
struct LinePlot {
  std::string title, x_label, y_label;
  std::vector<double> x;
  std::vector<Observable> curves = {};
  std::vector<PointBars> samples = {};
};
[[nodiscard]] std::string lines_script(const LinePlot& plot);

}  // namespace widelimit::cli
