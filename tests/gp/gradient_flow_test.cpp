#include "widelimit/gp/gradient_flow.hpp"

#include <doctest/doctest.h>

#include <Eigen/LU>
#include <boost/numeric/odeint.hpp>
#include <cmath>
#include <unsupported/Eigen/MatrixFunctions>
#include <vector>

#include "gp/problem.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/converged_flow.hpp"
#include "widelimit/gp/not_positive_definite.hpp"
#include "widelimit/gp/regression.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;
using doctest::Approx;

namespace {

using State = std::vector<double>;
using MatrixMap = Eigen::Map<Matrix<double>>;
using ConstMatrixMap = Eigen::Map<const Matrix<double>>;

// A linear model f = f_0 + J d of parameters d that start at 0 and follow the gradient flow of
// 1/2 |f(train) - y|^2 + lambda/2 |d|^2, one model a column of f_0 and y: a network of the limit, in
// parameter space.
struct LinearModel {
  Matrix<double> jacobian, test_jacobian, initial, test_initial, targets;
  double lambda, learning_rate;

  [[nodiscard]] Matrix<double> test_outputs(double time) const {
    const Eigen::Index parameters = jacobian.cols(), models = initial.cols();
    State state(static_cast<std::size_t>(parameters * models), 0.0);
    const auto flow = [&](const State& d, State& rate, double) {
      const ConstMatrixMap now(d.data(), parameters, models);
      MatrixMap(rate.data(), parameters, models) =
          -learning_rate * (jacobian.transpose() * (initial + jacobian * now - targets) + lambda * now);
    };
    namespace ode = boost::numeric::odeint;
    ode::integrate_adaptive(ode::make_controlled<ode::runge_kutta_dopri5<State>>(1e-12, 1e-12), flow, state,
                            0.0, time, 1e-3);
    return test_initial + test_jacobian * MatrixMap(state.data(), parameters, models);
  }
};

}  // namespace

TEST_CASE(
    "gradient flow of many inputs: its eigenvectors solve as a factorization does, and K may come late") {
  const KernelProblem p = make_problem(1050, 8, 1, 97);
  const Noise noise = RelativeRegulariser(1e-5);
  int calls = 0;
  const GradientFlow flow = GradientFlow::fit_late(
      [&]() -> DoubleMatrix {
        ++calls;
        return p.nngp;
      },
      p.ntk, p.targets, noise);
  CHECK(calls == 1);
  const ConvergedFlow expected =
      ConvergedFlow::fit(p.nngp, p.ntk, p.targets, noise, 0, ConvergedFlow::Holds::factor);
  CHECK(relative_difference(flow.weights(infinite_time), expected.weights()) < 1e-7);
  CHECK(relative_difference(flow.mean(infinite_time, p.ntk_cross), expected.mean(p.ntk_cross)) < 1e-8);
}

TEST_CASE("gradient flow: mean and covariance are those of linear models trained by an ODE solver") {
  const Eigen::Index n = 4, n_test = 3, parameters = 6, features = 5;
  const Matrix<double> j = random_matrix(n + n_test, parameters, 21),
                       phi = random_matrix(n + n_test, features, 22);
  const Matrix<double> y = random_matrix(n, 2, 23);
  const Matrix<double> t = j * j.transpose(), k = phi * phi.transpose();
  const double learning_rate = 0.4;
  for (const double noise : {0.0, 0.7}) {
    const std::optional<Noise> regulariser =
        noise > 0 ? std::optional<Noise>(AbsoluteNoise(noise)) : std::nullopt;
    const GradientFlow flow =
        GradientFlow::fit(k.topLeftCorner(n, n), t.topLeftCorner(n, n), y, regulariser, learning_rate);
    for (const double time : {0.05, 0.8}) {
      CAPTURE(noise);
      CAPTURE(time);
      // The mean starts at 0. The initial outputs Phi w, w standard normal, are mapped linearly, column by
      // column.
      const LinearModel mean{
          j.topRows(n), j.bottomRows(n_test), Matrix<double>::Zero(n, 2), Matrix<double>::Zero(n_test, 2), y,
          noise,        learning_rate};
      const LinearModel spread{j.topRows(n),
                               j.bottomRows(n_test),
                               phi.topRows(n),
                               phi.bottomRows(n_test),
                               Matrix<double>::Zero(n, features),
                               noise,
                               learning_rate};
      const Matrix<double> map = spread.test_outputs(time);
      const Matrix<double> covariance =
          flow.covariance(time, k.bottomLeftCorner(n_test, n), t.bottomLeftCorner(n_test, n),
                          k.bottomRightCorner(n_test, n_test));
      CHECK(relative_difference(flow.mean(time, t.bottomLeftCorner(n_test, n)), mean.test_outputs(time)) <
            1e-8);
      CHECK(relative_difference(covariance, map * map.transpose()) < 1e-8);
    }
  }
}

TEST_CASE("gradient flow: agrees with the matrix exponential") {
  const KernelProblem p = make_problem(12, 520, 2, 24);  // more test inputs than one block
  const RelativeRegulariser eps(1e-2);
  const double lambda = noise_variance(eps, p.ntk.diagonal().mean());
  const GradientFlow flow = GradientFlow::fit(p.nngp, p.ntk, p.targets, eps);
  CHECK(flow.regulariser_variance() == Approx(lambda).epsilon(1e-15).scale(0));
  const Eigen::MatrixXd regular = p.ntk + lambda * Matrix<double>::Identity(12, 12);
  const Eigen::MatrixXd inverse = regular.inverse();
  // Condition number times machine epsilon, with room for the 12 x 12 exponential.
  const double bound = 100 * epsilon * regular.trace() / lambda;
  for (const double time : {1e-3, 0.3, 7.0, infinite_time}) {
    CAPTURE(time);
    const Eigen::MatrixXd decay = std::isinf(time) ? Eigen::MatrixXd(Eigen::MatrixXd::Zero(12, 12))
                                                   : Eigen::MatrixXd((-time * regular).exp());
    const Matrix<double> b = p.ntk_cross * inverse * (Eigen::MatrixXd::Identity(12, 12) - decay);
    const Matrix<double> covariance = p.nngp_test + b * p.nngp * b.transpose() -
                                      b * p.nngp_cross.transpose() - p.nngp_cross * b.transpose();
    CHECK((flow.mean(time, p.ntk_cross) - b * p.targets).cwiseAbs().maxCoeff() < bound);
    const Matrix<double> joint = flow.covariance(time, p.nngp_cross, p.ntk_cross, p.nngp_test);
    CHECK((joint - covariance).cwiseAbs().maxCoeff() < bound);
    CHECK(joint == joint.transpose());
    const Vector<double> variance = flow.variance(time, p.nngp_cross, p.ntk_cross, p.nngp_test.diagonal());
    CHECK((variance - covariance.diagonal()).cwiseAbs().maxCoeff() < bound);
  }
}

TEST_CASE("gradient flow: time zero is the prior, exactly") {
  const KernelProblem p = make_problem(10, 4, 2, 25);
  const GradientFlow flow = GradientFlow::fit(p.nngp, p.ntk, p.targets);
  CHECK(flow.mean(0, p.ntk_cross) == Matrix<double>::Zero(4, 2));
  CHECK(flow.covariance(0, p.nngp_cross, p.ntk_cross, p.nngp_test) == p.nngp_test);
  CHECK(flow.variance(0, p.nngp_cross, p.ntk_cross, p.nngp_test.diagonal()) == p.nngp_test.diagonal());
  CHECK(flow.train_mean(0) == Matrix<double>::Zero(10, 2));
  CHECK(flow.train_covariance(0) == p.nngp);
  CHECK(flow.train_variance(0) == p.nngp.diagonal());
}

TEST_CASE(
    "gradient flow: infinite time is kernel regression; with K = T the covariance is the posterior less "
    "lambda B B^T") {
  const KernelProblem p = make_problem(30, 6, 2, 26);
  const RelativeRegulariser eps(1e-3);
  const GradientFlow flow = GradientFlow::fit(p.ntk, p.ntk, p.targets, eps);
  const Regression regression = Regression::fit(p.ntk, p.targets, eps).with_amplitude(1);
  const double bound = 100 * 30 * epsilon / eps.value();
  CHECK((flow.mean(infinite_time, p.ntk_cross) - regression.mean(p.ntk_cross)).cwiseAbs().maxCoeff() < bound);
  const Matrix<double> prior = 3.5 * Matrix<double>::Identity(6, 6);
  const Matrix<double> b = Regression::fit(p.ntk, Matrix<double>::Identity(30, 30), eps).mean(p.ntk_cross);
  const Matrix<double> expected =
      regression.covariance(p.ntk_cross, prior) - regression.noise_variance() * b * b.transpose();
  CHECK((flow.covariance(infinite_time, p.ntk_cross, p.ntk_cross, prior) - expected).cwiseAbs().maxCoeff() <
        bound);
  // A finite but long time comes to the same.
  CHECK((flow.mean(1e9, p.ntk_cross) - regression.mean(p.ntk_cross)).cwiseAbs().maxCoeff() < bound);
}

TEST_CASE("gradient flow: training-set predictions are test predictions at the training inputs") {
  const KernelProblem p = make_problem(20, 0, 2, 27);
  for (const bool regularised : {false, true}) {
    const std::optional<Noise> noise =
        regularised ? std::optional<Noise>(RelativeRegulariser(0.05)) : std::nullopt;
    const GradientFlow flow = GradientFlow::fit(p.nngp, p.ntk, p.targets, noise);
    for (const double time : {0.01, 1.0, 30.0}) {
      CAPTURE(regularised);
      CAPTURE(time);
      const Matrix<double> covariance = flow.train_covariance(time);
      CHECK((flow.train_mean(time) - flow.mean(time, p.ntk)).cwiseAbs().maxCoeff() < 1e-11);
      CHECK((covariance - flow.covariance(time, p.nngp, p.ntk, p.nngp)).cwiseAbs().maxCoeff() < 1e-11);
      CHECK((covariance.diagonal() - flow.train_variance(time)).cwiseAbs().maxCoeff() < 1e-13);
      CHECK(covariance == covariance.transpose());
    }
  }
}

TEST_CASE(
    "gradient flow: without a regulariser the training set is learnt, and spread decays without "
    "cancellation") {
  const Matrix<double> k{{1.0}}, t{{2.0}}, y{{3.0}};
  const GradientFlow flow = GradientFlow::fit(k, t, y);
  CHECK(flow.train_mean(infinite_time)(0, 0) == Approx(3).epsilon(1e-15).scale(0));
  CHECK(flow.train_covariance(infinite_time)(0, 0) == 0);
  CHECK(flow.train_variance(50)(0) ==
        Approx(std::exp(-200.0)).epsilon(1e-13).scale(0));  // K_** - ... would leave 1e-16
  CHECK(flow.train_covariance(50)(0, 0) == Approx(std::exp(-200.0)).epsilon(1e-13).scale(0));
}

TEST_CASE("gradient flow: short times and small eigenvalues keep their digits") {
  for (const double scale : {1e-3, 1e-9, 1e-18}) {
    const Matrix<double> t{{scale}}, one{{1.0}};
    const GradientFlow flow = GradientFlow::fit(one, t, one);
    CHECK(flow.mean(1, one)(0, 0) == Approx(-std::expm1(-scale) / scale).epsilon(1e-14).scale(0));
    CHECK(flow.train_mean(1)(0, 0) == Approx(-std::expm1(-scale)).epsilon(1e-14).scale(0));
  }
}

TEST_CASE("gradient flow: duplicate inputs are fine at a finite time, without limit unless regularised") {
  const Matrix<double> ones = Matrix<double>::Ones(2, 2), y{{1.0}, {4.0}}, cross{{0.5, 0.5}};
  const GradientFlow flow = GradientFlow::fit(ones, ones, y);
  for (const double time : {0.1, 2.0, 1e3}) {
    const double learnt = 2.5 * -std::expm1(-2 * time);  // both copies tend to the mean target
    CHECK(flow.train_mean(time)(0, 0) == Approx(learnt).epsilon(1e-12).scale(0));
    CHECK(flow.train_mean(time)(1, 0) == Approx(learnt).epsilon(1e-12).scale(0));
    CHECK(flow.mean(time, cross)(0, 0) == Approx(learnt / 2).epsilon(1e-12).scale(0));
    CHECK((flow.train_covariance(time) - std::exp(-4 * time) * ones).cwiseAbs().maxCoeff() < 1e-14);
  }
  CHECK_THROWS_WITH_AS(
      (void)flow.mean(infinite_time, cross),
      doctest::Contains("GradientFlow::mean: the 2 x 2 NTK plus regulariser variance 0 is not positive "
                        "definite in double precision: the smallest eigenvalue without it is "),
      NotPositiveDefinite);
  CHECK_THROWS_WITH_AS(
      (void)flow.train_mean(infinite_time),
      doctest::Contains(
          "so that the flow has no limit; take a finite time or regularise; a relative regulariser of "),
      NotPositiveDefinite);
  CHECK_THROWS_AS((void)flow.train_covariance(infinite_time), NotPositiveDefinite);
  const GradientFlow regularised = GradientFlow::fit(ones, ones, y, AbsoluteNoise(0.5));
  CHECK(regularised.train_mean(infinite_time)(0, 0) == Approx(5 / 2.5).epsilon(1e-14).scale(0));
}

TEST_CASE("gradient flow: eigenvalues that round below zero do not make a long flow diverge") {
  const Matrix<double> j = random_matrix(20, 3, 30), y = random_matrix(20, 1, 31);
  const Matrix<double> t = j * j.transpose(), k = Matrix<double>::Identity(20, 20);
  const GradientFlow flow = GradientFlow::fit(k, t, y);
  for (const double time : {1e12, 1e18}) {  // 1e18 times a rounding error of 1e-15 is an exponent of 1000
    CHECK(flow.train_mean(time).norm() <= y.norm() * (1 + 1e-12));
    CHECK(flow.train_variance(time).maxCoeff() <= 1 + 1e-12);
  }
}

TEST_CASE("gradient flow: the learning rate is a factor of time; float kernels are converted") {
  const KernelProblem p = make_problem(15, 4, 1, 28);
  const GradientFlow slow = GradientFlow::fit(p.nngp, p.ntk, p.targets, std::nullopt, 0.25);
  const GradientFlow plain = GradientFlow::fit(p.nngp, p.ntk, p.targets);
  CHECK(slow.mean(8, p.ntk_cross) == plain.mean(2, p.ntk_cross));
  CHECK(slow.mean(2, p.ntk_cross) != plain.mean(2, p.ntk_cross));
  const Matrix<float> k = p.nngp.cast<float>(), t = p.ntk.cast<float>(), cross = p.ntk_cross.cast<float>();
  const GradientFlow single = GradientFlow::fit(k, t, p.targets, RelativeRegulariser(1e-2));
  const GradientFlow full =
      GradientFlow::fit(k.cast<double>(), t.cast<double>(), p.targets, RelativeRegulariser(1e-2));
  CHECK(single.mean(2, cross) == full.mean(2, cross.cast<double>()));
}

TEST_CASE("gradient flow: the fitted amplitude is that of networks trained on all inputs but one") {
  const Eigen::Index n = 14;
  const KernelProblem p = make_problem(n, 0, 2, 35);
  const auto without = [n](const Matrix<double>& matrix, Eigen::Index i) {
    std::vector<Eigen::Index> rest;
    for (Eigen::Index j = 0; j < n; ++j)
      if (j != i) rest.push_back(j);
    return Matrix<double>(matrix(rest, Eigen::all));
  };
  for (const double lambda : {0.0, 0.05}) {
    CAPTURE(lambda);
    const std::optional<Noise> noise =
        lambda > 0 ? std::optional<Noise>(AbsoluteNoise(lambda)) : std::nullopt;
    double sum = 0;
    for (Eigen::Index i = 0; i < n; ++i) {
      const auto square = [&](const Matrix<double>& k) {
        return Matrix<double>(without(without(k, i).transpose(), i));
      };
      const auto cross = [&](const Matrix<double>& k) {
        return Matrix<double>(without(k.col(i), i).transpose());
      };
      const GradientFlow rest =
          GradientFlow::fit(square(p.nngp), square(p.ntk), without(p.targets, i), noise);
      const Matrix<double> residual = p.targets.row(i) - rest.mean(infinite_time, cross(p.ntk));
      const Vector<double> prior = Vector<double>::Constant(1, p.nngp(i, i));
      const double variance = rest.variance(infinite_time, cross(p.nngp), cross(p.ntk), prior)(0);
      sum += residual.squaredNorm() / (variance + lambda);
    }
    const GradientFlow flow = GradientFlow::fit(p.nngp, p.ntk, p.targets, noise);
    CHECK(flow.leave_one_out_amplitude() == Approx(sum / (2 * n)).epsilon(1e-8).scale(0));
    CHECK(flow.with_amplitude(5).leave_one_out_amplitude() == flow.leave_one_out_amplitude());
  }
  const Matrix<double> ones = Matrix<double>::Ones(2, 2), identity = Matrix<double>::Identity(2, 2);
  CHECK_THROWS_AS((void)GradientFlow::fit(ones, ones, ones).leave_one_out_amplitude(), NotPositiveDefinite);
  CHECK_THROWS_WITH_AS((void)GradientFlow::fit(0 * ones, identity, ones).leave_one_out_amplitude(),
                       "GradientFlow::leave_one_out_amplitude: networks trained on all inputs but one have "
                       "outputs without variance there; regularise",
                       NumericalError);
  CHECK(GradientFlow::fit(ones, identity, 0 * ones).leave_one_out_amplitude() == 0);
}

TEST_CASE("gradient flow: an amplitude is that of the outputs") {
  const KernelProblem p = make_problem(25, 6, 2, 30);
  const RelativeRegulariser eps(1e-3);
  const GradientFlow flow = GradientFlow::fit(p.nngp, p.ntk, p.targets, eps, 0.3);
  const double a = 0.037;
  CHECK(flow.amplitude() == 1);
  // Networks with outputs sqrt(a) times as large, trained at the rate eta / a.
  const GradientFlow scaled = flow.with_amplitude(a);
  const GradientFlow other = GradientFlow::fit(a * p.nngp, a * p.ntk, p.targets, eps, 0.3 / a);
  const Vector<double> prior = p.nngp_test.diagonal();
  CHECK(scaled.regulariser_variance() == Approx(other.regulariser_variance()).epsilon(1e-13).scale(0));
  for (const double time : {0.0, 0.7, infinite_time}) {
    CAPTURE(time);
    const double bound = 1e-9;
    CHECK(scaled.mean(time, p.ntk_cross) == flow.mean(time, p.ntk_cross));
    CHECK((scaled.mean(time, p.ntk_cross) - other.mean(time, a * p.ntk_cross)).cwiseAbs().maxCoeff() < bound);
    CHECK(relative_difference(scaled.variance(time, p.nngp_cross, p.ntk_cross, prior),
                              other.variance(time, a * p.nngp_cross, a * p.ntk_cross, a * prior)) < bound);
    CHECK(relative_difference(scaled.covariance(time, p.nngp_cross, p.ntk_cross, p.nngp_test),
                              other.covariance(time, a * p.nngp_cross, a * p.ntk_cross, a * p.nngp_test)) <
          bound);
    CHECK(relative_difference(scaled.train_covariance(time), other.train_covariance(time)) < bound);
    CHECK(relative_difference(scaled.train_variance(time), other.train_variance(time)) < bound);
  }
  CHECK_THROWS_AS((void)flow.with_amplitude(0), ArgumentError);
}

TEST_CASE("gradient flow: arguments that do not fit") {
  const KernelProblem p = make_problem(5, 3, 2, 29);
  const GradientFlow flow = GradientFlow::fit(p.nngp, p.ntk, p.targets);
  const Vector<double> variances = p.nngp_test.diagonal();
  CHECK_THROWS_WITH_AS((void)flow.mean(-1, p.ntk_cross),
                       "GradientFlow::mean: time must be 0 or more, or infinite_time, got -1", ArgumentError);
  CHECK_THROWS_AS((void)flow.train_variance(std::nan("")), ArgumentError);
  CHECK_THROWS_AS((void)flow.train_covariance(-1e-300), ArgumentError);
  CHECK_THROWS_WITH_AS((void)GradientFlow::fit(p.nngp, p.ntk, p.targets, std::nullopt, 0),
                       "GradientFlow::fit: the learning rate must be positive and finite, got 0",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(
      (void)GradientFlow::fit(p.nngp_test, p.ntk, p.targets),
      "GradientFlow::fit: the NNGP Gram matrix (as large as the NTK) must be [5, 5], got [3, 3]",
      ArgumentError);
  CHECK_THROWS_AS((void)GradientFlow::fit(p.nngp, p.ntk_cross, p.targets), ArgumentError);
  CHECK_THROWS_AS((void)GradientFlow::fit(p.nngp, p.ntk, p.targets.topRows(3)), ArgumentError);
  Matrix<double> skew = p.nngp;
  skew(1, 0) += 1;
  CHECK_THROWS_WITH_AS((void)GradientFlow::fit(skew, p.ntk, p.targets),
                       doctest::Contains("the NNGP Gram matrix must be symmetric, but entry (0, 1)"),
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)flow.covariance(1, p.nngp_cross.topRows(2), p.ntk_cross, p.nngp_test),
                       "GradientFlow::covariance: the cross NNGP Gram matrix must be [3, 5], got [2, 5]",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)flow.variance(1, p.nngp_cross, p.ntk_cross.leftCols(2), variances),
                       "GradientFlow::variance: the cross NTK must be [any, 5], got [3, 2]", ArgumentError);
  CHECK_THROWS_AS((void)flow.covariance(1, p.nngp_cross, p.ntk_cross, p.nngp), ArgumentError);
  CHECK_THROWS_AS((void)flow.variance(1, p.nngp_cross, p.ntk_cross, variances.head(2)), ArgumentError);
  const Matrix<double> indefinite{{1.0, 1.5}, {1.5, 1.0}}, y{{1.0}, {2.0}};
  CHECK_THROWS_WITH_AS(
      (void)GradientFlow::fit(indefinite, indefinite, y, AbsoluteNoise(0.25)),
      "GradientFlow::fit: the 2 x 2 NTK plus regulariser variance 0.25 is not positive definite in double "
      "precision: the smallest eigenvalue without it is -0.5, so that the flow diverges; a relative "
      "regulariser of 0.500005 is enough",
      NotPositiveDefinite);
  CHECK(GradientFlow::fit(Matrix<double>::Identity(2, 2), indefinite, y, AbsoluteNoise(0.75))
            .train_mean(1)
            .allFinite());
}
