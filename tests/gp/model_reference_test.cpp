// A fitted model against scikit-learn's GaussianProcessRegressor (tests/reference/regression).
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gp/problem.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/network/network_file.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using doctest::Approx;

namespace {

const std::filesystem::path sklearn_folder = WIDELIMIT_SOURCE_DIR "/tests/reference/regression";

Matrix<double> sklearn_matrix(const char* name) {
  const auto array = data::read_npy<double>(sklearn_folder / name);
  const auto rows = static_cast<Index>(array.shape(0));
  return Eigen::Map<const Matrix<double>>(array.data(), rows, static_cast<Index>(array.size()) / rows);
}

Model sklearn_model() {
  const auto evidence = nlohmann::json::parse(std::ifstream(sklearn_folder / "evidence.json"));
  return Model::fit(
      read_network(sklearn_folder / "network.json"), Inputs<double>(sklearn_matrix("x.npy")),
      sklearn_matrix("y.npy"),
      {.noise = AbsoluteNoise(evidence["noise_variance"].get<double>()), .targets_as_they_are = true});
}

void check_near(const Matrix<double>& actual, const Matrix<double>& expected) {
  REQUIRE(actual.rows() == expected.rows());
  REQUIRE(actual.cols() == expected.cols());
  CHECK(gp_test::relative_difference(actual, expected) < 1e-8);
}

}  // namespace

TEST_CASE("model: mean, deviation, covariance and evidence are those of scikit-learn") {
  const Model model = sklearn_model();
  const Matrix<double> x = sklearn_matrix("x_test.npy");
  const ModelPrediction prediction = model.predict(Inputs<double>(x));
  check_near(prediction.mean, sklearn_matrix("mean.npy"));
  for (Index c = 0; c < prediction.mean.cols(); ++c)
    check_near(prediction.standard_deviation().col(c), sklearn_matrix("standard_deviation.npy"));
  check_near(model.predict_jointly(Inputs<double>(x)).covariance(), sklearn_matrix("covariance.npy"));
  const auto evidence = nlohmann::json::parse(std::ifstream(sklearn_folder / "evidence.json"));
  CHECK(model.log_marginal_likelihood() ==
        Approx(evidence["log_marginal_likelihood"].get<double>()).epsilon(1e-10).scale(0));
}

TEST_CASE("model: leave-one-out is scikit-learn's, fitted without each input in turn") {
  const ModelLeaveOneOut others = sklearn_model().leave_one_out();
  check_near(sklearn_matrix("y.npy") - others.residuals, sklearn_matrix("left_out_mean.npy"));
  check_near(others.variances.col(0), sklearn_matrix("left_out_variance.npy"));
}
