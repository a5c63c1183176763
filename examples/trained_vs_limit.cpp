// Wide networks, really trained by gradient descent, against the mean and variance of the NTK ensemble at the
// same time (gp::GradientFlow): regression of a function on the circle with two hidden layers of ReLUs.

#include <fmt/format.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <numbers>
#include <widelimit/finite/training.hpp>
#include <widelimit/gp/gradient_flow.hpp>
#include <widelimit/layers/activations.hpp>
#include <widelimit/layers/dense.hpp>

#include "example_support.hpp"

using namespace examples;
namespace networks = widelimit::finite;
namespace gp = widelimit::gp;
namespace layers = widelimit::layers;
using widelimit::Vector;

namespace {

constexpr Index train_points = 8;
constexpr Index test_points = 60;

Network network() {
  const widelimit::Layer hidden = layers::dense({2, 0.1});
  return Network({hidden, layers::relu(), hidden, layers::relu(), layers::dense()});
}

/// Points on the unit circle at the given angles.
Matrix<double> circle(const std::vector<double>& angles) {
  Matrix<double> points(static_cast<Index>(angles.size()), 2);
  for (Index i = 0; i < points.rows(); ++i) {
    const double angle = angles[static_cast<std::size_t>(i)];
    points.row(i) << std::cos(angle), std::sin(angle);
  }
  return points;
}

struct Task {
  std::vector<double> test_angles;
  Matrix<double> train;
  Matrix<double> targets;
  Matrix<double> test;
};

Task make_task() {
  Task task;
  std::vector<double> angles;
  for (Index i = 0; i < train_points; ++i)  // unevenly: gaps show the ensemble's spread
    angles.push_back(2 * std::numbers::pi * std::pow(static_cast<double>(i) / train_points, 1.4));
  for (Index i = 0; i < test_points; ++i)
    task.test_angles.push_back(2 * std::numbers::pi * (static_cast<double>(i) + 0.5) / test_points);
  task.train = circle(angles);
  task.test = circle(task.test_angles);
  task.targets.resize(train_points, 1);
  for (Index i = 0; i < train_points; ++i)
    task.targets(i, 0) = std::sin(2 * angles[static_cast<std::size_t>(i)]);
  return task;
}

struct Prediction {
  Vector<double> mean;
  Vector<double> variance;
};

/// The limit's ensemble after gradient flow for a time.
Prediction limit_prediction(const Task& task, double learning_rate, double time) {
  const auto train = widelimit::gram<double>(network(), task.train);
  const auto cross = widelimit::gram<double>(network(), task.test, task.train);
  const auto prior = widelimit::gram_diagonal<double>(network(), task.test);
  const auto flow = gp::GradientFlow::fit(train.nngp, train.ntk, task.targets, std::nullopt, learning_rate);
  return {flow.mean(time, cross.ntk).col(0), flow.variance(time, cross.nngp, cross.ntk, prior.nngp.col(0))};
}

/// Predictions of trained networks, [networks, test points].
Matrix<double> trained_predictions(const Task& task, Index width, Index networks,
                                   const networks::TrainingOptions& options) {
  Matrix<double> predictions(networks, test_points);
  for (Index k = 0; k < networks; ++k) {
    networks::FiniteNetwork<float> sample(network(), {{}, 2}, {.hidden = width, .outputs = 1, .layers = {}},
                                          {}, static_cast<std::uint64_t>(k));
    const Matrix<float> x = task.train.cast<float>(), y = task.targets.cast<float>();
    static_cast<void>(networks::train<float>(sample, x, y, options));
    const Matrix<float> test = task.test.cast<float>();
    predictions.row(k) = sample.forward(test).cast<double>().transpose();
  }
  return predictions;
}

void draw(const Settings& settings) {
  plot(settings, "trained_vs_limit",
       "set xlabel 'angle'\nset ylabel 'output'\n"
       "plot 'trained_vs_limit.csv' using 1:($2-2*$3):($2+2*$3) with filledcurves fc rgb '#cccccc' title "
       "'limit, 2 standard deviations', '' using 1:2 with lines lw 2 title 'limit, mean', "
       "'' using 1:4:5 with yerrorbars title 'trained networks, mean and its standard error'");
}

}  // namespace

int main(int argc, char** argv) {
  ArgumentList arguments{"Trained wide networks against the NTK ensemble"};
  Settings settings;
  add_arguments(arguments, settings, "trained_vs_limit");
  Index networks = 20, width = 1024, steps = 200;
  arguments.number("--networks", networks, "Networks to train", 4, 10'000);
  arguments.number("--width", width, "Hidden channels", 2, 65'536);
  arguments.number("--steps", steps, "Steps of gradient descent", 1, 1'000'000);
  return run_example(arguments, argc, argv, settings, [&] {
    const Task task = make_task();
    const auto train = widelimit::gram<double>(network(), task.train);
    // A tenth of the largest stable rate over two: descent is close to the flow for every mode.
    const double learning_rate = 0.1 / train.ntk.selfadjointView<Eigen::Lower>().eigenvalues().maxCoeff();
    networks::TrainingOptions options;
    options.learning_rate = learning_rate;
    options.steps = steps;
    const Prediction limit = limit_prediction(task, learning_rate, static_cast<double>(steps));
    const Matrix<double> trained = trained_predictions(task, width, networks, options);

    Csv table(
        settings, "trained_vs_limit",
        "angle,limit mean,limit standard deviation,trained mean,standard error of the mean,trained variance");
    const auto count = static_cast<double>(networks);
    Index means = 0, variances = 0;
    for (Index i = 0; i < test_points; ++i) {
      const double mean = trained.col(i).mean();
      const double variance = (trained.col(i).array() - mean).square().sum() / (count - 1);
      const double error = std::sqrt(limit.variance[i] / count);
      table.row(task.test_angles[static_cast<std::size_t>(i)], limit.mean[i], std::sqrt(limit.variance[i]),
                mean, error, variance);
      means += std::abs(mean - limit.mean[i]) <= 3 * error ? 1 : 0;
      variances +=
          std::abs(variance - limit.variance[i]) <= 3 * limit.variance[i] * std::sqrt(2 / (count - 1)) ? 1
                                                                                                       : 0;
    }
    fmt::print(
        "{} networks of width {}, {} steps: means within 3 standard errors at {:.1f} % of {} points, "
        "variances at {:.1f} %\n",
        networks, width, steps, 100.0 * static_cast<double>(means) / test_points, test_points,
        100.0 * static_cast<double>(variances) / test_points);
    draw(settings);
    return static_cast<double>(means) >= 0.95 * test_points ? 0 : 1;
  });
}
