// gp --criterion and --gram: what regularisers are chosen by, and kernels that are computed once.
#include <doctest/doctest.h>

#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/models/named_networks.hpp"

namespace widelimit::testing {
namespace {

using Json = nlohmann::json;

/// Inputs on a wave and a smooth function of them.
xt::xarray<double> wave_inputs(std::size_t count, double phase) {
  xt::xarray<double> x = xt::xarray<double>::from_shape({count, 3});
  for (double& value : x) value = std::sin(phase += 1.1);
  return x;
}

Matrix<double> wave_targets(const xt::xarray<double>& x) {
  Matrix<double> y(static_cast<Index>(x.shape(0)), 1);
  for (std::size_t i = 0; i < x.shape(0); ++i)
    y(static_cast<Index>(i), 0) = x(i, 0) * x(i, 1) + x(i, 2) + 0.3 * std::sin(40.0 * static_cast<double>(i));
  return y;
}

constexpr std::size_t train_count = 40, validation_count = 15, test_count = 8;

void write_waves(const TemporaryFolder& folder, bool validation) {
  const auto write = [&](const std::string& name, std::size_t count, double phase) {
    const auto x = wave_inputs(count, phase);
    const Matrix<double> y = wave_targets(x);
    data::write_npy(folder / ("x_" + name + ".npy"), x);
    const std::vector<std::size_t> shape{count, 1};
    data::write_npy(folder / ("y_" + name + ".npy"), y.data(), shape);
  };
  write("train", train_count, 0.1);
  write("test", test_count, 0.7);
  if (validation) write("validation", validation_count, 0.4);
}

std::string gp_of(const TemporaryFolder& folder, const std::string& more) {
  return "gp --network fcn --precision double --data npy --path " + folder.string() + " --out " +
         (folder / "out").string() + " --no-report " + more;
}

Json result_of(const TemporaryFolder& folder, const std::string& more) {
  const auto run = run_program(gp_of(folder, more));
  CAPTURE(run.errors);
  REQUIRE(run.code == 0);
  return Json::parse(file_text(folder / "out/results.json"))["results"];
}

std::ptrdiff_t entries_of(const std::filesystem::path& folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

}  // namespace

TEST_CASE("gp --criterion: chooses what the library chooses by it") {
  const TemporaryFolder folder;
  write_waves(folder, true);
  const Network network = models::named_network("fcn", {{"axes", 0}});
  const auto x = wave_inputs(train_count, 0.1), more = wave_inputs(validation_count, 0.4);
  const Matrix<double> y = wave_targets(x), y_more = wave_targets(more);
  const auto train = gram<double>(network, x), cross = gram<double>(network, more, x);
  const Vector<double> variances = gram<double>(network, more).nngp.diagonal();
  const std::pair<const char*, gp::Criterion> criteria[] = {
      {"mse", gp::Criterion::mean_squared_error},
      {"nlpd", gp::Criterion::negative_log_predictive_density},
      {"loo", gp::Criterion::leave_one_out}};
  for (const auto& [word, criterion] : criteria) {
    CAPTURE(word);
    const auto nngp =
        gp::select_regulariser(train.nngp, y, gp::ValidationKernel{cross.nngp, variances, y_more}, criterion);
    const auto ntk = gp::select_flow_regulariser(
        train.nngp, train.ntk, y, gp::ValidationKernels{cross.nngp, cross.ntk, variances, y_more}, criterion);
    const Json results = result_of(folder, std::string("--criterion ") + word);
    CHECK(results[0]["criterion"] == word);
    CHECK(results[0]["regulariser"] == nngp.best.value());
    CHECK(results[1]["regulariser"] == ntk.best.value());
    CHECK(results[0]["candidates"].size() == 19);
    // Densities cost as much as the path itself, and those of a Regression with the NTK would be of another model.
    for (const Json& result : results)
      CHECK(result["candidates"][18]["negative_log_predictive_density"].is_number() ==
            (criterion == gp::Criterion::negative_log_predictive_density));
  }
  const Json by_default = result_of(folder, "");
  CHECK(by_default[0]["criterion"] == "loo");
}

TEST_CASE("gp --criterion: evidence and leave-one-out take no validation data") {
  const TemporaryFolder folder;
  write_waves(folder, false);
  const Network network = models::named_network("fcn", {{"axes", 0}});
  const auto x = wave_inputs(train_count, 0.1);
  const auto expected = gp::select_regulariser(gram<double>(network, x).nngp, wave_targets(x), std::nullopt,
                                               gp::Criterion::evidence);
  const Json by_evidence = result_of(folder, "--kernel nngp --criterion evidence");
  CHECK(by_evidence[0]["regulariser"] == expected.best.value());
  CHECK(by_evidence[0]["candidates"][3]["accuracy"].is_null());
  const Json by_loo = result_of(folder, "--criterion loo --time 3");
  CHECK(by_loo.size() == 3);
  CHECK_FALSE(by_loo[2].contains("criterion"));  // chosen once, for all times

  const auto fails = [&](const std::string& more, int code, const std::string& message) {
    CAPTURE(more);
    const auto run = run_program(gp_of(folder, more));
    CHECK(run.code == code);
    CHECK(run.errors.find(message) != std::string::npos);
  };
  fails("--criterion nlpd", 1, "add them or give --criterion loo or --regulariser");
  fails("--criterion evidence", 2, "trained networks have no evidence: --kernel nngp");
  fails("--criterion loo --regulariser 1", 2, "there is nothing to choose with --regulariser");
  fails("--criterion luck", 2, "--criterion");
}

TEST_CASE("gp --gram: kernels computed once serve all regularisers, times and criteria") {
  const TemporaryFolder folder;
  write_waves(folder, true);
  const std::string kept = "--gram " + (folder / "grams").string() + " ";
  const auto mean = [&] { return data::read_npy<double>(folder / "out/mean_ntk.npy"); };
  const Json plain = result_of(folder, "--criterion mse");
  const auto expected = mean();
  const Json first = result_of(folder, kept + "--criterion mse");
  CHECK(entries_of(folder / "grams") == 5);  // training, validation and test with training, two diagonals
  CHECK(first[1]["regulariser"] == plain[1]["regulariser"]);
  CHECK(mean() == expected);
  // Nothing more is computed, whatever the choice: damage to a kept matrix shows that they are read.
  for (const char* more :
       {"", "--criterion loo", "--regulariser 0.1 --time 1,10", "--kernel nngp --criterion evidence"})
    static_cast<void>(result_of(folder, kept + more));
  CHECK(entries_of(folder / "grams") == 5);
  CHECK(result_of(folder, kept + "--kernel nngp --criterion mse")[0]["regulariser"] ==
        plain[0]["regulariser"]);
  for (const auto& entry : std::filesystem::directory_iterator(folder / "grams"))
    std::filesystem::resize_file(entry.path() / "nngp.npy", 100);
  const auto damaged = run_program(gp_of(folder, kept));
  CHECK(damaged.code == 1);
  CHECK(damaged.errors.find("nngp.npy: is damaged: expected") != std::string::npos);
}

TEST_CASE("gp --refit: what fit --refit and predict say, from memory and from stores") {
  const TemporaryFolder folder;
  write_waves(folder, true);
  const std::string data = " --network fcn --precision double --data npy --path " + folder.string();
  for (const std::string kernel : {"nngp", "ntk"}) {
    CAPTURE(kernel);
    const std::string choice = " --criterion mse --refit --kernel " + kernel;
    REQUIRE(run_program("fit" + data + choice + " --model " + (folder / "model").string() + " --out " +
                        (folder / "fitted").string())
                .errors == "");
    const auto expected = data::read_npy<double>(folder / "fitted/mean.npy");
    for (const std::string& source : {std::string(), " --store " + (folder / ("stores-" + kernel)).string()})
      for (const int again : {0, 1}) {
        CAPTURE(again);
        const Json result = result_of(folder, choice + source);
        const auto mean = data::read_npy<double>(folder / "out" / ("mean_" + kernel + ".npy"));
        for (std::size_t i = 0; i < expected.size(); ++i)
          CHECK(mean.flat(i) == doctest::Approx(expected.flat(i)).epsilon(1e-10));
        CHECK(result[0]["regulariser"] ==
              Json::parse(file_text(folder / "fitted/results.json"))["results"][0]["regulariser"]);
      }
  }
  const auto fails = [&](const std::string& more, const std::string& message) {
    const auto run = run_program(gp_of(folder, more));
    CHECK(run.code != 0);
    CAPTURE(run.errors);
    CHECK(run.errors.find(message) != std::string::npos);
  };
  fails("--refit --solver cg --regulariser 0.1 --store " + (folder / "other").string(),
        "--refit joins Gram matrices in memory, and conjugate gradients with a store hold none");
  std::filesystem::remove(folder / "x_validation.npy");
  std::filesystem::remove(folder / "y_validation.npy");
  fails("--refit", "--refit: it takes validation data, and there are none");
}

TEST_CASE("gp --search: the network that fit finds, and the same table") {
  const TemporaryFolder folder;
  write_waves(folder, false);
  const std::string search =
      " --search layers[0].weight_variance=0.2:5:log --trials 5 --criterion evidence --table " +
      (folder / "trials.csv").string();
  REQUIRE(run_program("fit --network fcn --precision double --data npy --path " + folder.string() + search +
                      " --model " + (folder / "model").string())
              .errors == "");
  const auto run = run_program(gp_of(folder, "--kernel nngp" + search));
  REQUIRE(run.errors == "");
  CHECK(run.output.find(" trials are known from ") != std::string::npos);
  CHECK(Json::parse(file_text(folder / "out/results.json"))["network"] ==
        Json::parse(file_text(folder / "model/model.json"))["network"]);
  CHECK(run_program(gp_of(folder, "--trials 3")).errors.find("--trials: for --search only") !=
        std::string::npos);
  CHECK(run_program(gp_of(folder, "--network fcn:depth=2 --kernel nngp" + search))
            .errors.find("--search: is for one network") != std::string::npos);
}

TEST_CASE("gp --reliability: curves of every kernel; numbers have none") {
  const TemporaryFolder folder;
  const std::string picture = " --reliability " + (folder / "reliability.svg").string();
  const auto run =
      run_program("gp --network fcn --data sample --train 40 --validation 20 --test 20 --size 4" + picture);
  REQUIRE(run.errors == "");
  const std::string drawn = file_text(folder / "reliability.svg");
  CHECK(drawn.starts_with("<?xml"));
  CHECK(drawn.find("nngp: ECE") != std::string::npos);
  CHECK(drawn.find("ntk: ECE") != std::string::npos);
  write_waves(folder, false);
  CHECK(run_program(gp_of(folder, picture)).errors.find("the targets are numbers") != std::string::npos);
}

}  // namespace widelimit::testing
