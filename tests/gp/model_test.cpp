// A model: what its parts make of the data, by hand; samples; what it refuses.
#include "widelimit/gp/model.hpp"

#include <doctest/doctest.h>

#include <Eigen/Cholesky>
#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <filesystem>
#include <limits>
#include <xtensor/xmath.hpp>

#include "data/temporary_folder.hpp"
#include "gp/problem.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/calibration.hpp"
#include "widelimit/gp/regression.hpp"
#include "widelimit/gp/resources.hpp"
#include "widelimit/gp/targets.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/models/named_networks.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;
using doctest::Approx;

namespace {

const Network& model_network() {
  static const Network network = models::named_network("fcn", {{"axes", 0}, {"depth", 2}});
  return network;
}

Matrix<double> model_inputs(Index n, std::uint64_t seed) { return random_matrix(n, 4, seed); }

Matrix<double> model_targets(const Matrix<double>& x) {
  Matrix<double> y(x.rows(), 2);
  y.col(0) = (x.col(0).array() * x.col(1).array()).sin();
  y.col(1) = x.col(2) - 0.2 * x.col(3);
  return y;
}

/// The p-value of a sum of squares of standard normals.
double chi_squared_p(double sum, double degrees) {
  return boost::math::cdf(boost::math::complement(boost::math::chi_squared(degrees), sum));
}

/// Whitened by the covariance that they should have, samples are standard normal.
double whitened_p(const std::vector<Matrix<double>>& samples, const Matrix<double>& mean,
                  const Matrix<double>& covariance) {
  const Eigen::LLT<Eigen::MatrixXd> factor{Eigen::MatrixXd(covariance)};
  REQUIRE(factor.info() == Eigen::Success);
  double sum = 0;
  for (const Matrix<double>& sample : samples)
    sum += factor.matrixL().solve(Eigen::MatrixXd(sample - mean)).squaredNorm();
  return chi_squared_p(sum, static_cast<double>(samples.size()) * static_cast<double>(mean.size()));
}

}  // namespace

TEST_CASE("model: inputs of another scale than the training inputs are told") {
  const auto images = testing::random_inputs(1, {6, 3, 3, 1});
  const xt::xarray<double> x = xt::abs(images) / xt::amax(xt::abs(images))(), bytes = 255 * x, black = 0 * x;
  const xt::xarray<float> x_float = x, bytes_float = bytes;
  const Network network({layers::flatten(), layers::dense()});
  const Matrix<double> y = random_matrix(6, 1, 2);
  const gp::ModelOptions options{.noise = gp::RelativeRegulariser(0.1)};
  const gp::Model model = gp::Model::fit(network, Inputs<double>(x), y, options),
                  in_float = gp::Model::fit(network, Inputs<float>(x_float), y, options),
                  of_bytes = gp::Model::fit(network, Inputs<double>(bytes), y, options);
  for (const gp::Model* one : {&model, &in_float}) {
    CHECK(one->range_warning(Inputs<double>(x)) == "");
    CHECK(one->range_warning(Inputs<double>(xt::xarray<double>(3 * x))) == "");
    CHECK(one->range_warning(Inputs<double>(black)) == "");
    for (const std::string& warning :
         {one->range_warning(Inputs<double>(bytes)), one->range_warning(Inputs<float>(bytes_float))}) {
      CHECK(warning.find(" to 255, those of the training inputs from ") != std::string::npos);
      CHECK(warning.find(" to 1: are both scaled alike?") != std::string::npos);
    }
  }
  CHECK(of_bytes.range_warning(Inputs<double>(bytes)) == "");
  CHECK(of_bytes.range_warning(Inputs<double>(x)) != "");
  // Numbers of a table may be anywhere within their range.
  const Matrix<double> rows = random_matrix(8, 2, 3), inner = 1e-3 * rows, outer = 1e3 * rows;
  const gp::Model of_rows =
      gp::Model::fit(Network({layers::dense()}), Inputs<double>(rows), random_matrix(8, 1, 4), options);
  CHECK(of_rows.range_warning(Inputs<double>(inner)) == "");
  CHECK(of_rows.range_warning(Inputs<double>(outer)) != "");
}

TEST_CASE("model: training inputs among others are counted, number for number") {
  Matrix<double> x = model_inputs(9, 1);
  x(0, 0) = 0;
  Matrix<double> others(4, 4);
  others << x.row(3), x.row(0), model_inputs(1, 2), x.row(8);
  others(1, 0) = -0.0;
  others(3, 2) += 1e-9;
  const Model model = Model::fit(model_network(), Inputs<double>(x), model_targets(x));
  CHECK(model.training_inputs_among(Inputs<double>(others)) == 2);
  CHECK(model.training_inputs_among(Inputs<double>(x)) == 9);
  // In float the last row is a training row as well.
  const Matrix<float> rounded = x.cast<float>();
  const Model narrow = Model::fit(model_network(), Inputs<float>(rounded), model_targets(x));
  CHECK(narrow.training_inputs_among(Inputs<double>(others)) == 3);
  CHECK(narrow.training_inputs_among(Inputs<float>(rounded)) == 9);
}

TEST_CASE("model: new inputs are like those of the training") {
  const Matrix<double> x = model_inputs(10, 1);
  const Model model = Model::fit(model_network(), Inputs<double>(x), model_targets(x), {});
  CHECK_THROWS_WITH_AS(
      (void)model.predict(Inputs<double>(random_matrix(3, 5, 2))),
      "Model: expected inputs like those of the training, with no positions and 4 channels; got no "
      "positions and 5 channels",
      ArgumentError);
  const Matrix<double> numbers = random_matrix(3, 8, 2);
  CHECK_THROWS_WITH_AS((void)model.mean(Inputs<double>(numbers.data(), {3, 2, 4})),
                       doctest::Contains("got positions [2] and 4 channels"), ArgumentError);
}

TEST_CASE("model: what predictions take is known before") {
  const Matrix<double> x = model_inputs(30, 1);
  ModelOptions options;
  options.noise = RelativeRegulariser(0.1);
  const Model bayesian = Model::fit(model_network(), Inputs<double>(x), model_targets(x), options);
  options.kind = ModelKind::trained;
  const Matrix<float> single = x.cast<float>();
  const Model trained = Model::fit(model_network(), Inputs<float>(single), model_targets(x), options);
  const Matrix<double> others = model_inputs(7, 2);
  const Workload one = bayesian.workload(Inputs<double>(others), {.threads = 1});
  CHECK(one.work == Work::new_inputs);
  CHECK(one.needs.inputs == 30);
  CHECK(one.needs.test == 7);
  CHECK(one.needs.outputs == 2);
  CHECK(one.needs.kernels == Kernels::nngp);
  CHECK(one.needs.entry_bytes == sizeof(double));
  CHECK(one.input_bytes == 0);
  CHECK(one.posteriors == 1);
  REQUIRE(one.plan);
  CHECK(one.plan->threads == 1);
  // Kernels are computed in the precision of the training inputs, of which the new ones get a copy.
  const Workload both = trained.workload(Inputs<double>(others));
  CHECK(both.needs.kernels == Kernels::both);
  CHECK(both.needs.entry_bytes == sizeof(float));
  CHECK(both.input_bytes == 7 * 4 * sizeof(float));
  CHECK_THROWS_AS((void)bayesian.workload(Inputs<double>(random_matrix(3, 5, 2))), ArgumentError);
}

TEST_CASE("model: a bayesian one is a Regression with the network's NNGP, bit for bit") {
  const Matrix<double> x = model_inputs(30, 1), test = model_inputs(6, 2), y = model_targets(x);
  const Model model = Model::fit(model_network(), Inputs<double>(x), y,
                                 {.noise = RelativeRegulariser(0.02), .targets_as_they_are = true});
  const auto train = gram<double>(model_network(), x), cross = gram<double>(model_network(), test, x),
             own = gram<double>(model_network(), test);
  const Regression regression = Regression::fit(train.nngp, y, RelativeRegulariser(0.02));
  const ModelPrediction prediction = model.predict(Inputs<double>(test));
  CHECK(prediction.mean == regression.mean(cross.nngp));
  double evidence = 0;
  for (Index c = 0; c < 2; ++c) {
    const Regression output = regression.output(c, y);
    CHECK(prediction.variance.col(c) == output.variance(cross.nngp, own.nngp.diagonal()));
    CHECK(prediction.noise_variance(c) == output.noise_variance());
    CHECK(model.amplitude()(c) == output.amplitude());
    evidence += output.log_marginal_likelihood();
  }
  CHECK(model.amplitude()(0) != model.amplitude()(1));
  CHECK(prediction.standard_deviation() == Matrix<double>(prediction.variance.cwiseSqrt()));
  CHECK(prediction.class_probabilities.size() == 0);
  CHECK(model.mean(Inputs<double>(test)) == prediction.mean);
  const JointPrediction joint = model.predict_jointly(Inputs<double>(test));
  CHECK(joint.mean == prediction.mean);
  CHECK(joint.covariance(1) == regression.output(1, y).covariance(cross.nngp, own.nngp));
  CHECK(model.log_marginal_likelihood() == evidence);
  CHECK(model.kind() == ModelKind::bayesian);
  CHECK(model.train_size() == 30);
  CHECK(model.outputs() == 2);
  CHECK(model.network() == model_network());
  CHECK(model.selections().empty());
}

TEST_CASE("model: trained networks are a GradientFlow with both kernels, at any time") {
  const Matrix<double> x = model_inputs(25, 3), test = model_inputs(5, 4), y = model_targets(x);
  const auto train = gram<double>(model_network(), x), cross = gram<double>(model_network(), test, x),
             own = gram<double>(model_network(), test);
  for (const double time : {0.0, 0.7, infinite_time}) {
    CAPTURE(time);
    const Model model = Model::fit(model_network(), Inputs<double>(x), y,
                                   {.kind = ModelKind::trained,
                                    .time = time,
                                    .noise = RelativeRegulariser(1e-3),
                                    .targets_as_they_are = true});
    const GradientFlow flow = GradientFlow::fit(train.nngp, train.ntk, y, RelativeRegulariser(1e-3));
    const Vector<double> amplitudes = flow.leave_one_out().most_likely_scales("test");
    const ModelPrediction prediction = model.predict(Inputs<double>(test));
    const Matrix<double> mean = flow.mean(time, cross.ntk);
    CHECK((prediction.mean - mean).cwiseAbs().maxCoeff() <= 1e-13 * mean.cwiseAbs().maxCoeff());
    if (time == 0) CHECK(prediction.mean.isZero(0));
    for (Index c = 0; c < 2; ++c) {
      const GradientFlow scaled = flow.with_amplitude(amplitudes(c));
      CHECK(prediction.variance.col(c) == scaled.variance(time, cross.nngp, cross.ntk, own.nngp.diagonal()));
      CHECK(relative_difference(model.predict_jointly(Inputs<double>(test)).covariance(c),
                                scaled.covariance(time, cross.nngp, cross.ntk, own.nngp)) < 1e-14);
    }
    CHECK(model.time() == time);
    CHECK_THROWS_WITH_AS((void)model.log_marginal_likelihood(),
                         doctest::Contains("trained networks have no evidence"), ArgumentError);
    if (time == infinite_time)
      CHECK(model.leave_one_out().variances.col(1) == amplitudes(1) * flow.leave_one_out().variances);
    else
      CHECK_THROWS_WITH_AS(
          (void)model.leave_one_out(),
          doctest::Contains(
              "have no closed form, only those trained for infinite time; hold data back and predict them"),
          ArgumentError);
  }
}

TEST_CASE("model: observations have Student's t distribution where the amplitude is fitted to numbers") {
  const Matrix<double> x = model_inputs(9, 1), y = model_targets(x);
  const Inputs<double> inputs(x), test(model_inputs(3, 2));
  const auto law_with = [&](const ModelOptions& options) {
    return Model::fit(model_network(), inputs, y, options).predict(test).law;
  };
  ModelOptions options;
  CHECK(law_with(options) == ObservationLaw{8, std::sqrt(9.0 / 8)});
  options.kind = ModelKind::trained;
  options.time = 3;
  CHECK(law_with(options) == ObservationLaw{8, std::sqrt(9.0 / 8)});
  options = {};
  options.targets_as_they_are = true;
  CHECK(law_with(options) == ObservationLaw{9, 1});
  options = {};
  options.amplitude = 1;
  CHECK(law_with(options).is_normal());
  options = {};
  options.noise = AbsoluteNoise(0.1);
  CHECK(law_with(options).is_normal());
  options = {};
  options.class_names = {"a", "b"};
  CHECK(law_with(options).is_normal());
  CHECK(Model::fit(model_network(), inputs, y).with_amplitude(2).predict(test).law.is_normal());
  // A refit has the rows of both sets.
  options = {};
  options.refit = true;
  const Matrix<double> more = model_inputs(5, 3);
  const Model both =
      Model::fit<double>(model_network(), {inputs, y}, {Inputs<double>(more), model_targets(more)}, options);
  CHECK(both.predict(test).law.degrees_of_freedom == 13);
}

TEST_CASE("model: single inputs are predicted as in a batch, of either precision") {
  const Matrix<double> x = model_inputs(20, 5), test = model_inputs(7, 6);
  const ModelOptions options{.noise = RelativeRegulariser(0.01)};
  const Model model = Model::fit(model_network(), Inputs<double>(x), model_targets(x), options);
  const ModelPrediction batch = model.predict(Inputs<double>(test));
  const Matrix<float> x_float = x.cast<float>(), test_float = test.cast<float>();
  const Model of_float = Model::fit(model_network(), Inputs<float>(x_float), model_targets(x), options);
  for (Index i = 0; i < 7; ++i) {
    const Matrix<double> row = test.row(i);
    const ModelPrediction one = model.predict(Inputs<double>(row));
    CHECK((one.mean.row(0) - batch.mean.row(i)).norm() < 1e-12);
    CHECK(one.variance(0, 1) == Approx(batch.variance(i, 1)).epsilon(1e-9));
  }
  const Matrix<double> rounded = test_float.cast<double>();
  CHECK(of_float.predict(Inputs<double>(rounded)).mean == of_float.predict(Inputs<float>(test_float)).mean);
  CHECK(relative_difference(of_float.predict(Inputs<float>(test_float)).mean, batch.mean) < 1e-3);
}

TEST_CASE("model: classes have probabilities, names and labels") {
  const Matrix<double> x = model_inputs(40, 7), test = model_inputs(5, 8);
  std::vector<int> labels(40);
  for (Index i = 0; i < 40; ++i)
    labels[static_cast<std::size_t>(i)] = x(i, 0) > 0.3 ? 2 : x(i, 1) > 0 ? 1 : 0;
  ModelOptions options;
  options.noise = RelativeRegulariser(0.05);
  const Model model = Model::fit(model_network(), Inputs<double>(x), labels, options);
  CHECK(model.class_names() == std::vector<std::string>{"0", "1", "2"});
  options.class_names = {"red", "green", "blue"};
  const Model named = Model::fit(model_network(), Inputs<double>(x), labels, options);
  CHECK(named.class_names()[1] == "green");
  const ModelPrediction prediction = named.predict(Inputs<double>(test));
  CHECK(prediction.class_probabilities ==
        named.class_calibration().probabilities(prediction.mean, prediction.observation_variance().col(0)));
  // The calibration is that of the labels left out.
  const ModelLeaveOneOut others = named.leave_one_out();
  const ClassCalibration fitted =
      fit_class_calibration(class_targets(labels, 3) - others.residuals, others.variances.col(0), labels)
          .calibration;
  CHECK(named.class_calibration().scale == Approx(fitted.scale).epsilon(1e-6));
  CHECK((named.class_calibration().shifts - fitted.shifts).cwiseAbs().maxCoeff() < 1e-6);
  CHECK(named.with_amplitude(2).class_calibration().shifts.size() == 0);
  const Model by_targets = Model::fit(model_network(), Inputs<double>(x), class_targets(labels, 3), options);
  CHECK(by_targets.predict(Inputs<double>(test)).mean == prediction.mean);
  options.class_names = {"one", "two"};
  CHECK_THROWS_AS((void)Model::fit(model_network(), Inputs<double>(x), labels, options), ArgumentError);
  CHECK_THROWS_WITH_AS(
      (void)Model::fit(model_network(), Inputs<double>(x), class_targets(labels, 3), options),
      doctest::Contains("expected 3 class names for 3 outputs, got 2"), ArgumentError);
  options.class_names = {};
  const std::vector<int> one_class(40, 0);
  CHECK_THROWS_WITH_AS((void)Model::fit(model_network(), Inputs<double>(x), one_class, options),
                       doctest::Contains("expected labels of two or more classes, got '0' only"),
                       ArgumentError);
  for (const char* preparation : {"", "words", "[1, 2]", "{\"open\": "}) {
    options.preparation = preparation;
    CHECK_THROWS_WITH_AS((void)Model::fit(model_network(), Inputs<double>(x), labels, options),
                         doctest::Contains("preparation: expected the text of a JSON object, got"),
                         ArgumentError);
  }
}

TEST_CASE("model: regularisers are chosen by the criterion, refits take all data") {
  const Matrix<double> x = model_inputs(40, 9), validation_x = model_inputs(15, 10),
                       test = model_inputs(5, 11);
  const LabelledInputs<double> train{Inputs<double>(x), model_targets(x).leftCols(1)},
      validation{Inputs<double>(validation_x), model_targets(validation_x).leftCols(1)};
  Matrix<double> all(55, 4);
  all << x, validation_x;
  for (const ModelKind kind : {ModelKind::bayesian, ModelKind::trained})
    for (const Criterion criterion : {Criterion::mean_squared_error, Criterion::leave_one_out}) {
      ModelOptions options{.kind = kind, .grid = {1e-3, 1e-2, 0.1}, .criterion = criterion};
      const Model model = Model::fit(model_network(), train, validation, options);
      REQUIRE(model.selections().size() == 1);
      CHECK(model.selections()[0].scores.size() == 3);
      ModelOptions fixed{.kind = kind, .noise = model.selections()[0].best};
      CHECK(Model::fit(model_network(), train.x, train.y, fixed).mean(Inputs<double>(test)) ==
            model.mean(Inputs<double>(test)));
      options.refit = true;
      const Model refitted = Model::fit(model_network(), train, validation, options);
      CHECK(refitted.train_size() == 55);
      CHECK(relative_difference(
                refitted.mean(Inputs<double>(test)),
                Model::fit(model_network(), Inputs<double>(all), model_targets(all).leftCols(1), fixed)
                    .mean(Inputs<double>(test))) < 1e-8);
    }
}

TEST_CASE("model: posterior and prior samples have the distribution that the model says") {
  const Matrix<double> x = model_inputs(20, 12), test = model_inputs(6, 13);
  for (const ModelKind kind : {ModelKind::bayesian, ModelKind::trained}) {
    const Model model = Model::fit(model_network(), Inputs<double>(x), model_targets(x).leftCols(1),
                                   {.kind = kind, .noise = RelativeRegulariser(0.05)});
    const JointPrediction joint = model.predict_jointly(Inputs<double>(test));
    const Matrix<double>&mean = joint.mean, &covariance = joint.covariance();
    const auto samples = model.samples(Inputs<double>(test), 400, 5);
    const double p = whitened_p(samples, mean, covariance);
    CHECK(p > 1e-3);
    CHECK(p < 1 - 1e-3);
    // Marginal samples have the variances, without the covariances: their own test tells, the joint one fails.
    const auto marginal = model.samples(Inputs<double>(test), 400, 5, Sampling::marginal);
    const double marginal_p = whitened_p(marginal, mean, Matrix<double>(covariance.diagonal().asDiagonal()));
    CHECK(marginal_p > 1e-3);
    CHECK(marginal_p < 1 - 1e-3);
    CHECK(whitened_p(marginal, mean, covariance) < 1e-6);
    const TargetScale& scale = model.target_scale();
    const Matrix<double> prior = model.amplitude()(0) * scale.factors()(0) * scale.factors()(0) *
                                 gram<double>(model_network(), test).nngp;
    const auto of_prior = model.prior_samples(Inputs<double>(test), 400, 6);
    const double prior_p = whitened_p(of_prior, Matrix<double>::Constant(6, 1, scale.offsets()(0)), prior);
    CHECK(prior_p > 1e-3);
    CHECK(prior_p < 1 - 1e-3);
    CHECK(model.samples(Inputs<double>(test), 3, 5)[2] == samples[2]);
    CHECK_FALSE(model.samples(Inputs<double>(test), 1, 7)[0] == samples[0]);
    // Where next to nothing is left to know, samples are the data.
    const auto at_training = model.samples(Inputs<double>(x), 2, 1);
    CHECK(at_training[0].allFinite());
    CHECK_THROWS_WITH_AS((void)model.samples(Inputs<double>(test), 0, 1),
                         doctest::Contains("expected a count of at least 1, got 0"), ArgumentError);
  }
}

TEST_CASE("model: of one seed, functions of the prior and of the posterior are independent") {
  const Matrix<double> x = model_inputs(8, 12), test = model_inputs(6, 13);
  // Next to nothing is learnt: with the same normals both would be the same functions.
  const Model model = Model::fit(model_network(), Inputs<double>(x), model_targets(x).leftCols(1),
                                 {.noise = RelativeRegulariser(1e8), .amplitude = 1.0});
  const auto prior = model.prior_samples(Inputs<double>(test), 400, 5);
  const auto posterior = model.samples(Inputs<double>(test), 400, 5);
  double products = 0, squares = 0, others = 0;
  for (std::size_t k = 0; k < prior.size(); ++k) {
    const double offset = model.target_scale().offsets()(0);
    const double one = prior[k](0) - offset, other = posterior[k](0) - offset;
    products += one * other;
    squares += one * one;
    others += other * other;
  }
  CHECK(std::abs(products) < 4 / std::sqrt(400.0) * std::sqrt(squares * others));
}

TEST_CASE("model: options and data that do not fit") {
  const Matrix<double> x = model_inputs(12, 14), y = model_targets(x);
  const auto fit = [&](const Matrix<double>& targets, const ModelOptions& options) {
    return Model::fit(model_network(), Inputs<double>(x), targets, options);
  };
  CHECK_THROWS_WITH_AS((void)fit(y.topRows(11), {}),
                       "Model::fit: expected the targets [12, outputs], a row for each input, got [11, 2]",
                       ArgumentError);
  Matrix<double> bad = y;
  bad(3, 1) = std::nan("");
  CHECK_THROWS_WITH_AS((void)fit(bad, {}), doctest::Contains("must be finite"), ArgumentError);
  CHECK_THROWS_WITH_AS((void)fit(y, {.time = 2}), doctest::Contains("time: gradient flow needs the NTK"),
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)fit(y, {.kind = ModelKind::trained, .time = -1}),
                       doctest::Contains("time must be 0 or more"), ArgumentError);
  CHECK_THROWS_WITH_AS((void)fit(y, {.criterion = Criterion::mean_squared_error}),
                       doctest::Contains("it is measured on validation data"), ArgumentError);
  CHECK_THROWS_WITH_AS((void)fit(y, {.criterion = Criterion::accuracy}),
                       doctest::Contains("counts classes that are right, and the targets are numbers"),
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)fit(y, {.refit = true}), doctest::Contains("refit: it takes validation data"),
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)fit(y, {.kind = ModelKind::trained, .criterion = Criterion::evidence}),
                       doctest::Contains("trained networks have no evidence"), ArgumentError);
  CHECK_THROWS_WITH_AS((void)fit(0 * y, {.noise = RelativeRegulariser(0.1)}),
                       doctest::Contains("the training targets of output 0 (from 0) are all 0"),
                       ArgumentError);
  CHECK(fit(0 * y, {.noise = RelativeRegulariser(0.1), .amplitude = 2.0}).amplitude() ==
        Vector<double>::Constant(2, 2.0));
  const Model model = fit(y, {});
  CHECK_THROWS_AS((void)model.predict(Inputs<double>(Matrix<double>(random_matrix(2, 5, 1)))), ArgumentError);
}

TEST_CASE("models at other times: those that are fitted for them, to the bit") {
  const Matrix<double> x = model_inputs(24, 31), test = model_inputs(5, 32);
  const Inputs<double> train(x), others(test);
  const Matrix<double> y = model_targets(x);
  ModelOptions options{.kind = ModelKind::trained};
  const std::vector<double> times{0, 0.7, 20, infinite_time};
  for (const bool classes : {false, true}) {
    CAPTURE(classes);
    options.class_names = classes ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{};
    options.time = 3;
    const Model model = Model::fit(model_network(), train, y, options);
    const std::vector<ModelPrediction> together = model.predict(others, times);
    REQUIRE(together.size() == times.size());
    for (std::size_t i = 0; i < times.size(); ++i) {
      CAPTURE(times[i]);
      options.time = times[i];
      const ModelPrediction expected = Model::fit(model_network(), train, y, options).predict(others);
      const Model there = model.at_time(times[i]);
      CHECK(there.time() == times[i]);
      for (const ModelPrediction& found : {there.predict(others), together[i]}) {
        CHECK(found.mean == expected.mean);
        CHECK(found.variance == expected.variance);
        CHECK(found.noise_variance == expected.noise_variance);
        CHECK(found.class_probabilities == expected.class_probabilities);
      }
    }
    CHECK(together[0].mean.rowwise().maxCoeff() != together[1].mean.rowwise().maxCoeff());
    CHECK(model.time() == 3);
  }
}

TEST_CASE("models at other times: what has none is refused") {
  const Matrix<double> x = model_inputs(12, 33);
  const Inputs<double> train(x);
  const Matrix<double> y = model_targets(x);
  const Model bayesian = Model::fit(model_network(), train, y);
  CHECK_THROWS_WITH_AS(static_cast<void>(bayesian.at_time(1)),
                       doctest::Contains("gradient flow needs the NTK"), ArgumentError);
  const std::vector<double> one{1};
  CHECK_THROWS_AS(static_cast<void>(bayesian.predict(train, one)), ArgumentError);
  const Model trained = Model::fit(model_network(), train, y, {.kind = ModelKind::trained});
  CHECK_THROWS_WITH_AS(static_cast<void>(trained.at_time(-1)),
                       "Model::at_time: time must be 0 or more, or infinite_time, got -1", ArgumentError);
  CHECK_THROWS_AS(static_cast<void>(trained.at_time(std::numeric_limits<double>::quiet_NaN())),
                  ArgumentError);
  const Model iterative = Model::fit(
      model_network(), train, y,
      {.kind = ModelKind::trained, .noise = RelativeRegulariser(0.1), .solver = Solver::conjugate_gradients});
  CHECK_THROWS_WITH_AS(static_cast<void>(iterative.at_time(1)),
                       doctest::Contains("cg knows networks after training only"), ArgumentError);
  CHECK(iterative.at_time(infinite_time).mean(train) == iterative.mean(train));
}

TEST_CASE("models through stores: the bits of those from memory, from the tiles that are there") {
  const TemporaryFolder folder;
  const Matrix<double> x = model_inputs(24, 41), seen = model_inputs(7, 42), test = model_inputs(5, 43);
  const LabelledInputs<double> train{Inputs<double>(x), model_targets(x)};
  const LabelledInputs<double> validation{Inputs<double>(seen), model_targets(seen)};
  for (const ModelKind kind : {ModelKind::bayesian, ModelKind::trained}) {
    ModelOptions options{.kind = kind, .criterion = Criterion::mean_squared_error, .refit = true};
    const auto expected =
        Model::fit(model_network(), train, validation, options).predict(Inputs<double>(test));
    options.store_folder = folder.path() / (kind == ModelKind::trained ? "both" : "one");
    for (const bool again : {false, true}) {
      CAPTURE(again);
      Index done = 0;
      options.gram.progress = [&done](const GramProgress& progress) { done = progress.done; };
      const Model model = Model::fit(model_network(), train, validation, options);
      CHECK(done > 0);
      const ModelPrediction found = model.predict(Inputs<double>(test));
      CHECK(found.mean == expected.mean);
      CHECK(found.variance == expected.variance);
      for (const char* name : {"train", "validation-train", "validation"})
        CHECK(std::filesystem::exists(*options.store_folder / name / "zarr.json"));
    }
    options.gram.progress = {};
    options.gram_folder = folder.path() / "grams";
    CHECK_THROWS_WITH_AS(static_cast<void>(Model::fit(model_network(), train, validation, options)),
                         doctest::Contains("give one of them"), ArgumentError);
    options.gram_folder.reset();
    options.flip = true;
    CHECK_THROWS_WITH_AS(static_cast<void>(Model::fit(model_network(), train, validation, options)),
                         doctest::Contains("not averages over flips"), ArgumentError);
  }
}
