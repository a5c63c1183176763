#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include <widelimit/covariance_sde/exact_laws.hpp>
#include <widelimit/covariance_sde/finite_network.hpp>
#include <widelimit/covariance_sde/simulate.hpp>
#include <widelimit/numerics/statistics.hpp>

#include "output.hpp"

/// What the sde_* examples share: arguments, start covariance, CSV files and pictures.
namespace sde {

using namespace widelimit::covariance_sde;
using widelimit::Matrix;
namespace numerics = widelimit::numerics;

/// --quick: sizes that take seconds. --samples N: another number of networks and paths. --out FOLDER: where
/// CSV files and pictures go [NAME-results]. --no-plots: CSV only. --force: write into a
/// folder with files of others too.
struct Settings {
  bool quick = false;
  bool plots = true;
  bool force = false;
  Index samples = 0;
  std::filesystem::path out;
  std::shared_ptr<examples::Output> output;

  /// The number for the full size, or for --quick.
  Index size(Index full, Index small) const { return quick ? small : full; }
  /// The same for a number of samples, which --samples overrides.
  Index sample_count(Index full, Index small) const { return samples > 0 ? samples : size(full, small); }
};

inline Settings parse(int argc, char** argv) {
  Settings settings;
  settings.out = std::filesystem::path(argv[0]).filename().string() + "-results";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--quick") {
      settings.quick = true;
    } else if (argument == "--no-plots") {
      settings.plots = false;
    } else if (argument == "--force") {
      settings.force = true;
    } else if (argument == "--samples" && i + 1 < argc) {
      settings.samples = std::stol(argv[++i]);
    } else if (argument == "--out" && i + 1 < argc) {
      settings.out = argv[++i];
    } else {
      throw std::runtime_error("unknown argument " + argument +
                               "; known are --quick, --samples N, --no-plots, --force, --out FOLDER");
    }
  }
  settings.output = std::make_shared<examples::Output>(
      argc, argv, examples::Output::Options{settings.out, settings.plots, settings.force});
  return settings;
}

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

/// A CSV file in the output folder.
class Csv : public examples::CsvFile {
 public:
  Csv(const Settings& settings, const std::string& name, const std::string& header)
      : CsvFile(*settings.output, name, header, 7) {}
};

/// Density of a sample on a grid, as rows curve,x,density.
inline void write_density(Csv& table, const std::string& curve, const std::vector<double>& sample,
                          double from, double to) {
  const numerics::KernelDensity density(sample);
  for (int i = 0; i <= 200; ++i) {
    const double x = from + (to - from) * i / 200;
    table.row(curve, x, density(x));
  }
}

/// Draws NAME.png with gnuplot from commands that read the CSV files of the output folder.
inline void plot(const Settings& settings, const std::string& name, const std::string& commands) {
  settings.output->plot(name, "pngcairo size 1100,520 noenhanced font ',11'", "set grid\n" + commands);
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
  try {
    const auto began = std::chrono::steady_clock::now();
    const Settings settings = parse(argc, argv);
    body(settings);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
    std::printf("%.1f s; files in %s\n", taken.count(), settings.out.string().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace sde
