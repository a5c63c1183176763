#include "widelimit/finite/training.hpp"

#include <doctest/doctest.h>

#include <Eigen/Dense>
#include <cmath>

#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/finite/empirical_kernel.hpp"
#include "widelimit/gp/gradient_flow.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/dense.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::finite;
using namespace widelimit::layers;

FiniteNetwork<double> linear_network() {
  return FiniteNetwork<double>(Network({dense()}), {{}, 3}, {.hidden = 1, .outputs = 2, .layers = {}}, {}, 1,
                               2);
}

Matrix<double> targets_of(Index n) {
  Matrix<double> targets(n, 2);
  for (Index i = 0; i < n; ++i) targets.row(i) << std::sin(double(i)), 0.3 * double(i);
  return targets;
}

TEST_CASE("gradient descent on a linear network is the recursion written out") {
  auto network = linear_network();
  const Matrix<double> x = (Matrix<double>(3, 3) << 1, 0.2, 0, -0.4, 1, 0.3, 0.5, 0, 1).finished();
  const Matrix<double> targets = targets_of(3), kernel = x * x.transpose() / 3;
  Matrix<double> residual = network.forward(x) - targets;
  TrainingOptions options;
  options.learning_rate = 0.4;
  options.steps = 7;
  const auto result = train<double>(network, x, targets, options);
  REQUIRE(result.losses.size() == 7);
  for (int step = 0; step < 7; ++step) {
    CHECK(result.losses[static_cast<std::size_t>(step)] ==
          doctest::Approx(residual.squaredNorm() / 2).scale(0).epsilon(1e-12));
    residual -= 0.4 * kernel * residual;
  }
  CHECK((network.forward(x) - targets - residual).norm() < 1e-12);
}

TEST_CASE("momentum and Adam follow their recursions") {
  const Matrix<double> x = (Matrix<double>(2, 3) << 1, 0.2, 0, -0.4, 1, 0.3).finished();
  const Matrix<double> targets = targets_of(2);
  for (const bool with_adam : {false, true}) {
    auto network = linear_network();
    Vector<double> theta = network.parameters(), first = Vector<double>::Zero(6), second = first;
    TrainingOptions options;
    options.learning_rate = 0.05;
    options.steps = 5;
    if (with_adam)
      options.optimiser = Adam{0.8, 0.9, 1e-8};
    else
      options.optimiser = Momentum{0.7};
    for (int step = 1; step <= 5; ++step) {
      auto copy = network;
      copy.set_parameters(theta);
      const Vector<double> gradient = copy.vector_jacobian(x, copy.forward(x) - targets);
      if (with_adam) {
        first = 0.8 * first + 0.2 * gradient;
        second = 0.9 * second + 0.1 * gradient.cwiseAbs2();
        const Vector<double> root = (second / (1 - std::pow(0.9, step))).cwiseSqrt();
        theta.array() -= 0.05 * (first / (1 - std::pow(0.8, step))).array() / (root.array() + 1e-8);
      } else {
        first = 0.7 * first + gradient;
        theta -= 0.05 * first;
      }
    }
    static_cast<void>(train<double>(network, x, targets, options));
    CHECK((network.parameters() - theta).norm() < 1e-12 * theta.norm());
  }
}

TEST_CASE("cross entropy and its gradient") {
  Matrix<double> outputs(2, 3), targets(2, 3);
  outputs << 1, 2, 3, 800, 0, -800;
  targets << 0, 1, 0, 0.5, 0.5, 0;
  const double first = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(3.0)) - 2;
  CHECK(loss_of<double>(Loss::cross_entropy, outputs, targets) ==
        doctest::Approx(first + 400).scale(0).epsilon(1e-14));
  CHECK_THROWS_WITH_AS(static_cast<void>(loss_of<double>(Loss::squared, outputs, targets.leftCols(2))),
                       "loss_of: expected targets [2, 3], got [2, 2]", ArgumentError);

  // One small step changes the loss by -learning rate |gradient|^2; the gradient by differences of the loss.
  auto network = linear_network();
  Matrix<double> x(3, 3), classes(3, 2);
  x << 1, 0.2, 0, -0.4, 1, 0.3, 0.5, 0, 1;
  classes << 1, 0, 0, 1, 0.5, 0.5;
  const auto loss_at = [&](const Vector<double>& theta) {
    auto copy = network;
    copy.set_parameters(theta);
    return loss_of<double>(Loss::cross_entropy, copy.forward(x), classes);
  };
  const Vector<double> start = network.parameters();
  Vector<double> gradient(start.size());
  for (Index p = 0; p < start.size(); ++p) {
    Vector<double> step = Vector<double>::Zero(start.size());
    step[p] = 1e-5;
    gradient[p] = (loss_at(start + step) - loss_at(start - step)) / 2e-5;
  }
  TrainingOptions options;
  options.loss = Loss::cross_entropy;
  options.learning_rate = 0.01;
  options.steps = 1;
  static_cast<void>(train<double>(network, x, classes, options));
  CHECK((start - network.parameters() - 0.01 * gradient).norm() < 1e-8 * gradient.norm());
}

TEST_CASE("batches go through all inputs, and training repeats bit for bit") {
  const auto x = random_inputs(3, {7, 3});
  const Matrix<double> targets = targets_of(7);
  TrainingOptions options;
  options.batch = 2;
  options.steps = 20;
  options.learning_rate = 0.01;
  options.seed = 4;
  auto one = linear_network(), two = linear_network(), three = linear_network();
  const auto losses = train<double>(one, x, targets, options).losses;
  CHECK(losses == train<double>(two, x, targets, options).losses);
  CHECK(one.parameters() == two.parameters());
  options.seed = 5;
  CHECK(losses != train<double>(three, x, targets, options).losses);
}

TEST_CASE("a batch counts for all inputs: on copies of one input its step is that of the whole set") {
  // Every batch of six copies has the mean gradient of all of them, so that a step of any batch is the same.
  Matrix<double> x(6, 3), targets(6, 2);
  x.rowwise() = Eigen::RowVector3d(1, 0.2, -0.4);
  targets.rowwise() = Eigen::RowVector2d(0.7, -1);
  TrainingOptions options;
  options.steps = 5;
  options.learning_rate = 0.03;
  auto whole = linear_network();
  const auto losses = train<double>(whole, x, targets, options).losses;
  for (const Index batch : {1, 2, 4}) {
    options.batch = batch;
    auto network = linear_network();
    const auto own = train<double>(network, x, targets, options).losses;
    for (std::size_t step = 0; step < losses.size(); ++step)
      CHECK(std::abs(own[step] / losses[step] - 1) < 1e-12);
    CHECK((network.parameters() - whole.parameters()).norm() < 1e-12 * whole.parameters().norm());
  }
}

TEST_CASE("a wide network trains as its empirical NTK says") {
  // A linearised network of this width is exact up to 1 / sqrt(width): the flow with the empirical kernel
  // predicts outputs at a finite time.
  const Network network("wide", {dense({2, 0.1}), relu(), dense()});
  FiniteNetwork<double> wide(network, {{}, 3}, {.hidden = 4096, .outputs = 1, .layers = {}}, {}, 3);
  const auto x = random_inputs(5, {4, 3});
  const Matrix<double> targets = (Matrix<double>(4, 1) << 1, -1, 0.5, -0.5).finished();
  const Matrix<double> ntk = empirical_ntk<double>(wide, x), before = wide.forward(x);
  TrainingOptions options;
  options.learning_rate = 0.02;
  options.steps = 100;
  const auto losses = train<double>(wide, x, targets, options).losses;
  const Eigen::SelfAdjointEigenSolver<Matrix<double>> solver(ntk);
  const Vector<double> decay = (1 - 0.02 * solver.eigenvalues().array()).pow(100).matrix();
  const Matrix<double> residual =
      solver.eigenvectors() * decay.asDiagonal() * solver.eigenvectors().transpose() * (before - targets);
  CHECK((wide.forward(x) - targets - residual).norm() < 0.02 * (before - targets).norm());
  CHECK(losses.back() < 0.5 * losses.front());
}

TEST_CASE("training options are checked, and divergence is an error") {
  auto network = linear_network();
  const auto x = random_inputs(3, {4, 3});
  const Matrix<double> targets = targets_of(4);
  const auto message_of = [&](const TrainingOptions& options, const Matrix<double>& wanted) {
    try {
      static_cast<void>(train<double>(network, x, wanted, options));
      return std::string("no error");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  CHECK(message_of({}, targets.leftCols(1)) == "train: expected targets [4, 2], got [4, 1]");
  TrainingOptions options;
  options.learning_rate = 0;
  CHECK(message_of(options, targets) == "train: learning_rate must be positive, got 0");
  options = {};
  options.batch = 5;
  CHECK(message_of(options, targets) == "train: batch must be in [0, 4], got 5");
  options = {};
  options.optimiser = Momentum{1};
  CHECK(message_of(options, targets) == "train: the momentum's decay must be in [0, 1), got 1");
  options = {};
  options.loss = Loss::cross_entropy;
  CHECK(message_of(options, Matrix<double>::Ones(4, 2)) ==
        "train: cross entropy needs probabilities that sum to 1, got a sum of 2 for input 0");
  options = {};
  options.learning_rate = 1e200;
  CHECK(message_of(options, targets).find("choose a smaller learning_rate than 1e+200") != std::string::npos);
}

}  // namespace
}  // namespace widelimit::testing
