#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "covariance_sde/experiments/points.hpp"
#include "widelimit/covariance_sde/configuration.hpp"
#include "widelimit/covariance_sde/ensemble.hpp"
#include "widelimit/fields/config_reader.hpp"
#include "widelimit/results/experiment.hpp"

/// What the experiments share: setups of points of lists, samples, and what they have to say.
namespace widelimit::covariance_sde {

using results::Axis;
using results::Control;
using results::Draw;
using results::Legend;
using results::Panel;
using results::Picture;
using results::Results;
using results::Series;
using results::Table;

/// One experiment: its configuration, and results that begin.
struct Run {
  const nlohmann::json& config;
  const ConfigFields& fields;  ///< Of a point's configuration, too.
  const Control& control;
  Results results = {};

  Run(ConfigReader& whole, const Control& with)
      : config(whole.config()), fields(whole.fields()), control(with) {}

  [[nodiscard]] ConfigReader reader(const nlohmann::json& point) const { return {point, fields}; }
  /// What read_fields(fields) makes of the configuration, or of one point of its lists.
  template <typename Read>
  [[nodiscard]] auto read(const nlohmann::json& point, const Read& read_fields) const {
    ConfigReader reading = reader(point);
    auto setup = read_fields(reading);
    reading.finish(unused_field);
    return setup;
  }
  /// The same of a setup of samples, which take a seed, threads and a stop.
  template <typename Read>
  [[nodiscard]] auto read_setup(const nlohmann::json& point, const Read& read_fields) {
    auto setup = read(point, read_fields);
    results.origin.seed = setup.options.seed;
    if constexpr (requires { setup.why_explicit; })
      if (!setup.why_explicit.empty()) results.origin.configuration["sampling"] = "explicit_weights";
    return setup;
  }
  void say(const std::string& text) const {
    if (control.say) control.say(text);
  }
  void warn(const std::string& text) const {
    if (control.warn) control.warn(text);
  }
  /// The same after the name of the configuration's file.
  void warn_in_config(const std::string& text) const {
    warn(control.config_name.empty() ? text : control.config_name + ": " + text);
  }
};

/// simulate() or sample_networks() of a setup, whose part is called "paths" or "networks".
[[nodiscard]] CovarianceEnsemble sampled(SdeSetup setup, const Control& control);
/// Says that networks are drawn with their weights although nobody asked for them, once for all points of a list.
[[nodiscard]] CovarianceEnsemble sampled(NetworkSetup setup, const Control& control);

[[nodiscard]] Index last_time(const CovarianceEnsemble& ensemble);
/// Number of paths, of each kind of end and of exits from the cone.
[[nodiscard]] nlohmann::json ensemble_counts(const CovarianceEnsemble& ensemble);
[[nodiscard]] const char* end_name(PathEnd end);
/// {"V0": [m, m]}.
[[nodiscard]] nlohmann::ordered_json shape_of(const Matrix<double>& v0);

/// Says which share of paths no quantile at the horizon speaks of, and why.
void warn_of_stopped(const Run& run, const std::string& what, const CovarianceEnsemble& ensemble);
/// NumericalError of `command` that says what became of all paths, unless one ran to the horizon.
void require_running(const std::string& command, const std::string& what, const CovarianceEnsemble& ensemble);

/// A picture once it is wanted; of what is drawn, as `draw` has it.
template <typename DrawPicture>
std::function<std::optional<Picture>()> picture(DrawPicture draw) {
  return
      [draw = std::make_shared<DrawPicture>(std::move(draw))] { return std::optional<Picture>((*draw)()); };
}

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

/// A quantity at each x, or one that was sampled.
struct Observable {
  std::string name;
  std::vector<double> values;
};

/// Lines through points: x, and one column of y a curve. Samples are points with bars, each in the colour of the curve
/// with its number, which is its theory; joined where there are no curves.
struct LinePlot {
  std::string title, x_label, y_label;
  std::vector<double> x = {};
  std::vector<Observable> curves = {};
  std::vector<PointBars> samples = {};
};
[[nodiscard]] Picture lines_picture(const LinePlot& plot);

/// A sample whose density is drawn; curves of one colour belong together, dashed ones are of the theory.
struct DensityCurve {
  std::string name;
  std::vector<double> values = {};
  int colour = 1;
  bool dashed = false;
};
/// Densities of one quantity, from where all of them rise to where they have fallen, but within the quantity's own
/// range and no further than four interquartile ranges from the quartiles: heavy tails would leave a spike of the rest.
struct DensityPanel {
  std::string quantity;  ///< In words.
  std::vector<DensityCurve> curves = {};
  double lowest = -HUGE_VAL, highest = HUGE_VAL;
};
[[nodiscard]] Picture densities_picture(const std::string& title, const std::vector<DensityPanel>& panels);

// The experiments.
[[nodiscard]] Results simulate_experiment(ConfigReader& fields, const Control& control);
[[nodiscard]] Results network_experiment(ConfigReader& fields, const Control& control);
[[nodiscard]] Results compare_experiment(ConfigReader& fields, const Control& control);
[[nodiscard]] Results stopping_experiment(ConfigReader& fields, const Control& control);
[[nodiscard]] Results output_experiment(ConfigReader& fields, const Control& control);
[[nodiscard]] Results entropy_experiment(ConfigReader& fields, const Control& control);
[[nodiscard]] Results explosion_experiment(ConfigReader& fields, const Control& control);
[[nodiscard]] Results law_experiment(ConfigReader& fields, const Control& control);
[[nodiscard]] Results flow_experiment(ConfigReader& fields, const Control& control);
[[nodiscard]] Results coefficients_experiment(ConfigReader& fields, const Control& control);
[[nodiscard]] Results gradients_experiment(ConfigReader& fields, const Control& control);

}  // namespace widelimit::covariance_sde
