// Targets that are fitted as their logarithms: what follows by hand from a fit of the logarithms themselves.
#include "widelimit/gp/target_transform.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numbers>

#include "data/temporary_folder.hpp"
#include "gp/problem.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/automatic.hpp"
#include "widelimit/gp/inference.hpp"
#include "widelimit/gp/metrics.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/gp/prediction_quality.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/models/named_networks.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;
using doctest::Approx;

namespace {

const Network& network() {
  static const Network dense = models::named_network("fcn", {{"axes", 0}, {"depth", 1}});
  return dense;
}

/// Prices of two things, whose noise is a share of them.
Matrix<double> prices(const Matrix<double>& x, std::uint64_t seed) {
  const Matrix<double> noise = random_matrix(x.rows(), 2, seed);
  Matrix<double> y(x.rows(), 2);
  y.col(0) = (7 + x.col(0).array() + 0.3 * noise.col(0).array()).exp();
  y.col(1) = (x.col(1).array().sin() - 0.5 * x.col(2).array() + 0.6 * noise.col(1).array()).exp();
  return y;
}

ModelOptions in_logarithms() {
  ModelOptions options;
  options.transform = TargetTransform::log;
  return options;
}

struct Fits {
  Matrix<double> x = random_matrix(40, 3, 1), y = prices(x, 2), x_new = random_matrix(9, 3, 3);
  Model model = Model::fit(network(), Inputs<double>(x), y, in_logarithms());
  Model of_logarithms = Model::fit(network(), Inputs<double>(x), Matrix<double>(y.array().log()));
};

void check_matrix(const Matrix<double>& found, const Matrix<double>& expected, double tolerance = 1e-12) {
  REQUIRE(found.rows() == expected.rows());
  REQUIRE(found.cols() == expected.cols());
  CHECK((found - expected).norm() <= tolerance * expected.norm());
}

}  // namespace

TEST_CASE("target transform: predictions are the log-normal ones of a fit of the logarithms") {
  const Fits fits;
  const ModelPrediction found = fits.model.predict(Inputs<double>(fits.x_new)),
                        logs = fits.of_logarithms.predict(Inputs<double>(fits.x_new));
  CHECK(fits.model.transform() == TargetTransform::log);
  CHECK(found.law.of_logarithms);
  CHECK(found.law.degrees_of_freedom == logs.law.degrees_of_freedom);
  const Matrix<double> observed = found.observation_variance(), observed_logs = logs.observation_variance();
  const double square = logs.law.scale * logs.law.scale;
  CHECK(square > 1);
  check_matrix(found.mean, (logs.mean + square * observed_logs / 2).array().exp());
  check_matrix(found.variance,
               found.mean.cwiseAbs2().array() * Matrix<double>(square * logs.variance).array().expm1());
  check_matrix(observed,
               found.mean.cwiseAbs2().array() * Matrix<double>(square * observed_logs).array().expm1());
  check_matrix(fits.model.mean(Inputs<double>(fits.x_new)), found.mean, 0);
  for (Index i = 0; i < 9; ++i)
    for (Index k = 0; k < 2; ++k) {
      const auto [lower, upper] = found.law.interval(0.8, found.mean(i, k), observed(i, k));
      const auto [log_lower, log_upper] = logs.law.interval(0.8, logs.mean(i, k), observed_logs(i, k));
      CHECK(lower == Approx(std::exp(log_lower)).epsilon(1e-11));
      CHECK(upper == Approx(std::exp(log_upper)).epsilon(1e-11));
      const double y = fits.y(i, k);
      CHECK(found.law.log_density(y, found.mean(i, k), observed(i, k)) ==
            Approx(logs.law.log_density(std::log(y), logs.mean(i, k), observed_logs(i, k)) - std::log(y))
                .epsilon(1e-10));
      CHECK(found.law.distance(y, found.mean(i, k), observed(i, k)) ==
            Approx(logs.law.distance(std::log(y), logs.mean(i, k), observed_logs(i, k))).epsilon(1e-10));
    }
}

TEST_CASE("target transform: densities have the mass that their intervals have") {
  const ObservationLaw law{.degrees_of_freedom = 5, .scale = 1.2, .of_logarithms = true};
  const double mean = 3, variance = 4;
  const auto [lower, upper] = law.interval(0.9, mean, variance);
  constexpr int steps = 20000;
  double mass = 0;
  for (int i = 0; i < steps; ++i)
    mass += std::exp(law.log_density(lower + (i + 0.5) * (upper - lower) / steps, mean, variance));
  CHECK(mass * (upper - lower) / steps == Approx(0.9).epsilon(1e-6));
  for (const double never : {0.0, -1.0}) {
    CHECK(law.log_density(never, mean, variance) == -std::numeric_limits<double>::infinity());
    CHECK(law.distance(never, mean, variance) == -std::numeric_limits<double>::infinity());
  }
}

TEST_CASE("target transform: predictions and scores have the unit of the targets") {
  const Fits fits;
  const double unit = 1000;
  const Model other = Model::fit(network(), Inputs<double>(fits.x), unit * fits.y, in_logarithms());
  const ModelPrediction found = other.predict(Inputs<double>(fits.x_new)),
                        before = fits.model.predict(Inputs<double>(fits.x_new));
  check_matrix(found.mean, unit * before.mean, 1e-10);
  check_matrix(found.standard_deviation(), unit * before.standard_deviation(), 1e-10);
  check_matrix(found.noise_variance, before.noise_variance, 1e-10);
  const double rows = 40 * std::log(unit);
  CHECK(other.log_marginal_likelihood() ==
        Approx(fits.model.log_marginal_likelihood() - 2 * rows).epsilon(1e-9));
  CHECK(other.leave_one_out().negative_log_predictive_density() ==
        Approx(fits.model.leave_one_out().negative_log_predictive_density() + 2 * std::log(unit))
            .epsilon(1e-9));
  for (std::size_t k = 0; k < 2; ++k)
    CHECK(other.selections()[k].scores.back().leave_one_out ==
          Approx(fits.model.selections()[k].scores.back().leave_one_out + std::log(unit)).epsilon(1e-9));
}

TEST_CASE("target transform: evidence, targets left out, and the same of rows that repeat") {
  const Fits fits;
  CHECK(fits.model.log_marginal_likelihood() ==
        Approx(fits.of_logarithms.log_marginal_likelihood() - fits.y.array().log().sum()).epsilon(1e-11));
  const ModelLeaveOneOut found = fits.model.leave_one_out(), logs = fits.of_logarithms.leave_one_out();
  const Matrix<double> log_means = Matrix<double>(fits.y.array().log()) - logs.residuals;
  const Matrix<double> means = (log_means + logs.variances / 2).array().exp();
  check_matrix(found.residuals, fits.y - means, 1e-11);
  check_matrix(found.variances, means.array().square() * logs.variances.array().expm1(), 1e-11);
  CHECK(found.negative_log_predictive_density() ==
        Approx(logs.negative_log_predictive_density() + fits.y.array().log().sum() / 40).epsilon(1e-11));

  Matrix<double> x(44, 3), y(44, 2);
  x << fits.x, fits.x.topRows(4);
  y << fits.y, 1.5 * fits.y.topRows(4);
  const ModelLeaveOneOut rows = Model::fit(network(), Inputs<double>(x), y, in_logarithms()).leave_one_out(),
                         of_logs = Model::fit(network(), Inputs<double>(x), Matrix<double>(y.array().log()))
                                       .leave_one_out();
  check_matrix(rows.positive_targets, y, 1e-14);
  CHECK(rows.negative_log_predictive_density() ==
        Approx(of_logs.negative_log_predictive_density() + y.array().log().sum() / 44).epsilon(1e-10));
}

TEST_CASE("target transform: covariances and samples are those of the exponential") {
  const Fits fits;
  const Inputs<double> x(fits.x_new);
  const JointPrediction joint = fits.model.predict_jointly(x);
  const ModelPrediction alone = fits.model.predict(x);
  check_matrix(joint.mean, alone.mean, 1e-11);
  for (Index k = 0; k < 2; ++k) check_matrix(joint.covariance(k).diagonal(), alone.variance.col(k), 1e-9);
  const double scale = fits.model.law().scale;
  const Vector<double> noise = scale * scale * fits.model.noise_variance();
  const Matrix<double> mean = fits.of_logarithms.mean(x),
                       prior_mean = fits.of_logarithms.target_scale().restored(Matrix<double>::Zero(9, 2));
  const auto samples = fits.model.samples(x, 3, 5), logs = fits.of_logarithms.samples(x, 3, 5),
             marginal = fits.model.samples(x, 3, 5, Sampling::marginal),
             marginal_logs = fits.of_logarithms.samples(x, 3, 5, Sampling::marginal),
             prior = fits.model.prior_samples(x, 3, 5),
             prior_logs = fits.of_logarithms.prior_samples(x, 3, 5);
  for (std::size_t s = 0; s < 3; ++s) {
    // Deviations have the scale of the law, as those of the means have.
    const auto exponential = [&](const Matrix<double>& centre, const Matrix<double>& sample) {
      const Matrix<double> scaled = centre + scale * (sample - centre);
      return Matrix<double>((scaled.rowwise() + noise.transpose() / 2).array().exp());
    };
    check_matrix(samples[s], exponential(mean, logs[s]), 1e-9);
    check_matrix(marginal[s], exponential(mean, marginal_logs[s]), 1e-9);
    check_matrix(prior[s], exponential(prior_mean, prior_logs[s]), 1e-9);
  }
  // Covariances are those of many samples.
  constexpr Index count = 20000;
  Matrix<double> sum = Matrix<double>::Zero(9, 1), products = Matrix<double>::Zero(9, 9);
  for (const Matrix<double>& sample : fits.model.samples(x, count, 11)) {
    sum += sample.col(0) / count;
    products += sample.col(0) * sample.col(0).transpose() / count;
  }
  check_matrix(sum, joint.mean.col(0), 0.01);
  check_matrix(products - sum * sum.transpose(), joint.covariance(0), 0.06);
}

TEST_CASE("target transform: a saved model predicts the same, and the other doors do too") {
  const Fits fits;
  const TemporaryFolder folder;
  fits.model.save(folder.path() / "model");
  const Model loaded = Model::load(folder.path() / "model");
  const Inputs<double> x(fits.x_new);
  const ModelPrediction expected = fits.model.predict(x), found = loaded.predict(x);
  CHECK(loaded.transform() == TargetTransform::log);
  CHECK(found.law == expected.law);
  CHECK(found.mean == expected.mean);
  CHECK(found.variance == expected.variance);
  CHECK(loaded.with_amplitude(2).transform() == TargetTransform::log);

  GramOptions options;
  options.kernels = Kernels::nngp;
  GramSources grams;
  grams.train = gram_in_memory(gram(network(), Inputs<double>(fits.x), options));
  grams.test = gram_in_memory(gram(network(), x, Inputs<double>(fits.x), options));
  grams.test_variances = gram_diagonal(network(), x, options).nngp;
  InferenceOptions inference{.kernels = Kernels::nngp};
  inference.fit.transform = TargetTransform::log;
  const Matrix<double> truth = prices(fits.x_new, 7);
  const auto predictions = infer({.targets = fits.y}, truth, inference, std::move(grams), direct_solver);
  check_matrix(predictions[0].mean, expected.mean, 1e-11);
  check_matrix(predictions[0].variance, expected.variance, 1e-9);
  CHECK(*predictions[0].log_marginal_likelihood ==
        Approx(fits.model.log_marginal_likelihood()).epsilon(1e-11));
  CHECK(predictions[0].scores->negative_log_predictive_density ==
        Approx(negative_log_predictive_density(expected.mean, expected.observation_variance(), truth,
                                               expected.law))
            .epsilon(1e-10));
}

TEST_CASE("target transform: with the tails of auto, means of logarithms stay in the range of the targets") {
  const Fits fits;
  ModelOptions options = in_logarithms();
  options.fits_tails = true;
  const Model model = Model::fit(network(), Inputs<double>(fits.x), fits.y, options);
  const Inputs<double> far(Matrix<double>(30 * fits.x_new));
  const Matrix<double> logs = fits.of_logarithms.predict(far).mean, y = fits.y.array().log();
  const ModelPrediction found = model.predict(far);
  const Matrix<double> observed = found.observation_variance();
  bool is_cut = false;
  for (Index k = 0; k < 2; ++k)
    for (Index i = 0; i < 9; ++i) {
      const auto [lower, upper] = found.law.interval(0.5, found.mean(i, k), observed(i, k));
      const double cut = std::clamp(logs(i, k), y.col(k).minCoeff(), y.col(k).maxCoeff());
      CHECK(std::log(lower * upper) / 2 == Approx(cut).epsilon(1e-9));
      is_cut = is_cut || cut != logs(i, k);
    }
  CHECK(is_cut);
  const TemporaryFolder folder;
  model.save(folder.path() / "model");
  const Model loaded = Model::load(folder.path() / "model");
  CHECK(loaded.target_scale().range() == model.target_scale().range());
  CHECK(loaded.predict(far).mean == found.mean);
}

TEST_CASE("target transform: what has no logarithm is refused") {
  const Fits fits;
  Matrix<double> y = fits.y;
  y(3, 1) = 0;
  CHECK_THROWS_WITH_AS((void)Model::fit(network(), Inputs<double>(fits.x), y, in_logarithms()),
                       doctest::Contains("training target 3 of output 1 (from 0) is 0"), ArgumentError);
  ModelOptions options = in_logarithms();
  options.noise = AbsoluteNoise(0.1);
  CHECK_THROWS_WITH_AS((void)Model::fit(network(), Inputs<double>(fits.x), fits.y, options),
                       doctest::Contains("transform: noise_variances are in units of the targets"),
                       ArgumentError);
  options = in_logarithms();
  options.class_names = {"a", "b"};
  CHECK_THROWS_WITH_AS((void)Model::fit(network(), Inputs<double>(fits.x), fits.y, options),
                       doctest::Contains("transform: classes have no logarithms"), ArgumentError);
  // Far from the training inputs a linear network leaves the range of double.
  const Model linear = Model::fit(models::named_network("fcn", {{"axes", 0}, {"depth", 1}}),
                                  Inputs<double>(fits.x), fits.y, in_logarithms());
  CHECK_THROWS_WITH_AS((void)linear.predict(Inputs<double>(Matrix<double>(1e4 * fits.x_new))),
                       doctest::Contains("is inf in the units of the targets"), NumericalError);
  // Squares of numbers that are too small are lost as well.
  CHECK_THROWS_WITH_AS((void)linear.predict(Inputs<double>(Matrix<double>(-1e4 * fits.x_new))),
                       doctest::Contains("in the units of the targets"), NumericalError);
  // Logarithms of validation targets are asked for too; auto does not take them where there are none.
  Matrix<double> held = prices(fits.x_new, 4);
  held(2, 0) = -1;
  CHECK_THROWS_WITH_AS(
      (void)Model::fit<double>(network(), {fits.x, fits.y}, {fits.x_new, held}, in_logarithms()),
      doctest::Contains("validation target 2 of output 0 (from 0) is -1"), ArgumentError);
  CHECK(choose_network(Inputs<double>(fits.x), {.targets = fits.y, .validation = held}).transform ==
        TargetTransform::none);
}

TEST_CASE("target transform: auto fits logarithms where noise is a share, and targets where it is not") {
  const Matrix<double> x = random_matrix(120, 3, 4);
  const Matrix<double> y = prices(x, 5).col(0);
  const AutomaticNetwork found = choose_network(Inputs<double>(x), {.targets = y});
  CHECK(found.transform == TargetTransform::log);
  CHECK(found.trials[found.chosen].targets == TargetTransform::log);
  CHECK(automatic_text(found, TargetKind::numbers).find("targets as logarithms (") != std::string::npos);
  const AutomaticNetwork in_cents = choose_network(Inputs<double>(x), {.targets = 100 * y});
  CHECK(in_cents.chosen == found.chosen);
  CHECK(in_cents.trials[found.chosen].score ==
        Approx(found.trials[found.chosen].score + std::log(100)).epsilon(1e-9));

  // The score of a transform alone is that beside the other one.
  AutomaticOptions alone;
  alone.transform = TargetTransform::log;
  const AutomaticNetwork same = choose_network(Inputs<double>(x), {.targets = y}, alone);
  CHECK(same.trials.size() * 2 == found.trials.size());
  CHECK(same.trials[same.chosen].score == Approx(found.trials[found.chosen].score).epsilon(1e-9));

  const Matrix<double> plain =
      5 + (x * random_matrix(3, 1, 6)).array() + 0.3 * random_matrix(120, 1, 8).array();
  CHECK(choose_network(Inputs<double>(x), {.targets = plain.array() - plain.minCoeff() + 0.5}).transform ==
        TargetTransform::none);
  CHECK(choose_network(Inputs<double>(x), {.targets = y.array() - y.minCoeff()}).transform ==
        TargetTransform::none);
  // Of noise over many decades a mean says nothing.
  const Matrix<double> wild = (30 * random_matrix(120, 1, 9)).array().exp();
  CHECK(choose_network(Inputs<double>(x), {.targets = wild}).transform == TargetTransform::none);
  ModelOptions known;
  known.noise = AbsoluteNoise(1);
  CHECK(automatic_options(known).transform == TargetTransform::none);
}
