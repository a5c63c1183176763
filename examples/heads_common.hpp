#pragma once

#include <cstdio>
#include <string>
#include <vector>
#include <widelimit/specialization/bayes.hpp>
#include <widelimit/specialization/flow.hpp>
#include <widelimit/specialization/trained_heads.hpp>

#include "figure.hpp"

/// What the heads_* examples share: a training run, its table and its picture.
namespace heads {

using namespace widelimit::specialization;
using Eigen::Index;
using widelimit::Matrix;
using widelimit::Vector;

using examples::ArgumentList;
using examples::Clock;
using examples::Csv;
using examples::plot;

/// The common arguments, and --only: the panels whose names begin so.
struct Settings : examples::CommonSettings {
  Settings() {
    digits = 7;
    picture_size = "1100,700";
    picture_settings += "set key outside\n";
  }

  std::string only;
  bool wants(const std::string& name) const { return name.rfind(only, 0) == 0; }
};

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

/// Runs an example's body; `add(arguments, settings)` adds arguments of its own.
template <typename Body, typename Add>
int run_example(int argc, char** argv, const Body& body, const Add& add) {
  return examples::run_figure(
      argc, argv, Settings(),
      [&](ArgumentList& arguments, Settings& settings) {
        arguments.text("--only", settings.only, "Panels whose names begin so [all]");
        add(arguments);
      },
      body);
}

template <typename Body>
int run_example(int argc, char** argv, const Body& body) {
  return run_example(argc, argv, body, [](ArgumentList&) {});
}

}  // namespace heads
