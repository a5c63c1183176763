// widelimit fit and predict: a model goes through a folder, a search through its table.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/program.hpp"
#include "support/equal_checksum.hpp"
#include "widelimit/data/graph_folder.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/kernel/flip_average.hpp"
#include "widelimit/models/named_networks.hpp"

namespace widelimit::testing {
namespace {

xt::xarray<double> fit_inputs(std::size_t count, double phase) {
  xt::xarray<double> x = xt::xarray<double>::from_shape({count, 3});
  for (double& value : x) value = std::sin(phase += 1.1);
  return x;
}

xt::xarray<double> fit_targets(const xt::xarray<double>& x) {
  xt::xarray<double> y = xt::xarray<double>::from_shape({x.shape(0)});
  for (std::size_t i = 0; i < y.size(); ++i) y(i) = x(i, 0) * x(i, 1) + x(i, 2);
  return y;
}

/// x_train.npy and y_train.npy, and validation data if asked for; no test data.
void write_training_data(const TemporaryFolder& folder, bool validation) {
  const auto write_set = [&](const std::string& name, std::size_t count, double phase) {
    const auto x = fit_inputs(count, phase);
    data::write_npy(folder / ("x_" + name + ".npy"), x);
    data::write_npy(folder / ("y_" + name + ".npy"), fit_targets(x));
  };
  write_set("train", 30, 0.1);
  if (validation) write_set("validation", 12, 0.4);
}

/// Test data beside those of write_training_data().
void write_test_data(const TemporaryFolder& folder) {
  const auto x = fit_inputs(9, 0.77);
  data::write_npy(folder / "x_test.npy", x);
  data::write_npy(folder / "y_test.npy", fit_targets(x));
}

Matrix<double> matrix_in(const std::filesystem::path& file) {
  const auto array = data::read_npy<double>(file);
  const auto rows = static_cast<Index>(array.shape(0));
  return Eigen::Map<const Matrix<double>>(array.data(), rows, static_cast<Index>(array.size()) / rows);
}

std::vector<std::string> trials_in(const std::filesystem::path& table) {
  std::vector<std::string> rows = lines_of(without_comments(file_text(table)));
  rows.erase(rows.begin());
  return rows;
}

std::string fit_of(const TemporaryFolder& folder, const std::string& more) {
  return "fit --network fcn --precision double --data npy --path " + folder.string() + " --model " +
         (folder / "model").string() + " " + more;
}

}  // namespace

TEST_CASE("fit and predict: what the library predicts with the same data, of either kernel") {
  const TemporaryFolder folder;
  write_training_data(folder, false);
  const auto x = fit_inputs(30, 0.1);
  const auto test = fit_inputs(7, 0.77);
  data::write_npy(folder / "new.npy", test);
  const Network network = models::named_network("fcn", {{"axes", 0}});
  const auto y = fit_targets(x);
  const Matrix<double> targets = Eigen::Map<const Matrix<double>>(y.data(), 30, 1);
  for (const bool trained : {false, true}) {
    CAPTURE(trained);
    const auto fitted =
        run_program(fit_of(folder, trained ? "--kernel ntk --time 5 --regulariser 1e-3" : ""));
    REQUIRE(fitted.errors == "");
    REQUIRE(fitted.code == 0);
    CHECK(fitted.output.find(trained ? "networks trained for time 5 (NTK): 30 training inputs, 1 outputs"
                                     : "Bayesian posterior with the NNGP: 30 training inputs, 1 outputs") !=
          std::string::npos);
    CHECK((fitted.output.find("chosen by loo among 19") != std::string::npos) == !trained);
    CHECK((fitted.output.find("leave-one-out") != std::string::npos) == !trained);
    const std::string out = (folder / "out").string();
    const auto predicted =
        run_program("predict --model " + (folder / "model").string() + " --x " +
                    (folder / "new.npy").string() + " --samples 4 --prior-samples 2 --seed 9 --out " + out);
    REQUIRE(predicted.errors == "");
    REQUIRE(predicted.code == 0);
    gp::ModelOptions options;
    if (trained)
      options = {.kind = gp::ModelKind::trained, .time = 5, .noise = gp::RelativeRegulariser(1e-3)};
    const gp::Model model = gp::Model::fit(network, Inputs<double>(x), targets, options);
    const gp::ModelPrediction expected = model.predict(Inputs<double>(test));
    CHECK(matrix_in(folder / "out/mean.npy") == expected.mean);
    CHECK(matrix_in(folder / "out/standard_deviation.npy") == Matrix<double>(expected.standard_deviation()));
    const auto samples = data::read_npy<double>(folder / "out/samples.npy");
    CHECK(std::vector<std::size_t>(samples.shape().begin(), samples.shape().end()) ==
          std::vector<std::size_t>{4, 7, 1});
    CHECK(samples(3, 2, 0) == model.samples(Inputs<double>(test), 4, 9)[3](2, 0));
    CHECK(data::read_npy<double>(folder / "out/prior_samples.npy").shape(0) == 2);
    const auto rows = lines_of(file_text(folder / "out/predictions.csv"));
    REQUIRE(rows.size() == 8);
    CHECK(rows[0] ==
          fmt::format("index,id,{0}_standard_deviation,{0}_observation_deviation,{0}_lower_50,{0}_upper_50,"
                      "{0}_lower_90,{0}_upper_90,{0}_lower_95,{0}_upper_95,{0}_mean_0",
                      trained ? "ntk" : "nngp"));
    CHECK(std::stod(rows[3].substr(rows[3].rfind(',') + 1)) == expected.mean(2, 0));
  }
}

TEST_CASE("fit and predict: classes have names and probabilities") {
  const TemporaryFolder folder;
  const auto fitted = run_program(
      "fit --network fcn --data sample --train 40 --validation 20 --test 20 --size 4 "
      "--preprocess zca --criterion accuracy --refit --model " +
      (folder / "model").string() + " --gram " + (folder / "grams").string() + " --reliability " +
      (folder / "reliability.svg").string());
  REQUIRE(fitted.errors == "");
  CHECK(fitted.output.find("60 training inputs, 10 classes") != std::string::npos);
  CHECK(fitted.output.find("fitted again with the validation data") != std::string::npos);
  CHECK(fitted.output.find("test, amplitude 1") != std::string::npos);
  CHECK(file_text(folder / "reliability.svg").starts_with("<?xml"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder / "grams"),
                      std::filesystem::directory_iterator()) == 3);
  const auto document = nlohmann::json::parse(file_text(folder / "model/model.json"));
  CHECK(document["preprocessing"]["kind"] == "zca");
  CHECK(document["precision"] == "float");
  xt::xarray<float> images = xt::xarray<float>::from_shape({3, 4, 4, 3});
  for (std::size_t i = 0; i < images.size(); ++i)
    images.flat(i) = static_cast<float>(std::sin(0.7 * double(i)));
  data::write_npy(folder / "images.npy", images);
  const auto predicted =
      run_program("predict --model " + (folder / "model").string() + " --x " +
                  (folder / "images.npy").string() + " --out " + (folder / "out").string());
  REQUIRE(predicted.errors == "");
  const Matrix<double> probabilities = matrix_in(folder / "out/class_probabilities.npy");
  CHECK(probabilities.cols() == 10);
  CHECK((probabilities.rowwise().sum().array() - 1).abs().maxCoeff() < 1e-9);
  const auto rows = lines_of(file_text(folder / "out/predictions.csv"));
  CHECK(
      rows[0].starts_with("index,id,nngp_class,nngp_probability,nngp_standard_deviation,nngp_observation_"
                          "deviation,nngp_probability_"));
  // Preprocessing would read what is masked.
  data::write_npy(folder / "mask.npy", xt::xarray<std::uint8_t>(xt::ones<std::uint8_t>({3, 4, 4})));
  const auto masked = run_program("predict --model " + (folder / "model").string() + " --x " +
                                  (folder / "images.npy").string() + " --mask " +
                                  (folder / "mask.npy").string() + " --out " + (folder / "masked").string());
  CHECK(masked.code == 1);
  CHECK(masked.errors == "widelimit: " + (folder / "mask.npy").string() +
                             ": expected inputs of which every position counts, since the model's "
                             "preprocessing (zca) reads all\n");
}

TEST_CASE("fit --json: the amplitude, regularisers and scores, and nothing else") {
  const TemporaryFolder folder;
  write_training_data(folder, false);
  for (const char* more : {"", "--regulariser 1e-3", "--kernel ntk --time 5 --regulariser 1e-3"}) {
    const auto fitted = run_program(fit_of(folder, std::string("--json ") + more));
    REQUIRE(fitted.code == 0);
    const auto result = nlohmann::json::parse(fitted.output);
    const gp::Model model = gp::Model::load(folder / "model");
    REQUIRE(result["amplitude"].size() == 1);
    CHECK(result["amplitude"][0].get<double>() == doctest::Approx(model.amplitude()(0)).epsilon(1e-12));
    CHECK(result["regularisers"].size() <= 1);
  }
}

TEST_CASE("fit --candidates: the regulariser is one of them, as with gp") {
  const TemporaryFolder folder;
  write_training_data(folder, false);
  for (const char* kernel : {"nngp", "ntk"}) {
    const auto fitted =
        run_program(fit_of(folder, fmt::format("--json --candidates 5,40 --kernel {}", kernel)));
    REQUIRE(fitted.code == 0);
    const double chosen = nlohmann::json::parse(fitted.output)["regularisers"][0];
    CHECK((chosen == 5 || chosen == 40));
    CHECK(gp::Model::load(folder / "model").regulariser()(0) == chosen);
  }
}

TEST_CASE("fit --flip: mirror images are predicted alike; the search's table knows of it") {
  const TemporaryFolder folder;
  xt::xarray<double> images = xt::xarray<double>::from_shape({12, 4, 4, 1});
  for (std::size_t i = 0; i < images.size(); ++i)
    images.flat(i) = std::sin(0.7 * static_cast<double>(i * i % 97));
  data::write_npy(folder / "x_train.npy", images);
  data::write_npy(folder / "y_train.npy", xt::xarray<double>(xt::sum(images, {1, 2, 3})));
  const std::string table =
      " --search layers[0].weight_variance=1:2 --trials 2 --table " + (folder / "t.csv").string();
  const std::string fit = "fit --network conv-flatten:depth=1 --precision double --data npy --path " +
                          folder.string() + " --model " + (folder / "model").string();
  const auto fitted = run_program(fit + " --flip" + table);
  REQUIRE(fitted.errors == "");
  CHECK(fitted.output.find(", kernels averaged over flips") != std::string::npos);
  CHECK(gp::Model::load(folder / "model").flips());
  data::write_npy(folder / "straight.npy", images);
  data::write_npy(folder / "mirrored.npy", flipped(images));
  const auto mean_of = [&](const char* name) {
    const auto predicted = run_program("predict --model " + (folder / "model").string() + " --x " +
                                       (folder / name).string() + " --out " + (folder / "out").string());
    REQUIRE(predicted.errors == "");
    return matrix_in(folder / "out/mean.npy");
  };
  const Matrix<double> straight = mean_of("straight.npy");
  CHECK((straight - mean_of("mirrored.npy")).cwiseAbs().maxCoeff() < 1e-9 * straight.cwiseAbs().maxCoeff());
  const auto without = run_program(fit + table);
  CHECK(without.code == 1);
  CHECK(without.errors.find("holds no trials of this search") != std::string::npos);
  const auto vectors = run_program("fit --network fcn --data csv --path nowhere --flip --model m");
  CHECK(vectors.code != 0);
}

TEST_CASE("fit and predict: graphs and masks go through the folder") {
  const TemporaryFolder folder;
  data::GraphFolder<double> graphs;
  xt::xarray<double> labels = xt::xarray<double>::from_shape({10});
  for (std::size_t i = 0; i < 10; ++i) {
    const std::size_t nodes = 3 + i % 3;
    xt::xarray<double> features = xt::xarray<double>::from_shape({nodes, 2});
    for (std::size_t k = 0; k < features.size(); ++k)
      features.flat(k) = std::cos(static_cast<double>(7 * i + k));
    std::vector<GraphEdge> edges;
    for (Index a = 1; a < static_cast<Index>(nodes); ++a) {
      edges.push_back({a - 1, a});
      edges.push_back({a, a - 1});
    }
    graphs.features.push_back(features);
    graphs.graphs.emplace_back(static_cast<Index>(nodes), edges);
    labels(i) = std::sin(static_cast<double>(i));
  }
  for (const char* part : {"train", "test"}) {
    data::write_graphs(folder / part, graphs);
    data::write_npy(folder / part / "labels.npy", labels);
  }
  const std::string model = " --model " + (folder / "model").string();
  const auto fitted = run_program("fit --network gntk:blocks=1 --precision double --data graphs --path " +
                                  folder.string() + model);
  REQUIRE(fitted.errors == "");
  const auto predict = [&](const std::string& inputs) {
    return run_program("predict" + model + inputs + " --out " + (folder / "out").string());
  };
  REQUIRE(predict(" --graphs " + (folder / "test").string()).errors == "");
  const Inputs<double> x(Inputs<double>(graphs.features), graphs.graphs);
  CHECK(matrix_in(folder / "out/mean.npy") == gp::Model::load(folder / "model").mean(x));
  CHECK(predict("").errors.find("--x FILE, --csv FILE, --texts PATH or --graphs DIR is required") !=
        std::string::npos);

  xt::xarray<double> sequences = xt::xarray<double>::from_shape({10, 4, 2});
  for (std::size_t i = 0; i < sequences.size(); ++i) sequences.flat(i) = std::sin(static_cast<double>(i * i));
  xt::xarray<std::int64_t> mask = xt::ones<std::int64_t>({10, 4});
  for (std::size_t i = 0; i < 10; ++i) mask(i, i % 4) = 0;
  data::write_npy(folder / "x_train.npy", sequences);
  data::write_npy(folder / "mask_train.npy", mask);
  data::write_npy(folder / "y_train.npy", labels);
  const auto masked = run_program("fit --network conv-gap:axes=1 --precision double --data npy --path " +
                                  folder.string() + model);
  REQUIRE(masked.errors == "");
  REQUIRE(
      predict(" --x " + (folder / "x_train.npy").string() + " --mask " + (folder / "mask_train.npy").string())
          .errors == "");
  const Inputs<double> with_mask(Inputs<double>(sequences), xt::xarray<bool>(xt::cast<bool>(mask)));
  CHECK(matrix_in(folder / "out/mean.npy") == gp::Model::load(folder / "model").mean(with_mask));
}

TEST_CASE("fit: errors come before the work") {
  const TemporaryFolder folder;
  write_training_data(folder, false);
  const auto fails = [&](const std::string& arguments, int code, const std::string& message) {
    CAPTURE(arguments);
    const auto result = run_program(arguments);
    CHECK(result.code == code);
    CHECK(result.errors.find(message) != std::string::npos);
    CHECK_FALSE(std::filesystem::exists(folder / "model"));
  };
  fails(fit_of(folder, "--kernel both"), 2, "a model has one: nngp or ntk");
  fails(fit_of(folder, "--time 3"), 2, "gradient flow needs the NTK");
  fails(fit_of(folder, "--criterion accuracy"), 1, "--criterion: accuracy counts classes that are right");
  fails(fit_of(folder, "--refit"), 1, "--refit: it takes validation data, and there are none");
  fails(fit_of(folder, "--kernel ntk --criterion evidence"), 2, "trained networks have no evidence");
  fails(fit_of(folder, "--regulariser 1 --criterion loo"), 2, "there is nothing to choose");
  fails(fit_of(folder, "--regulariser 1 --candidates 1,2"), 2, "--candidates: there is nothing to choose");
  fails(fit_of(folder, "--candidates 1,0"), 2, "--candidates");
  fails(fit_of(folder, "--trials 4"), 2, "--trials: for --search only");
  const std::string search = "--search ";
  fails(fit_of(folder, search + "layers[0].weight_variance"), 1, "there is no PATH=");
  fails(fit_of(folder, search + "layers[0].weight_variance=1"), 1, "two bounds and perhaps a scale");
  fails(fit_of(folder, search + "layers[0].weight_variance=1:x"), 1, "with numbers, got 'x'");
  fails(fit_of(folder, search + "layers[0].weight_variance=1:2:cubic"), 1, "expected linear, log or integer");
  fails(fit_of(folder, search + "layers[0].weight_varianc=1:2"), 1,
        "the network has no such field; layers[0] has bias_variance, weight_variance");
  fails(fit_of(folder, search + "layers[99].weight_variance=1:2"), 1, "the network has no such field");
  fails(fit_of(folder, search + "layers[x].weight_variance=1:2"), 1, "expected [NUMBER] in the path");
  fails(fit_of(folder, search + "layers[0].layer=1:2"), 1, "expected a number there");
  fails(fit_of(folder, search + "layers[0].weight_variance=2:1"), 1, "finite bounds, the lower one first");
  std::filesystem::create_directory(folder / "other");
  std::ofstream(folder / "other/file.txt") << "mine";
  const auto taken = run_program("fit --network fcn --data sample --model " + (folder / "other").string());
  CHECK(taken.code == 1);
  CHECK(taken.errors.find("holds file.txt, which is no part of a widelimit model") != std::string::npos);
  const auto foreign = run_program("predict --model " + (folder / "other").string() + " --x " +
                                   (folder / "x_train.npy").string() + " --out " + (folder / "out").string());
  CHECK(foreign.code == 1);
  CHECK(foreign.errors.find("expected model.json in the folder of a widelimit model") != std::string::npos);
}

TEST_CASE("fit --search: improves the criterion, keeps a table, goes on from it") {
  const TemporaryFolder folder;
  write_training_data(folder, true);
  const std::string table = (folder / "trials.csv").string();
  const std::string search = fit_of(folder,
                                    "--search layers[0].weight_variance=0.1:8:log --search "
                                    "layers[0].bias_variance=0:1 --criterion evidence --table " +
                                        table);
  const auto first = run_program(search + " --trials 6");
  REQUIRE(first.errors == "");
  CHECK(first.output.find("trial 6: evidence ") != std::string::npos);
  const auto some = trials_in(table);
  CHECK(some.size() == 6);
  const auto more = run_program(search + " --trials 12");
  REQUIRE(more.errors == "");
  CHECK(more.output.find("6 trials are known from " + table) != std::string::npos);
  const auto all = trials_in(table);
  CHECK(all.size() >= 12);
  CHECK(std::equal(some.begin(), some.end(), all.begin()));

  // The model is that of the best row, which is better than the middle of the box.
  double best = -1e300, best_variance = 0;
  for (const std::string& row : all) {
    std::istringstream fields(row);
    std::string number, variance, bias, evidence;
    for (std::string* field : {&number, &variance, &bias, &evidence}) std::getline(fields, *field, ',');
    if (std::stod(evidence) <= best) continue;
    best = std::stod(evidence);
    best_variance = std::stod(variance);
  }
  const gp::Model model = gp::Model::load(folder / "model");
  CHECK(model.log_marginal_likelihood() == doctest::Approx(best).epsilon(1e-9));
  const auto document = nlohmann::json::parse(file_text(folder / "model/model.json"));
  CHECK(document["network"]["layers"][0]["weight_variance"] == best_variance);
  std::istringstream middle(some[0]);
  std::string field;
  for (int i = 0; i < 4; ++i) std::getline(middle, field, ',');
  CHECK(best > std::stod(field));

  // Other data of the same size and CRC-32 are another search, whichever of them changed.
  for (const char* name : {"x_train.npy", "y_train.npy"}) {
    CAPTURE(name);
    const auto own = data::read_npy<double>(folder / name);
    auto changed = own;
    changed.flat(0) = of_equal_crc32(changed.flat(0));
    data::write_npy(folder / name, changed);
    const auto resumed = run_program(search + " --trials 6");
    CHECK(resumed.code == 1);
    CHECK(resumed.errors.find("holds no trials of this search") != std::string::npos);
    data::write_npy(folder / name, own);
  }
  const auto other = run_program(search + " --kernel nngp --regulariser 0.1 --trials 6");
  CHECK(other.code == 1);
  CHECK(other.errors.find("holds no trials of this search") != std::string::npos);
}

TEST_CASE("fit --search: validation criteria, networks that cannot be, integers") {
  const TemporaryFolder folder;
  write_training_data(folder, true);
  const auto by_nlpd = run_program(fit_of(folder,
                                          "--criterion nlpd --trials 5 --search "
                                          "layers[0].weight_variance=0.5:4:log --kernel ntk --refit"));
  REQUIRE(by_nlpd.errors == "");
  CHECK(by_nlpd.output.find("best of 5 trials: nlpd ") != std::string::npos);
  CHECK(gp::Model::load(folder / "model").train_size() == 42);
  const auto vanishing =
      run_program(fit_of(folder, "--trials 4 --search layers[0].weight_variance=1e-300:1e300:log --table " +
                                     (folder / "trials.csv").string()));
  CHECK(vanishing.code == 0);
}

TEST_CASE("fit and predict --time: several times are those of gp, are kept, and others can be asked for") {
  const TemporaryFolder folder;
  write_training_data(folder, false);
  write_test_data(folder);
  const auto by_gp =
      run_program("gp --network fcn --precision double --data npy --kernel ntk --time 0.5,30 --path " +
                  folder.string() + " --no-report --out " + (folder / "gp").string());
  REQUIRE(by_gp.errors == "");
  const auto fitted =
      run_program(fit_of(folder, "--kernel ntk --time 0.5,30 --out " + (folder / "fitted").string()));
  REQUIRE(fitted.errors == "");
  CHECK(fitted.output.find("networks trained for infinite time, 0.5, 30 (NTK)") != std::string::npos);
  CHECK(fitted.output.find("test at time 0.5") != std::string::npos);
  CHECK(nlohmann::json::parse(file_text(folder / "model/model.json"))["times"] == nlohmann::json({0.5, 30}));
  const std::string predict = "predict --model " + (folder / "model").string() + " --x " +
                              (folder / "x_test.npy").string() + " --y " + (folder / "y_test.npy").string() +
                              " --out " + (folder / "out").string();
  const auto predicted = run_program(predict);
  REQUIRE(predicted.errors == "");
  CHECK(predicted.output.find("new inputs at time 30") != std::string::npos);
  CHECK(lines_of(file_text(folder / "out/predictions.csv"))[0] ==
        lines_of(file_text(folder / "fitted/predictions.csv"))[0]);
  for (const std::string time : {"", "_ntk_time0", "_ntk_time1"}) {
    CAPTURE(time);
    const std::string name = time.empty() ? "_ntk" : time;
    const Matrix<double> expected = matrix_in(folder / ("gp/mean" + name + ".npy"));
    const Matrix<double> variance = matrix_in(folder / ("gp/variance" + name + ".npy"));
    for (const char* place : {"out", "fitted"}) {
      const Matrix<double> mean = matrix_in(folder / place / ("mean" + time + ".npy"));
      const Matrix<double> deviation = matrix_in(folder / place / ("standard_deviation" + time + ".npy"));
      CHECK((mean - expected).cwiseAbs().maxCoeff() < 1e-10);
      CHECK((deviation.cwiseAbs2() - variance).cwiseAbs().maxCoeff() < 1e-10);
    }
  }
  const auto results = nlohmann::json::parse(file_text(folder / "out/results.json"))["results"];
  REQUIRE(results.size() == 3);
  CHECK(results[2]["time"] == 30);
  // Others, also of a model that kept none.
  REQUIRE(run_program(predict + " --time 30").errors == "");
  CHECK(std::filesystem::exists(folder / "out/mean_ntk_time0.npy"));
  CHECK_FALSE(std::filesystem::exists(folder / "out/mean_ntk_time1.npy"));
  CHECK((matrix_in(folder / "out/mean_ntk_time0.npy") - matrix_in(folder / "gp/mean_ntk_time1.npy")).norm() <
        1e-10);
  REQUIRE(run_program(fit_of(folder, "--kernel ntk --time 0.5")).errors == "");
  REQUIRE(run_program(predict + " --time 30").errors == "");
  CHECK((matrix_in(folder / "out/mean.npy") - matrix_in(folder / "gp/mean_ntk_time0.npy")).norm() < 1e-10);
  CHECK((matrix_in(folder / "out/mean_ntk_time0.npy") - matrix_in(folder / "gp/mean_ntk_time1.npy")).norm() <
        1e-10);
  REQUIRE(run_program(fit_of(folder, "")).errors == "");
  CHECK(run_program(predict + " --time 30").errors.find("--time: the model is a Bayesian posterior") !=
        std::string::npos);
  REQUIRE(run_program(fit_of(folder, "--kernel ntk --solver cg --regulariser 0.1")).errors == "");
  CHECK(run_program(predict + " --time 30").errors.find("--time: cg knows networks after training only") !=
        std::string::npos);
}

TEST_CASE("fit --out: what predict writes for the test data") {
  const TemporaryFolder folder;
  write_training_data(folder, false);
  const auto without = run_program(fit_of(folder, "--out " + (folder / "fitted").string()));
  CHECK(without.code == 1);
  CHECK(without.errors.find("--out is for predictions of the test data, and there are none") !=
        std::string::npos);
  write_test_data(folder);
  std::filesystem::remove(folder / "y_test.npy");
  REQUIRE(run_program(fit_of(folder, "--out " + (folder / "fitted").string())).errors == "");
  REQUIRE(run_program("predict --model " + (folder / "model").string() + " --x " +
                      (folder / "x_test.npy").string() + " --out " + (folder / "out").string())
              .errors == "");
  for (const char* name : {"mean.npy", "standard_deviation.npy"})
    CHECK(matrix_in(folder / "fitted" / name) == matrix_in(folder / "out" / name));
  for (const char* name : {"predictions.csv", "results.json", "report.html", "run.json"})
    CHECK(std::filesystem::exists(folder / "fitted" / name));
  // The one of the earlier run is no result of this one.
  REQUIRE(run_program("predict --no-report --model " + (folder / "model").string() + " --x " +
                      (folder / "x_test.npy").string() + " --out " + (folder / "out").string())
              .errors == "");
  CHECK_FALSE(std::filesystem::exists(folder / "out/report.html"));
  CHECK(std::filesystem::exists(folder / "out/results.json"));
  REQUIRE(run_program(fit_of(folder, "--no-report --out " + (folder / "fitted").string())).errors == "");
  CHECK_FALSE(std::filesystem::exists(folder / "fitted/report.html"));
}

TEST_CASE("fit --store: the bits of a fit in memory, from tiles that gp finds as well") {
  const TemporaryFolder folder;
  write_training_data(folder, true);
  write_test_data(folder);
  const std::string store = " --store " + (folder / "stores").string(),
                    more = "--kernel ntk --criterion nlpd";
  REQUIRE(run_program(fit_of(folder, more)).errors == "");
  const std::string expected = file_text(folder / "model/weights.npy");
  for (const char* refit : {"", " --refit"}) {
    CAPTURE(refit);
    REQUIRE(run_program(fit_of(folder, more + refit)).errors == "");
    const std::string weights = file_text(folder / "model/weights.npy");
    REQUIRE(run_program(fit_of(folder, more + refit + store)).errors == "");
    CHECK(file_text(folder / "model/weights.npy") == weights);
  }
  for (const char* name : {"train", "validation-train", "validation"})
    CHECK(std::filesystem::exists(folder / "stores" / name / "zarr.json"));
  const auto by_gp = run_program("gp --network fcn --precision double --data npy --path " + folder.string() +
                                 " " + more + store);
  CHECK(by_gp.errors == "");
  CHECK(run_program(fit_of(folder, store + " --part 1/2")).errors.find("a model takes all of a store") !=
        std::string::npos);
  CHECK(run_program(fit_of(folder, store + " --gram " + (folder / "grams").string()))
            .errors.find("both keep the Gram matrices") != std::string::npos);
}

}  // namespace widelimit::testing
