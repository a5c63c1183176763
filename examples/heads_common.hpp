#pragma once

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#include <widelimit/specialization/bayes.hpp>
#include <widelimit/specialization/flow.hpp>
#include <widelimit/specialization/trained_heads.hpp>

#include "output.hpp"

/// What the heads_* examples share: arguments, one training run, CSV files and pictures.
namespace heads {

using namespace widelimit::specialization;
using Eigen::Index;
using widelimit::Matrix;
using widelimit::Vector;

/// --quick: sizes that take seconds. --out FOLDER: where CSV files and pictures go [NAME-results].
/// --no-plots: CSV only. --force: write into a folder with files of others too.
struct Settings {
  bool quick = false;
  bool plots = true;
  bool force = false;
  std::filesystem::path out;
  std::shared_ptr<examples::Output> output;
  std::string only;

  /// The number for the published size, or for --quick.
  template <typename T>
  T size(T full, T small) const {
    return quick ? small : full;
  }
  bool wants(const std::string& name) const { return name.rfind(only, 0) == 0; }
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
    } else if (argument == "--out" && i + 1 < argc) {
      settings.out = argv[++i];
    } else if (argument == "--only" && i + 1 < argc) {
      settings.only = argv[++i];
    } else {
      throw std::runtime_error("unknown argument " + argument +
                               "; known are --quick, --no-plots, --force, --out FOLDER, --only NAME");
    }
  }
  settings.output = std::make_shared<examples::Output>(
      argc, argv, examples::Output::Options{settings.out, settings.plots, settings.force});
  return settings;
}

/// A CSV file in the output folder.
class Csv : public examples::CsvFile {
 public:
  Csv(const Settings& settings, const std::string& name, const std::string& header)
      : CsvFile(*settings.output, name, header, 7) {}
};

/// Draws NAME.png with gnuplot from commands that read the CSV files of the output folder.
inline void plot(const Settings& settings, const std::string& name, const std::string& commands) {
  settings.output->plot(name, "pngcairo size 1100,700 noenhanced font ',11'",
                        "set grid\nset key outside\n" + commands);
}

/// One flow from the noise start, and the loss of its end on fresh samples.
struct Training {
  HeadActivation activation;
  Prior prior;
  Index tokens;
  Index heads;
  double tau;
  double step = 0.1;
  Index samples = 50'000;
  std::uint64_t seed = 1;
  Index records = 200;
};

struct Trained {
  std::vector<FlowPoint> points;
  double loss = 0;
  double standard_error = 0;
  const HeadParameters& end() const { return points.back().parameters; }
  std::vector<double> times() const {
    std::vector<double> tau;
    for (const FlowPoint& point : points) tau.push_back(point.tau);
    return tau;
  }
  std::vector<Matrix<double>> overlaps() const {
    std::vector<Matrix<double>> m;
    for (const FlowPoint& point : points) m.push_back(point.parameters.m);
    return m;
  }
};

inline Trained train(const Training& run) {
  const auto samples = SampleSet<float>::draw(run.prior, {run.tokens, run.heads, run.samples}, run.seed);
  FlowOptions options;
  options.step = run.step;
  options.steps = static_cast<Index>(run.tau / run.step + 0.5);
  options.record = record_growing(run.records, options.steps);
  Trained result;
  result.points = gradient_flow(
      run.activation, noise_start(run.activation, run.heads, run.prior.features(), 1, run.seed + 1000),
      samples, options);
  const auto fresh = SampleSet<float>::draw(run.prior, {run.tokens, run.heads, 200'000}, run.seed + 2000);
  const SampledLoss loss = sampled_loss(run.activation, result.end(), fresh, LossDetail::loss_only);
  result.loss = loss.loss;
  result.standard_error = loss.standard_error;
  return result;
}

/// "m00,m01,..." for H heads and F features.
inline std::string overlap_header(Index heads, Index features) {
  std::string header;
  for (Index h = 0; h < heads; ++h)
    for (Index f = 0; f < features; ++f) header += ",m" + std::to_string(h) + std::to_string(f);
  return header;
}

/// tau, loss and every overlap, a row a recorded point.
inline void write_trajectory(const Settings& settings, const std::string& name, const Trained& trained) {
  const Index heads = trained.end().m.rows(), features = trained.end().m.cols();
  Csv csv(settings, name, "tau,loss" + overlap_header(heads, features));
  for (const FlowPoint& point : trained.points) {
    csv.stream() << point.tau << ',' << point.loss;
    for (const double entry : point.parameters.m.reshaped<Eigen::RowMajor>()) csv.stream() << ',' << entry;
    csv.stream() << '\n';
  }
}

/// Panels of overlaps against log time: one curve a head and feature, dashes for the second feature and so
/// on.
inline std::string overlap_panel(const std::string& file, const std::string& title, Index heads,
                                 Index features) {
  std::string commands = "set title '" + title +
                         "'\nset logscale x\nset xrange [0.5:*]\nset xlabel 'tau'\nset ylabel 'm'\nplot ";
  for (Index h = 0; h < heads; ++h)
    for (Index f = 0; f < features; ++f)
      commands += "'" + file + ".csv' using 1:" + std::to_string(3 + h * features + f) + " with lines lc " +
                  std::to_string(h + 1) + " dt " + std::to_string(f + 1) + " title 'head " +
                  std::to_string(h) + ", feature " + std::to_string(f) + "', ";
  return commands + "\n";
}

/// Four digits after the point.
inline std::string fixed(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", value);
  return text;
}

/// Seconds since the call that made it.
class Clock {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Runs an example's body and reports errors as a program should.
template <typename Body>
int run_example(int argc, char** argv, const Body& body) {
  try {
    body(parse(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << '\n';
    return 1;
  }
}

}  // namespace heads
