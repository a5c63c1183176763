// Models of conjugate gradients: what factorizations find, within the residual; folders; devices; what they refuse. The
// device is PoCL's, which executes OpenCL on the CPU.
#include <doctest/doctest.h>

#include <Eigen/LU>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <utility>

#include "data/temporary_folder.hpp"
#include "gp/folders/file_sum.hpp"
#include "gp/problem.hpp"
#include "gp/same_predictions.hpp"
#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/gp/resources.hpp"
#include "widelimit/models/named_networks.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using widelimit::gp_test::check_same_predictions;
using widelimit::gp_test::random_matrix;
using widelimit::testing::random_inputs;

namespace {

namespace fs = std::filesystem;

Network iterated_network() { return models::named_network("fcn", {{"axes", 0}, {"depth", 2}}); }

Matrix<double> iterated_targets(const Matrix<double>& x) {
  Matrix<double> y(x.rows(), 2);
  y.col(0) = 3 + (x.col(0).array() * x.col(1).array()).sin();
  y.col(1) = 0.2 * x.col(2) - 0.05 * x.col(3);
  return y;
}

template <typename Scalar>
LabelledInputs<Scalar> labelled(const Matrix<Scalar>& x) {
  return {Inputs<Scalar>(x), iterated_targets(x.template cast<double>())};
}

ModelOptions iterated_options(ModelKind kind) {
  ModelOptions options;
  options.kind = kind;
  options.solver = Solver::conjugate_gradients;
  options.residual = 1e-12;
  options.grid = {1e-3, 1e-2, 1e-1, 1};
  options.criterion = Criterion::mean_squared_error;
  return options;
}

ModelOptions factorized(ModelOptions options) {
  options.solver = Solver::cholesky;
  return options;
}

double difference(const Matrix<double>& a, const Matrix<double>& b) {
  REQUIRE(a.rows() == b.rows());
  REQUIRE(a.cols() == b.cols());
  return (a - b).cwiseAbs().maxCoeff() / b.cwiseAbs().maxCoeff();
}

constexpr double within = 1e-8;

template <typename Scalar>
void check_alike(const Model& iterated, const Model& direct, const Inputs<Scalar>& x,
                 const GramOptions& run = {}) {
  CHECK(iterated.solver() == Solver::conjugate_gradients);
  CHECK(direct.solver() == Solver::cholesky);
  CHECK(iterated.kind() == direct.kind());
  CHECK(iterated.time() == infinite_time);
  CHECK(difference(iterated.amplitude(), direct.amplitude()) < within);
  CHECK(difference(iterated.noise_variance(), direct.noise_variance()) < within);
  const ModelPrediction found = iterated.predict(x, run), expected = direct.predict(x);
  CHECK(difference(found.mean, expected.mean) < within);
  CHECK(difference(found.variance, expected.variance) < within);
  CHECK(difference(iterated.mean(x, run), expected.mean) < within);
  const JointPrediction jointly = iterated.predict_jointly(x, run),
                        jointly_direct = direct.predict_jointly(x);
  REQUIRE(jointly.covariances.size() == jointly_direct.covariances.size());
  for (std::size_t c = 0; c < jointly.covariances.size(); ++c) {
    CHECK(difference(jointly.covariances[c], jointly_direct.covariances[c]) < within);
    CHECK(jointly.covariances[c] == jointly.covariances[c].transpose());
  }
}

/// What a change of model.json makes of a folder.
template <typename Change>
std::string load_error(const fs::path& folder, const Change& change) {
  const fs::path changed = folder.parent_path() / "changed";
  fs::remove_all(changed);
  fs::copy(folder, changed);
  nlohmann::json document = nlohmann::json::parse(std::ifstream(changed / "model.json"));
  change(document);
  // The checksums are right: it is what the document says that is refused.
  document.erase("crc32");
  const std::string text = document.dump();
  document["crc32"] = sum_text(sum_with(0, text.data(), text.size()));
  std::ofstream(changed / "model.json") << document.dump();
  return testing::error_message<DataError>([&] { static_cast<void>(Model::load(changed)); });
}

}  // namespace

TEST_CASE_TEMPLATE(
    "iterative model: regularisers, amplitudes, means and covariances are those of factorizations", Scalar,
    float, double) {
  const Matrix<Scalar> train = random_matrix(90, 4, 1).cast<Scalar>(),
                       held = random_matrix(40, 4, 2).cast<Scalar>(),
                       test = random_matrix(30, 4, 3).cast<Scalar>();
  for (const ModelKind kind : {ModelKind::bayesian, ModelKind::trained})
    for (const bool refit : {false, true}) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(refit);
      ModelOptions options = iterated_options(kind);
      options.refit = refit;
      int passes = 0;
      options.iterations = [&](const std::string& kernel, int, double) {
        CHECK(kernel == (kind == ModelKind::bayesian ? "nngp" : "ntk"));
        ++passes;
      };
      const Model iterated = Model::fit(iterated_network(), labelled(train), labelled(held), options),
                  direct =
                      Model::fit(iterated_network(), labelled(train), labelled(held), factorized(options));
      CHECK(passes > 0);
      REQUIRE(iterated.selections().size() == 2);
      for (std::size_t c = 0; c < 2; ++c) {
        const Selection &found = iterated.selections()[c], &expected = direct.selections()[c];
        CHECK(found.best.value() == expected.best.value());
        for (std::size_t k = 0; k < expected.scores.size(); ++k)
          CHECK(found.scores[k].mean_squared_error ==
                doctest::Approx(expected.scores[k].mean_squared_error).epsilon(1e-7));
      }
      CHECK(iterated.train_size() == (refit ? 130 : 90));
      check_alike(iterated, direct, Inputs<Scalar>(test));
      const auto scores = Model::select<Scalar>(iterated_network(), labelled(train), labelled(held), options);
      CHECK(scores[0].best.value() == iterated.selections()[0].best.value());
    }
}

TEST_CASE("iterative model: the posterior written out") {
  const Matrix<double> x = random_matrix(60, 4, 1), test = random_matrix(7, 4, 2);
  const Matrix<double> y = iterated_targets(x).leftCols(1);
  ModelOptions options = iterated_options(ModelKind::bayesian);
  options.noise = AbsoluteNoise(0.04);
  options.targets_as_they_are = true;
  const Model model = Model::fit(iterated_network(), Inputs<double>(x), y, options);
  const auto kernel = [](const Matrix<double>& a, const Matrix<double>& b) {
    return Eigen::MatrixXd(
        gram(iterated_network(), Inputs<double>(a), Inputs<double>(b), {.kernels = Kernels::nngp}).nngp);
  };
  const Eigen::MatrixXd inverse = (kernel(x, x) + 0.04 * Eigen::MatrixXd::Identity(60, 60)).inverse(),
                        cross = kernel(test, x);
  const ModelPrediction found = model.predict(Inputs<double>(test));
  CHECK(difference(found.mean, cross * inverse * y) < within);
  CHECK(difference(found.variance, (kernel(test, test) - cross * inverse * cross.transpose()).diagonal()) <
        within);
  CHECK(found.noise_variance(0) == doctest::Approx(0.04).epsilon(1e-13));
  CHECK(model.amplitude()(0) == 1);
}

TEST_CASE("iterative model: a given regulariser, classes, weights and known noise") {
  const Matrix<double> x = random_matrix(70, 4, 1), test = random_matrix(9, 4, 2);
  const Matrix<double> y = iterated_targets(x);
  const Inputs<double> inputs(x), others(test);
  ModelOptions options = iterated_options(ModelKind::bayesian);
  options.noise = RelativeRegulariser(0.02);
  options.weights = (random_matrix(70, 1, 5).col(0).array().abs() + 0.1).matrix();
  check_alike(Model::fit(iterated_network(), inputs, y, options),
              Model::fit(iterated_network(), inputs, y, factorized(options)), others);
  options.noise.reset();
  options.noise_variances = std::exchange(options.weights, Vector<double>());
  CHECK_THROWS_WITH_AS((void)Model::fit(iterated_network(), inputs, y, options),
                       doctest::Contains("cg takes amplitude with noise_variances"), ArgumentError);
  options.amplitude = 0.7;
  check_alike(Model::fit(iterated_network(), inputs, y, options),
              Model::fit(iterated_network(), inputs, y, factorized(options)), others);

  std::vector<int> labels;
  for (Index i = 0; i < x.rows(); ++i) labels.push_back(x(i, 0) > 0.3 ? 2 : x(i, 1) > 0 ? 1 : 0);
  for (const ModelKind kind : {ModelKind::bayesian, ModelKind::trained}) {
    ModelOptions of_classes = iterated_options(kind);
    of_classes.noise = RelativeRegulariser(0.1);
    const Model classes = Model::fit(iterated_network(), inputs, std::span<const int>(labels), of_classes);
    check_alike(classes,
                Model::fit(iterated_network(), inputs, std::span<const int>(labels), factorized(of_classes)),
                others);
    // There is no calibration without predictions of targets left out.
    const ModelPrediction found = classes.predict(others);
    CHECK(classes.class_calibration().shifts.size() == 0);
    CHECK(found.class_probabilities.cols() == 3);
    CHECK((found.class_probabilities.rowwise().sum().array() - 1).abs().maxCoeff() < 1e-12);
  }
}

TEST_CASE("iterative model: mirror images and kept Gram matrices") {
  const xt::xarray<double> images = random_inputs(1, {24, 4, 4, 2}), others = random_inputs(2, {5, 4, 4, 2});
  const Network network = models::named_network("conv-gap", {{"depth", 2}});
  const Matrix<double> y = random_matrix(24, 1, 3);
  const TemporaryFolder folder;
  ModelOptions options = iterated_options(ModelKind::trained);
  options.noise = RelativeRegulariser(0.1);
  options.flip = true;
  options.gram_folder = folder.path() / "kept";
  const Model first = Model::fit(network, Inputs<double>(images), y, options),
              again = Model::fit(network, Inputs<double>(images), y, options);
  check_alike(first, Model::fit(network, Inputs<double>(images), y, factorized(options)),
              Inputs<double>(others));
  check_same_predictions(first, again, Inputs<double>(others));
  first.save(folder.path() / "model");
  check_same_predictions(first, Model::load(folder.path() / "model"), Inputs<double>(others));
}

TEST_CASE("iterative model: folders hold weights alone, and what is loaded predicts the same bits") {
  const Matrix<double> x = random_matrix(50, 4, 1), test = random_matrix(6, 4, 2);
  const TemporaryFolder folder;
  const fs::path place = folder.path() / "model";
  for (const ModelKind kind : {ModelKind::bayesian, ModelKind::trained}) {
    ModelOptions options = iterated_options(kind);
    options.noise = RelativeRegulariser(0.1);
    if (kind == ModelKind::bayesian) options.weights = random_matrix(50, 1, 5).col(0).cwiseAbs();
    const Model model = Model::fit(iterated_network(), Inputs<double>(x), iterated_targets(x), options);
    model.save(place);
    const Model loaded = Model::load(place);
    CHECK(loaded.solver() == Solver::conjugate_gradients);
    CHECK(loaded.kind() == kind);
    check_same_predictions(model, loaded, Inputs<double>(test));
    check_same_predictions(model.with_amplitude(2), loaded.with_amplitude(2), Inputs<double>(test));
    CHECK(loaded.mean(Inputs<double>(test)) == model.mean(Inputs<double>(test)));
    for (const char* name : {"factor.npy", "nngp.npy", "eigenvectors.npy"}) CHECK(!fs::exists(place / name));
    CHECK(fs::exists(place / "weights.npy"));
  }
  CHECK(load_error(place, [](auto& json) {
          json["posteriors"][0]["kernel"] = "both";
        }).find("expected \"nngp\" or \"ntk\", got \"both\"") != std::string::npos);
  CHECK(load_error(place, [](auto& json) {
          json["posteriors"][0]["lambda"] = -1;
        }).find("expected a number of 0 or more") != std::string::npos);
  CHECK(load_error(place, [](auto& json) {
          json["posteriors"][0]["relative_residual"] = 1;
        }).find("expected a number between 0 and 1") != std::string::npos);
  CHECK(load_error(place, [](auto& json) {
          json["posteriors"][0].erase("relative_residual");
        }).find("relative_residual") != std::string::npos);
  CHECK(load_error(place, [](auto& json) {
          json["posteriors"][0]["kind"] = "cg";
        }).find("expected \"bayesian\", \"trained\" or \"iterative\", got \"cg\"") != std::string::npos);
  fs::remove(place / "weights.npy");
  CHECK(load_error(place, [](auto&) {}).find("weights.npy") != std::string::npos);
}

TEST_CASE("iterative model: posteriors of several kinds or kernels in a folder are refused") {
  const Matrix<double> x = random_matrix(40, 4, 1), held = random_matrix(30, 4, 2);
  const TemporaryFolder folder;
  ModelOptions options = iterated_options(ModelKind::bayesian);
  options.grid = {1e-3, 10};
  LabelledInputs<double> train = labelled(x), seen = labelled(held);
  // The second output is noise, so that each has its own regulariser.
  train.y.col(1) = random_matrix(40, 1, 7);
  seen.y.col(1) = random_matrix(30, 1, 8);
  const Model model = Model::fit(iterated_network(), train, seen, options);
  model.save(folder.path() / "model");
  REQUIRE(fs::exists(folder.path() / "model" / "weights_1.npy"));
  CHECK(load_error(folder.path() / "model", [](auto& json) {
          json["posteriors"][1]["kernel"] = "ntk";
        }).find("expected posteriors of one kind, and of one kernel") != std::string::npos);
}

TEST_CASE("iterative model: on a device, without any matrix") {
  const Matrix<double> train = random_matrix(90, 4, 1), held = random_matrix(40, 4, 2),
                       test = random_matrix(20, 4, 3);
  const TemporaryFolder folder;
  GramOptions run;
  run.device = "pocl";
  for (const ModelKind kind : {ModelKind::bayesian, ModelKind::trained})
    for (const bool refit : {false, true}) {
      ModelOptions options = iterated_options(kind);
      options.refit = refit;
      const Model direct =
          Model::fit(iterated_network(), labelled(train), labelled(held), factorized(options));
      options.gram.device = "pocl";
      const Model iterated = Model::fit(iterated_network(), labelled(train), labelled(held), options);
      check_alike(iterated, direct, Inputs<double>(test), run);
      // Models of a device predict on the CPU, and the other way round.
      check_alike(iterated, direct, Inputs<double>(test));
      iterated.save(folder.path() / "model");
      const Model loaded = Model::load(folder.path() / "model", run);
      check_alike(loaded, direct, Inputs<double>(test), run);
      CHECK(loaded.predict(Inputs<double>(test), run).variance ==
            iterated.predict(Inputs<double>(test), run).variance);
      check_alike(loaded, direct, Inputs<double>(test));
    }
  ModelOptions weighted = iterated_options(ModelKind::bayesian);
  weighted.noise = RelativeRegulariser(0.1);
  weighted.weights = random_matrix(90, 1, 5).col(0).cwiseAbs();
  const auto [x, y] = labelled(train);
  const Model direct = Model::fit(iterated_network(), x, y, factorized(weighted));
  weighted.gram.device = "pocl";
  check_alike(Model::fit(iterated_network(), x, y, weighted), direct, Inputs<double>(test), run);
  // Positions: the device computes a matrix, which is held.
  const Network images = models::named_network("conv-gap", {{"depth", 1}});
  const xt::xarray<double> pixels = random_inputs(1, {20, 4, 4, 2}), others = random_inputs(2, {5, 4, 4, 2});
  weighted.weights = {};
  const Matrix<double> targets = random_matrix(20, 1, 3);
  check_alike(Model::fit(images, Inputs<double>(pixels), targets, weighted),
              Model::fit(images, Inputs<double>(pixels), targets, factorized(weighted)),
              Inputs<double>(others), run);
}

TEST_CASE("iterative model: what it cannot do is refused, with what to do") {
  const Matrix<double> x = random_matrix(30, 4, 1);
  const Matrix<double> y = iterated_targets(x);
  const auto refuses = [&](ModelOptions options, const char* text) {
    CHECK_THROWS_WITH_AS((void)Model::fit(iterated_network(), Inputs<double>(x), y, options),
                         doctest::Contains(text), ArgumentError);
  };
  ModelOptions options = iterated_options(ModelKind::trained);
  refuses(options, "criterion: it is measured on validation data");
  options.criterion = Criterion::leave_one_out;
  refuses(options, "cg chooses regularisers by accuracy or mean squared error on validation data alone");
  options.noise = RelativeRegulariser(0.1);
  options.time = 3;
  refuses(options, "cg knows networks after training only, no time");
  options.time = infinite_time;
  const Matrix<double> many = random_matrix(30, 31, 7);
  CHECK_THROWS_WITH_AS(
      (void)Model::fit(iterated_network(), Inputs<double>(x), many, options),
      doctest::Contains(
          "cg solves for no more outputs than there are training inputs: take the solver cholesky"),
      ArgumentError);
  options.residual = 0;
  refuses(options, "residual");
  options.residual = 1e-10;
  options.solver = Solver::distributed;
  refuses(options, "a model keeps the factor of its matrix, which ranks share");
  options.solver = Solver::conjugate_gradients;
  std::stop_source stop;
  stop.request_stop();
  options.gram.stop = stop.get_token();
  CHECK_THROWS_AS((void)Model::fit(iterated_network(), Inputs<double>(x), y, options), Cancelled);
  options.gram.stop = {};
  for (const ModelKind kind : {ModelKind::bayesian, ModelKind::trained}) {
    options.kind = kind;
    const Model model = Model::fit(iterated_network(), Inputs<double>(x), y, options);
    CHECK_THROWS_WITH_AS((void)model.leave_one_out(),
                         doctest::Contains("conjugate gradients (solver cg), which would"), ArgumentError);
    CHECK_THROWS_WITH_AS(
        (void)model.log_marginal_likelihood(),
        doctest::Contains(kind == ModelKind::bayesian ? "know no determinant" : "no evidence"),
        ArgumentError);
  }
}

TEST_CASE("iterative model: memory is planned, with and without a matrix") {
  SolverNeeds needs{.inputs = 50000,
                    .entry_bytes = 4,
                    .kernels = Kernels::nngp,
                    .finite_times = false,
                    .validation = 1000,
                    .test = 1000};
  const double square = 4.0 * 50000 * 50000;
  for (const Work work : {Work::model, Work::new_inputs}) {
    Workload held{.work = work, .needs = needs, .plan = Plan{}};
    held.needs.chooses = work == Work::model;
    Workload device = held;
    device.plan->device_input_bytes = 400;
    const double in_memory = solver_bytes(Solver::conjugate_gradients, held),
                 without = solver_bytes(Solver::conjugate_gradients, device);
    CHECK(in_memory > square);
    CHECK(in_memory < 2 * square);
    CHECK(without < 0.4 * square);
    CHECK(device_memory(device, Solver::conjugate_gradients).bytes() > 400.0 * 50000);
    CHECK(device_memory(held, Solver::conjugate_gradients).items.empty());
  }
}
