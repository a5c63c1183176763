#include <doctest/doctest.h>

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/gp/regression.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/models/named_networks.hpp"
#include "widelimit/network/network_file.hpp"

using namespace widelimit;
using widelimit::testing::file_text;
using widelimit::testing::lines_of;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;

namespace {

const std::string small_sample = " --data sample --train 40 --validation 20 --test 20 --size 6 ";

nlohmann::json results_in(const std::filesystem::path& folder) {
  return nlohmann::json::parse(file_text(folder / "results.json"));
}

std::vector<std::size_t> shape_in(const std::filesystem::path& file) {
  return data::read_npy_header(file).shape;
}

xt::xarray<double> vectors(std::size_t count, double phase) {
  xt::xarray<double> x = xt::xarray<double>::from_shape({count, 3});
  for (double& value : x) value = std::sin(phase += 1.1);
  return x;
}

xt::xarray<double> numbers(const xt::xarray<double>& x, double scale) {
  xt::xarray<double> y = xt::xarray<double>::from_shape({x.shape(0)});
  for (std::size_t i = 0; i < y.size(); ++i) y(i) = scale * x(i, 0) * x(i, 1) + x(i, 2);
  return y;
}

void write_regression(const TemporaryFolder& folder, double test_phase, double test_scale) {
  const auto write_set = [&](const std::string& name, std::size_t count, double phase, double scale) {
    const auto x = vectors(count, phase);
    data::write_npy(folder / ("x_" + name + ".npy"), x);
    data::write_npy(folder / ("y_" + name + ".npy"), numbers(x, scale));
  };
  write_set("train", 30, 0.1, 1);
  write_set("validation", 12, 0.4, 1);
  write_set("test", 9, test_phase, test_scale);
}

}  // namespace

TEST_CASE("gp: a table with a row for each kernel and time, and all files") {
  const TemporaryFolder folder;
  const auto result = run_program("gp --network conv-gap --depth 1" + small_sample +
                                  "--regulariser 0.1 --time 0,2.5 --seed 3 --out " + folder.string());
  REQUIRE(result.code == 0);
  CHECK(result.errors.empty());
  const auto lines = lines_of(result.output);
  REQUIRE(lines.size() == 17);
  CHECK(
      lines[0] ==
      "sample: 40 training, 20 validation, 20 test images of 6x6x3, 10 classes, seed 3, preprocessing image "
      "(zca takes 216 images), float");
  CHECK(lines[1].find("amplitude of the kernels: fitted to the training targets") == 0);
  CHECK(lines[2].starts_with("solver: cholesky, chosen ("));
  CHECK(lines[4] == "conv-gap");
  for (const char* column :
       {"kernel", "time", "regulariser", "amplitude", "accuracy", "MSE", "Gram s", "solve s"})
    CHECK(lines[5].find(column) != std::string::npos);

  const auto results = results_in(folder.path());
  CHECK(results["results"].size() == 4);
  for (const char* name : {"nngp", "ntk", "ntk_time0", "ntk_time1"}) {
    CAPTURE(name);
    CHECK(shape_in(folder / (std::string("mean_") + name + ".npy")) == std::vector<std::size_t>{20, 10});
    CHECK(shape_in(folder / (std::string("variance_") + name + ".npy")) == std::vector<std::size_t>{20, 10});
    CHECK(file_text(folder / (std::string("confusion_") + name + ".png")).substr(1, 3) == "PNG");
  }
  CHECK(std::isfinite(results["log_marginal_likelihood"].get<double>()));
  const auto at_zero = data::read_npy<double>(folder / "mean_ntk_time0.npy");
  CHECK(std::all_of(at_zero.begin(), at_zero.end(), [](double value) { return value == 0; }));
}

TEST_CASE("gp: several networks have a block each and a folder each") {
  const TemporaryFolder folder;
  const auto result =
      run_program("gp --network fcn --network fcn:depth=1 --network conv-flatten:depth=1" + small_sample +
                  "--regulariser 0.1 --kernel nngp --no-pictures --out " + folder.string());
  REQUIRE(result.code == 0);
  const auto lines = lines_of(result.output);
  REQUIRE(lines.size() == 30);
  CHECK(lines[4] == "fcn");
  CHECK(lines[13] == "fcn:depth=1");
  CHECK(lines[22] == "conv-flatten:depth=1");
  for (const char* name : {"fcn", "fcn-2", "conv-flatten"}) {
    CAPTURE(name);
    CHECK(std::filesystem::exists(folder / (std::string(name) + "/mean_nngp.npy")));
    CHECK_FALSE(std::filesystem::exists(folder / (std::string(name) + "/mean_ntk.npy")));
    CHECK_FALSE(std::filesystem::exists(folder / (std::string(name) + "/confusion_nngp.png")));
  }
}

TEST_CASE("gp: seeds choose the images; threads do not matter") {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& name, const std::string& options) {
    CHECK(run_program("gp --network struct:depth=1" + small_sample + "--no-pictures " + options + " --out " +
                      (folder / name).string())
              .code == 0);
    return data::read_npy<double>(folder / (name + "/mean_ntk.npy"));
  };
  const auto first = run("a", "--seed 1 --threads 1"), second = run("b", "--seed 1 --threads 2");
  // Gram matrices are equal bit for bit; LAPACK sums in another order.
  for (std::size_t i = 0; i < first.size(); ++i)
    CHECK(first.flat(i) == doctest::Approx(second.flat(i)).epsilon(1e-6).scale(1));
  CHECK(run("c", "--seed 2 --threads 1") != first);
}

TEST_CASE("gp: arrays of real targets, against the library's own regression") {
  const TemporaryFolder folder;
  write_regression(folder, 0.7, 1);
  const auto result = run_program(
      "gp --network fcn --data npy --precision double --targets-as-they-are --regulariser 0.01 --path " +
      folder.string() + " --out " + (folder / "out").string());
  REQUIRE(result.code == 0);
  const auto x = vectors(30, 0.1), x_test = vectors(9, 0.7);
  const auto y = numbers(x, 1);
  const Network network = models::named_network("fcn", {{"axes", 0}});
  const auto regression =
      gp::Regression::fit(gram<double>(network, x).ntk, Eigen::Map<const Matrix<double>>(y.data(), 30, 1),
                          gp::RelativeRegulariser(0.01));
  const Matrix<double> expected = regression.mean(gram<double>(network, x_test, x).ntk);
  const auto mean = data::read_npy<double>(folder / "out/mean_ntk.npy");
  REQUIRE(mean.size() == 9);
  for (Index i = 0; i < 9; ++i)
    CHECK(mean.flat(static_cast<std::size_t>(i)) == doctest::Approx(expected(i, 0)).epsilon(1e-9).scale(0));
  // Real targets have no classes: no accuracy, no confusion matrix.
  CHECK(results_in(folder / "out")["results"][0]["accuracy"].is_null());
  CHECK_FALSE(std::filesystem::exists(folder / "out/confusion_nngp.png"));
  CHECK(file_text(folder / "out/predictions.csv")
            .find("index,id,target_0,nngp_standard_deviation,nngp_observation_deviation,nngp_lower_50,nngp_"
                  "upper_50,"
                  "nngp_lower_90,nngp_upper_90,nngp_lower_95,nngp_upper_95,nngp_mean_0,ntk_") == 0);
}

TEST_CASE("gp: the amplitude is fitted unless it is given; it scales variances, not means") {
  const TemporaryFolder data, fitted, plain;
  write_regression(data, 0.7, 1);
  const auto run = [&](const std::string& options, const TemporaryFolder& out) {
    const auto result = run_program(
        "gp --network fcn --data npy --precision double --targets-as-they-are --regulariser 0.01 --time 3 " +
        options + "--path " + data.string() + " --out " + out.string());
    REQUIRE(result.code == 0);
    return result.output;
  };
  CHECK(run("", fitted).find("fitted to the training targets (--amplitude 1: kernels as they are)") !=
        std::string::npos);
  CHECK(run("--amplitude 1 ", plain).find("\namplitude of the kernels: 1\n") != std::string::npos);

  const auto x = vectors(30, 0.1);
  const auto targets = numbers(x, 1);
  const Eigen::Map<const Matrix<double>> y(targets.data(), 30, 1);
  const auto kernels = gram<double>(models::named_network("fcn", {{"axes", 0}}), x);
  for (const std::string name : {"nngp", "ntk", "ntk_time0"}) {
    CAPTURE(name);
    const std::size_t index = name == "nngp" ? 0 : name == "ntk" ? 1 : 2;
    const auto scaled = results_in(fitted.path())["results"][index],
               as_is = results_in(plain.path())["results"][index];
    Matrix<double> noisy = index == 0 ? kernels.nngp : kernels.ntk;
    noisy.diagonal().array() += 0.01 * noisy.diagonal().mean();
    const Matrix<double> inverse = noisy.ldlt().solve(Matrix<double>::Identity(30, 30));
    // The evidence for the GP; for trained networks the squares of left-out residuals over their variances.
    const Vector<double> g = inverse.diagonal(), spread = (inverse * kernels.nngp * inverse).diagonal(),
                         weights = inverse * y;
    const double lambda = as_is["noise_variance"].get<double>();
    const double amplitude =
        index == 0 ? weights.dot(y.col(0)) / 30
                   : (weights.array().square() / (spread.array() + lambda * g.array().square())).mean();
    CHECK(scaled["amplitude"].get<double>() == doctest::Approx(amplitude).epsilon(1e-8).scale(0));
    CHECK(as_is["amplitude"] == 1);
    CHECK(scaled["noise_variance"].get<double>() ==
          doctest::Approx(amplitude * as_is["noise_variance"].get<double>()).epsilon(1e-8).scale(0));
    CHECK(scaled["mean_squared_error"] == as_is["mean_squared_error"]);
    CHECK(data::read_npy<double>(fitted / ("mean_" + name + ".npy")) ==
          data::read_npy<double>(plain / ("mean_" + name + ".npy")));
    const auto variance = data::read_npy<double>(fitted / ("variance_" + name + ".npy"));
    const auto before = data::read_npy<double>(plain / ("variance_" + name + ".npy"));
    for (std::size_t i = 0; i < variance.size(); ++i)
      CHECK(variance.flat(i) == doctest::Approx(amplitude * before.flat(i)).epsilon(1e-8).scale(0));
  }
}

TEST_CASE("gp: the regulariser is chosen without the test data") {
  const TemporaryFolder one, two;
  write_regression(one, 0.7, 1);
  write_regression(two, 2.9, -40);
  std::vector<nlohmann::json> results;
  for (const TemporaryFolder* folder : {&one, &two}) {
    REQUIRE(run_program("gp --network fcn --data npy --precision double --criterion mse --path " +
                        folder->string() + " --out " + (*folder / "out").string())
                .code == 0);
    results.push_back(results_in(*folder / "out")["results"]);
  }
  for (std::size_t kernel = 0; kernel < 2; ++kernel) {
    CAPTURE(kernel);
    CHECK(results[0][kernel]["regulariser"] == results[1][kernel]["regulariser"]);
    CHECK(results[0][kernel]["candidates"] == results[1][kernel]["candidates"]);
    CHECK(results[0][kernel]["mean_squared_error"] != results[1][kernel]["mean_squared_error"]);
    // The chosen one has the smallest error on the validation data.
    double smallest = std::numeric_limits<double>::infinity(), best = 0;
    for (const auto& candidate : results[0][kernel]["candidates"])
      if (!candidate["mean_squared_error"].is_null() && candidate["mean_squared_error"] < smallest) {
        smallest = candidate["mean_squared_error"];
        best = candidate["regulariser"];
      }
    CHECK(results[0][kernel]["regulariser"] == best);
  }
}

TEST_CASE("gp: arrays with masks, under which nothing is read") {
  const TemporaryFolder folder;
  const auto sequences = [](std::size_t count, double masked) {
    auto x = xt::xarray<double>::from_shape({count, 3, 2});
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = std::sin(1.7 * static_cast<double>(i));
    for (std::size_t i = 0; i < count; ++i) x(i, i % 3, 0) = masked;
    return x;
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                   infinity = std::numeric_limits<double>::infinity();
  const auto mask = [](std::size_t count) {
    xt::xarray<std::uint8_t> numbers = xt::ones<std::uint8_t>({count, std::size_t{3}});
    for (std::size_t i = 0; i < count; ++i) numbers(i, i % 3) = 0;
    return numbers;
  };
  auto y = xt::xarray<double>::from_shape({8});
  for (std::size_t i = 0; i < 8; ++i) y(i) = std::cos(static_cast<double>(i));
  write_network(folder / "network.json",
                Network({layers::dense(), layers::relu(), layers::global_average_pool()}));
  data::write_npy(folder / "y_train.npy", y);
  data::write_npy(folder / "mask_train.npy", mask(8));
  data::write_npy(folder / "mask_test.npy", mask(4));
  const auto mean = [&](double masked, const std::string& out) {
    data::write_npy(folder / "x_train.npy", sequences(8, masked));
    data::write_npy(folder / "x_test.npy", sequences(4, 3 * masked));
    const auto result = run_program(
        "gp --network " + (folder / "network.json").string() + " --data npy --path " + folder.string() +
        " --kernel nngp --regulariser 0.1 --precision double --out " + (folder / out).string());
    CHECK(result.code == 0);
    return data::read_npy<double>(folder / (out + "/mean_nngp.npy"));
  };
  const auto expected = mean(1, "one");
  CHECK(mean(100, "hundred") == expected);
  CHECK(mean(nan, "nan") == expected);
  CHECK(mean(infinity, "infinity") == expected);
  // What counts must be finite.
  xt::xarray<double> bad = sequences(4, nan);
  bad(2, 1, 1) = infinity;
  data::write_npy(folder / "x_test.npy", bad);
  const auto refused =
      run_program("gp --network fcn --data npy --path " + folder.string() + " --regulariser 0.1");
  CHECK(refused.code != 0);
  CHECK(refused.errors.find("x_test.npy: values must be finite, got inf at entry 3 of input 2") !=
        std::string::npos);
  data::write_npy(folder / "x_test.npy", sequences(4, 1));
  data::write_npy(folder / "mask_test.npy", mask(5));
  const auto result =
      run_program("gp --network fcn --data npy --path " + folder.string() + " --regulariser 0.1");
  CHECK(result.code != 0);
  CHECK(
      result.errors.find("mask_test.npy: inputs: expected a mask [4, 3], one value a position, got [5, 3]") !=
      std::string::npos);
}

TEST_CASE("gp: one array of inputs is split with its mask") {
  const TemporaryFolder folder;
  xt::xarray<std::uint8_t> mask = xt::ones<std::uint8_t>({24, 3});
  for (std::size_t i = 0; i < 24; ++i) mask(i, i % 3) = 0;
  auto y = xt::xarray<double>::from_shape({24});
  for (std::size_t i = 0; i < 24; ++i) y(i) = std::cos(static_cast<double>(i));
  write_network(folder / "network.json",
                Network({layers::dense(), layers::relu(), layers::global_average_pool()}));
  data::write_npy(folder / "y.npy", y);
  data::write_npy(folder / "mask.npy", mask);
  const std::string command = "gp --network " + (folder / "network.json").string() + " --data npy --path " +
                              folder.string() + " --kernel nngp --precision double --force --out " +
                              (folder / "out").string();
  const auto mean = [&](double masked) {
    auto x = xt::xarray<double>::from_shape({24, 3, 2});
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = std::sin(1.7 * static_cast<double>(i));
    for (std::size_t i = 0; i < 24; ++i) x(i, i % 3, 0) = masked;
    data::write_npy(folder / "x.npy", x);
    const auto result = run_program(command);
    CAPTURE(result.errors);
    CHECK(result.code == 0);
    return data::read_npy<double>(folder / "out/mean_nngp.npy");
  };
  const auto expected = mean(1);
  CHECK(mean(100) == expected);
  CHECK(mean(std::numeric_limits<double>::quiet_NaN()) == expected);
  data::write_npy(folder / "mask_test.npy", mask);
  const auto stray = run_program(command);
  CHECK(stray.code != 0);
  CHECK(stray.errors.find("mask_test.npy: belongs to x_test.npy, which is not there") != std::string::npos);
}

TEST_CASE("gp: arrays with integer labels and no test labels") {
  const TemporaryFolder folder;
  data::write_npy(folder / "x_train.npy", vectors(12, 0.1));
  data::write_npy(folder / "x_test.npy", vectors(5, 0.2));
  xt::xarray<std::uint8_t> labels = xt::xarray<std::uint8_t>::from_shape({12});
  for (std::size_t i = 0; i < 12; ++i) labels(i) = static_cast<std::uint8_t>(i % 3);
  data::write_npy(folder / "y_train.npy", labels);
  const auto result = run_program("gp --network fcn --data npy --regulariser 1e-3 --path " + folder.string() +
                                  " --out " + (folder / "out").string());
  REQUIRE(result.code == 0);
  CHECK(lines_of(result.output)[6].find(" - ") != std::string::npos);
  CHECK(shape_in(folder / "out/mean_nngp.npy") == std::vector<std::size_t>{5, 3});
  CHECK(file_text(folder / "out/predictions.csv").find("index,id,nngp_class,nngp_probability,") == 0);
  CHECK_FALSE(std::filesystem::exists(folder / "out/confusion_nngp.png"));
}
