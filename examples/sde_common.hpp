#pragma once

#include <cstdio>
#include <string>
#include <vector>
#include <widelimit/covariance_sde/exact_distributions.hpp>
#include <widelimit/covariance_sde/finite_network.hpp>
#include <widelimit/covariance_sde/simulate.hpp>
#include <widelimit/numerics/statistics.hpp>

#include "figure.hpp"

/// What the sde_* examples share: arguments, start covariance, CSV files and pictures.
namespace sde {

using namespace widelimit::covariance_sde;
using widelimit::Matrix;
namespace numerics = widelimit::numerics;

using examples::ArgumentList;
using examples::Csv;
using examples::plot;

/// The common arguments, and --samples N: another number of networks and paths.
struct Settings : examples::CommonSettings {
  Settings() {
    digits = 7;
    picture_size = "1100,520";
  }

  Index samples = 0;
  /// The number of samples for the full size, or for --quick, which --samples overrides.
  Index sample_count(Index full, Index small) const { return samples > 0 ? samples : size(full, small); }
};

/// Equal norms and correlation 0.2, the start of every figure.
inline Matrix<double> start(Index tokens, double variance = 1) {
  Matrix<double> v = Matrix<double>::Constant(tokens, tokens, 0.2 * variance);
  v.diagonal().setConstant(variance);
  return v;
}

inline std::vector<Index> all_layers(Index depth) {
  std::vector<Index> layers;
  for (Index layer = 1; layer <= depth; ++layer) layers.push_back(layer);
  return layers;
}

inline CovarianceEnsemble networks(const NetworkSpec& network, const Matrix<double>& v0,
                                   std::vector<Index> layers, Index samples) {
  NetworkOptions options;
  options.layers = std::move(layers);
  options.samples = samples;
  options.seed = 1;
  return sample_networks(network, v0, options);
}

inline CovarianceEnsemble paths(const SdeModel& model, const Matrix<double>& v0, double horizon, Index count,
                                StepScheme scheme = StepScheme::geometric) {
  SimulationOptions options;
  options.times = {horizon};
  options.paths = count;
  options.scheme = scheme;
  options.seed = 1;
  return simulate(model, v0, options);
}

/// Density of a sample on a grid, as rows curve,x,density.
inline void write_density(Csv& table, const std::string& curve, const std::vector<double>& sample,
                          double from, double to) {
  const numerics::KernelDensity density(sample);
  for (int i = 0; i <= 200; ++i) {
    const double x = from + (to - from) * i / 200;
    table.row(curve, x, density(x));
  }
}

/// A gnuplot expression for column `column` of the rows whose first field is `curve`.
inline std::string curve(const std::string& file, const std::string& name, const std::string& columns,
                         const std::string& style) {
  return "'" + file + ".csv' using (strcol(1) eq '" + name + "' ? " + columns + " with " + style +
         " title '" + name + "'";
}

/// Two-sample Kolmogorov-Smirnov distance, printed and written with its p-value.
inline void report_distance(Csv& table, const std::string& what, const std::vector<double>& a,
                            const std::vector<double>& b) {
  const double distance = numerics::kolmogorov_smirnov_distance(a, b);
  const double p =
      numerics::kolmogorov_smirnov_p_value(distance, numerics::two_sample_effective_size(a.size(), b.size()));
  std::printf("KS %-48s %.4f  p = %.3f\n", what.c_str(), distance, p);
  table.row(what, distance, p, a.size(), b.size());
}

template <typename Body>
int run_example(int argc, char** argv, const Body& body) {
  const auto add = [](ArgumentList& arguments, Settings& settings) {
    arguments.number("--samples", settings.samples, "Number of networks and paths", examples::Sign::positive);
  };
  return examples::run_figure(argc, argv, Settings(), add, body);
}

}  // namespace sde
