#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <xtensor/xarray.hpp>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"

using nlohmann::json;
using widelimit::testing::file_text;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;

namespace {

/// The transformer of `propagation exponents --alpha 0.5 --sigma-w 2.25`.
constexpr const char* block_text = R"({"widelimit": 1, "layers": [
  {"layer": "sum", "branches": [{"scale": 0.8660254037844386, "layers": []}, {"scale": 0.5, "layers": [
    {"layer": "rms_norm"}, {"layer": "attention", "scaling": "inverse_width", "tied": false}]}]},
  {"layer": "sum", "branches": [{"scale": 0.8660254037844386, "layers": []}, {"scale": 0.5, "layers": [
    {"layer": "rms_norm"}, {"layer": "dense", "weight_variance": 5.0625}, {"layer": "tanh"},
    {"layer": "dense", "weight_variance": 5.0625}, {"layer": "tanh"}, {"layer": "dense"}]}]}]})";

std::string block_file(const TemporaryFolder& folder) {
  std::ofstream(folder / "block.json") << block_text;
  return (folder / "block.json").string();
}

json propagation_json(const std::string& arguments) {
  const auto result = run_program("propagation " + arguments);
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  return json::parse(result.output);
}

void check_refused(const std::string& arguments, const std::string& message) {
  CAPTURE(arguments);
  const auto result = run_program("propagation " + arguments);
  CHECK(result.code != 0);
  CHECK(result.output.empty());
  CAPTURE(result.errors);
  CHECK(result.errors.find(message) != std::string::npos);
}

}  // namespace

TEST_CASE("propagation network: blocks that part equal tokens have no angle exponent, and say so") {
  const TemporaryFolder folder;
  const std::string block = (folder / "parts.json").string();
  std::ofstream(block)
      << R"({"widelimit": 1, "layers": [{"layer": "dense", "weight_variance": 1.5}, {"layer": "tanh"},
    {"layer": "dropout", "keep": 0.5}]})";
  const auto result = run_program("propagation network " + block + " --tokens 6 --depth 3");
  REQUIRE(result.code == 0);
  const json found = json::parse(result.output), &exponents = found.at("exponents");
  for (const char* name : {"lambda_a_log", "lambda_a_log_last_block"}) CHECK(exponents.at(name).is_null());
  CHECK(exponents.at("no_angles").get<std::string>().starts_with("equal tokens do not stay equal"));
  CHECK(found.at("notes").at("lambda_a_log") == exponents.at("no_angles"));
  CHECK(exponents.at("at_fixed_point") == false);
  CHECK(exponents.at("lambda_g").at("value").is_number());
  CHECK(result.errors.find("lambda_a_log: equal tokens do not stay equal") != std::string::npos);
  const std::string vary = "network " + block + " --tokens 6 --depth 2 --vary layers[2].keep=0.5:1:3";
  const auto scan = run_program("propagation " + vary + " --plot " + (folder / "v.png").string());
  CAPTURE(scan.errors);
  REQUIRE(scan.code == 0);
  CHECK(std::filesystem::exists(folder / "v.png"));
  const json scanned = json::parse(scan.output);
  CHECK(scanned.at("notes")
            .at("lambda_a_log")
            .get<std::string>()
            .starts_with("at 2 of 3 points: equal tokens"));
  for (std::size_t k = 0; k < 3; ++k) CHECK(scanned.at("rows")[k][4].is_null() == (k < 2));
  const auto all = run_program("propagation network " + block +
                               " --tokens 6 --depth 2 --vary layers[2].keep=0.5:0.9:3 "
                               "--vary layers[0].weight_variance=1:2:3 --plot " +
                               (folder / "a.png").string());
  CAPTURE(all.errors);
  CHECK(all.code == 0);
  CHECK(std::filesystem::exists(folder / "a.png"));
  CHECK(json::parse(all.output).at("lambda_a_zero").empty());
}

TEST_CASE("propagation network: the exponents of the closed forms, gradients and Gram matrices") {
  const TemporaryFolder folder;
  const std::string block = block_file(folder);
  const json closed = propagation_json("exponents --tokens 8 --depth 6 --sigma-w 2.25");
  const json found =
      propagation_json("network " + block + " --tokens 8 --depth 6 --q0 1 --c0 0.5 --gradients --grams " +
                       (folder / "g.npy").string() + " --plot " + (folder / "p.png").string());
  const json& exponents = found.at("exponents");
  CHECK(exponents.at("at_fixed_point") == true);
  for (const char* name : {"lambda_a_log", "lambda_g"})
    CHECK(exponents.at(name).at("value").get<double>() ==
          doctest::Approx(closed.at(name).get<double>()).epsilon(1e-9).scale(0));
  CHECK(found.at("rows").size() == 7);
  const json& layers = found.at("layer_gradients");
  CHECK(std::count_if(layers.begin(), layers.end(),
                      [](const json& one) { return !one.contains("parameter"); }) == 4);
  CHECK(layers.size() > 4);
  CHECK(layers[1].at("kind") == "attention");
  CHECK(layers[1].at("layer") == layers[0].at("layer"));
  CHECK(found.at("layer_gradients")[0].at("kind") == "attention");
  CHECK(found.at("layer_gradients")[0].at("blocks").size() == 6);
  const auto grams = widelimit::data::read_npy<double>(folder / "g.npy");
  CHECK(grams.dimension() == 3);
  CHECK(grams.shape(0) == 7);
  CHECK(grams(6, 2, 2) == doctest::Approx(found.at("rows")[6][1].get<double>()).epsilon(1e-14).scale(0));
  CHECK(file_text(folder / "p.png").substr(1, 3) == "PNG");
  // From a Gram matrix after three blocks the last three follow.
  xt::xarray<double> middle = xt::xarray<double>::from_shape({8, 8});
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t j = 0; j < 8; ++j) middle(i, j) = grams(3, i, j);
  widelimit::data::write_npy(folder / "m.npy", middle);
  const json rest = propagation_json("network " + block + " --depth 3 --gram " + (folder / "m.npy").string());
  CHECK(rest.at("rows")[3][1].get<double>() ==
        doctest::Approx(found.at("rows")[6][1].get<double>()).epsilon(1e-13).scale(0));
}

TEST_CASE("propagation network: networks beside the theory") {
  const TemporaryFolder folder;
  const json found = propagation_json(
      "network " + block_file(folder) +
      " --tokens 5 --depth 2 --q0 1 --c0 0.3 --gradients --networks 12 --width 64 --seed 3 --plot " +
      (folder / "n.png").string());
  const json& row = found.at("rows")[2];
  REQUIRE(row.size() == 12);
  CHECK(row[8].get<double>() == doctest::Approx(row[1].get<double>()).epsilon(0.15).scale(0));
  const json& theory = found.at("layer_gradients");
  const json& networks = found.at("networks").at("layer_gradients");
  REQUIRE(networks.size() == theory.size());
  for (std::size_t k = 0; k < theory.size(); ++k) {
    CHECK(networks[k].at("layer") == theory[k].at("layer"));
    CHECK(networks[k].value("parameter", "") == theory[k].value("parameter", ""));
  }
  CHECK(found.at("origin").at("seed") == 3);
}

TEST_CASE(
    "propagation network: a critical line that no step of the last number crosses is found all the same") {
  // The last number is that of a layer after the one that makes the block critical: it scales both inputs alike.
  const TemporaryFolder folder;
  std::ofstream(folder / "mlp.json") << R"({"widelimit": 1, "layers": [
      {"layer": "dense", "weight_variance": 1}, {"layer": "tanh"}, {"layer": "dense", "weight_variance": 1}]})";
  const json found =
      propagation_json("network " + (folder / "mlp.json").string() +
                       " --tokens 2 --depth 3 --vary 'layers[0].weight_variance=0.5:4:3:log' --vary "
                       "'layers[2].weight_variance=0.9:1.1:2' --plot " +
                       (folder / "v.png").string());
  std::size_t between = 0;
  for (const json& point : found.at("lambda_g_zero"))
    if (point[1] == 0.9 || point[1] == 1.1) ++between;
  CHECK(between >= 2);
}

TEST_CASE("propagation network: critical lines over numbers of the file") {
  const TemporaryFolder folder;
  const std::string block = block_file(folder);
  // Both hidden gains follow one number in the closed form, so only the first layer's is varied here, and the root is
  // checked by asking for the exponents there.
  const std::string first = "'layers[1].branches[1].layers[1].weight_variance=2:40:8:log'";
  const json found = propagation_json("network " + block + " --tokens 6 --depth 4 --vary " + first +
                                      " --plot " + (folder / "v.png").string());
  REQUIRE(found.at("rows").size() == 8);
  REQUIRE(found.at("lambda_a_zero").size() == 1);
  const double root = found.at("lambda_a_zero")[0][0].get<double>();
  CHECK(root > 2);
  json document = json::parse(block_text);
  document["layers"][1]["branches"][1]["layers"][1]["weight_variance"] = root;
  std::ofstream(folder / "critical.json") << document.dump();
  const json there =
      propagation_json("network " + (folder / "critical.json").string() + " --tokens 6 --depth 4");
  CHECK(std::abs(there.at("exponents").at("lambda_a_log").at("value").get<double>()) < 1e-11);
  const auto both = run_program("propagation network " + block + " --tokens 6 --depth 4 --vary " + first +
                                " --vary 'layers[1].branches[1].scale=0.2:0.8:3' --out " +
                                (folder / "v.csv").string() + " --plot " + (folder / "w.png").string());
  CHECK(both.code == 0);
  CHECK(file_text(folder / "v.csv")
            .find("layers[1].branches[1].layers[1].weight_variance,layers[1].branches[1].scale,"
                  "start_norm,") != std::string::npos);
}

TEST_CASE("propagation network: what is refused") {
  const TemporaryFolder folder;
  const std::string block = block_file(folder);
  const auto vary = [&](const std::string& spec) { return "network " + block + " --vary '" + spec + "'"; };
  const std::string images = WIDELIMIT_SOURCE_DIR "/data/networks/images.json";
  check_refused("network " + images + " --tokens 4 --depth 2", "widelimit: " + images + ": layers[");
  check_refused(vary("layers[1].nothing=1:2:3"), "the network has no such field; layers[1] has branches");
  check_refused(vary("layers[0].branches[1].scale=2:1:3"), "expected ascending bounds, got 2 and 1");
  check_refused(vary("layers[0].branches[1].scale=0:1:3:log"), "a log scale needs positive bounds, got 0");
  check_refused(vary("layers[0].branches[1].scale=0:1"), "two bounds, a count and perhaps a scale");
  check_refused(vary("layers[0].branches[1].scale=0:1:1"), "expected a count of at least 2, got 1");
  check_refused(vary("widelimit=1:2:3"), "the network has no such field; it has layers");
  check_refused(vary("layers[0].branches[1].scale=0.1:1:3") + " --c0 0.5", "leave out --gram, --c0");
  check_refused("network " + block + " --gram missing.npy --q0 2", "--tokens, --q0 and --c0 are the start");
  check_refused("network " + block + " --tokens 4 --q0 1 --c0 -0.9",
                "--c0: expected a number from -0.333333 to 1 for 4 tokens, got -0.9");
  check_refused("network " + block + " --tokens 4 --c0 0.5", "--c0: needs --q0 as well");
  check_refused("network " + block + " --tokens 1 --q0 1 --c0 0.5",
                "--c0: one token has no cosine; leave it out");
  check_refused("network " + block + " --tokens 4 --networks 2 --heads 3 --width 8",
                "--heads: expected a divisor of --width, 8, got 3");
  check_refused("network " + block + " --tokens 4 --networks 2 --width 12",
                "--heads: expected a divisor of --width, 12, got 8");
  std::ofstream(folder / "mlp.json")
      << R"({"widelimit": 1, "layers": [{"layer": "dense"}, {"layer": "relu"}]})";
  check_refused("network " + (folder / "mlp.json").string() + " --tokens 4 --networks 2 --heads 2",
                "--heads: has no effect on a block without attention; leave it out");
  check_refused("network fcn --tokens 4", "a block must leave as many tokens as came");
}

TEST_CASE("propagation measure: activations beside a block's theory") {
  const TemporaryFolder folder;
  const std::string block = block_file(folder);
  // Two tokens of norms 1 and 4 a channel at right angles, then nearly equal ones.
  xt::xarray<double> first = xt::zeros<double>({1, 2, 4}), second = xt::ones<double>({1, 2, 4});
  first(0, 0, 0) = 2;
  first(0, 1, 1) = 4;
  second *= 0.5;
  second(0, 1, 0) = 0;
  widelimit::data::write_npy(folder / "layer_0.npy", first);
  widelimit::data::write_npy(folder / "layer_1.npy", second);
  const json found = propagation_json("measure " + folder.path().string() + " --network " + block);
  const json& rows = found.at("rows");
  REQUIRE(rows.size() == 2);
  const json expected_columns{"layer",
                              "q",
                              "q_error",
                              "q_spread",
                              "largest_share",
                              "largest_token",
                              "cosine",
                              "cosine_error",
                              "product_ratio",
                              "product_ratio_error",
                              "norm_growth",
                              "angle_growth",
                              "theory_q",
                              "theory_cosine",
                              "theory_product_ratio"};
  CHECK(found.at("columns") == expected_columns);
  CHECK(rows[0][1] == doctest::Approx(2.5));
  CHECK(rows[0][3] == doctest::Approx(0.6));
  CHECK(rows[0][4] == doctest::Approx(0.8));
  CHECK(rows[0][5] == 1);
  CHECK(rows[0][6] == doctest::Approx(0));
  CHECK(rows[1][1] == doctest::Approx(0.21875));
  // Norms 1/4 and 3/16, product 3/16.
  const double cosine = 0.1875 / std::sqrt(0.25 * 0.1875);
  CHECK(rows[1][6] == doctest::Approx(cosine));
  CHECK(rows[1][8] == doctest::Approx(0.1875 / 0.21875));
  CHECK(found.at("norm_growth") == doctest::Approx(std::log(0.21875 / 2.5)));
  CHECK(found.at("angle_growth") == doctest::Approx(std::log(1 - cosine)));
  CHECK(rows[0][12] == doctest::Approx(2.5));
  CHECK(rows[1][12].get<double>() > 1);
  CHECK(found.at("notes").at("cosine_error") == "a single sequence has no standard error");
  check_refused("measure " + (folder / "nothing").string(), "there is no layer_0.npy");
  CHECK(found.at("shape") == json{1, 2, 4});
  const std::vector<std::array<std::size_t, 3>> others{{1, 3, 4}, {2, 2, 4}, {1, 2, 5}};
  for (const auto& shape : others) {
    widelimit::data::write_npy(folder / "layer_1.npy", xt::xarray<double>(xt::ones<double>(shape)));
    check_refused(
        "measure " + folder.path().string(),
        fmt::format("layer_1.npy: expected sequences, tokens and width as in layer_0.npy, 1 x 2 x 4, "
                    "got {} x {} x {}\n",
                    shape[0], shape[1], shape[2]));
  }
}

TEST_CASE("propagation measure: attention of each block, and a token that has most of the norm") {
  const TemporaryFolder folder;
  xt::xarray<double> layer = xt::ones<double>({2, 6, 4}), attention = xt::ones<double>({2, 3, 6, 6}) / 6;
  for (std::size_t s = 0; s < 2; ++s)
    for (std::size_t c = 0; c < 4; ++c) {
      layer(s, 0, c) = 30;
      layer(s, 1, c) = static_cast<double>(c);
    }
  widelimit::data::write_npy(folder / "layer_0.npy", layer);
  widelimit::data::write_npy(folder / "layer_1.npy", layer);
  widelimit::data::write_npy(folder / "attention_0.npy", attention);
  const json found = propagation_json("measure " + folder.path().string());
  REQUIRE(found.at("attention").size() == 3);
  CHECK(found.at("attention")[2].at("head") == 2);
  CHECK(found.at("attention")[2].at("entropy").at("value") == doctest::Approx(std::log(6)));
  CHECK(found.at("attention")[2].at("first_weight").at("value") == doctest::Approx(1.0 / 6));
  CHECK(found.at("sink").get<std::string>().starts_with(
      "in 2 of 2 layers one token has most of a sequence's squared norm (99 % in layer 0, token 0 in 100 % "
      "of the "
      "sequences)"));
  // The advice of the warning: without the sink, by a mask as tokenizers give them, rows are brought to 1.
  xt::xarray<std::int64_t> mask = xt::ones<std::int64_t>({2, 6});
  mask(0, 0) = mask(1, 0) = 0;
  widelimit::data::write_npy(folder / "mask.npy", mask);
  const json others =
      propagation_json("measure " + folder.path().string() + " --mask " + (folder / "mask.npy").string());
  CHECK_FALSE(others.contains("sink"));
  CHECK(others.at("attention")[2].at("entropy").at("value") == doctest::Approx(std::log(5)));
  CHECK(others.at("attention")[2].at("kept_weight").at("value") == doctest::Approx(5.0 / 6));
  CHECK(others.at("attention")[2].at("rows_left_out") == 0);
  const auto refused = [&](const xt::xarray<double>& array, const std::string& message) {
    widelimit::data::write_npy(folder / "attention_0.npy", array);
    check_refused("measure " + folder.path().string(), "attention_0.npy: " + message);
  };
  refused(2 * attention, "token 0 of head 0 in sequence 0: expected weights that sum to 1");
  refused(xt::ones<double>({2, 3, 6, 5}),
          "expected attention [sequences, heads, tokens, tokens] = [2, heads, 6, 6], got [2, 3, 6, 5]");
  widelimit::data::write_npy(folder / "attention_0.npy", attention);
  widelimit::data::write_npy(folder / "attention_1.npy", attention);
  check_refused("measure " + folder.path().string(),
                "expected attention_K.npy of each of the 1 blocks, got 2");
}

TEST_CASE("propagation measure: layers are numbered without gaps") {
  const TemporaryFolder folder;
  const auto write = [&](const char* name) {
    widelimit::data::write_npy(folder / name, xt::xarray<double>(xt::ones<double>({1, 2, 4})));
  };
  const std::string measure = "measure " + folder.path().string(),
                    expected =
                        folder.path().string() + ": expected layer_0.npy, layer_1.npy, ..., there is no ";
  check_refused(measure, expected + "layer_0.npy\n");
  write("layer_0.npy");
  write("layer_2.npy");
  write("layer_3.npy");
  check_refused(measure, expected + "layer_1.npy, but layer_2.npy, layer_3.npy\n");
  write("layer_1.npy");
  CHECK(propagation_json(measure).at("rows").size() == 4);
  write("layer_04.npy");
  check_refused(measure, expected + "layer_4.npy, but layer_04.npy\n");
}

TEST_CASE("propagation measure: rounding of equal tokens is no angle, and padding no token") {
  const TemporaryFolder folder;
  // Two sequences of four tokens, open, nearly equal, and equal but for the last bits of float.
  const auto write = [&](int layer, float distance) {
    xt::xarray<float> tokens = xt::ones<float>({2, 4, 16});
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t k = 0; k < 16; ++k)
        tokens(0, i, k) = tokens(1, i, k) =
            std::sin(static_cast<float>(k + 1)) + distance * std::cos(static_cast<float>(7 * i + k));
    widelimit::data::write_npy(folder / fmt::format("layer_{}.npy", layer), tokens);
  };
  write(0, 0.5F);
  write(1, 1e-2F);
  write(2, 1e-7F);
  write(3, 1e-7F);
  const std::string measure = "measure " + folder.path().string();
  const auto run = run_program("propagation " + measure);
  REQUIRE(run.code == 0);
  const json found = json::parse(run.output);
  CHECK(found.at("layers_below_rounding") == 2);
  CHECK(found.at("rows")[1][11].get<double>() < -5);
  CHECK(found.at("rows")[2][11].is_null());
  CHECK(found.at("rows")[3][11].is_null());
  CHECK(found.at("angle_growth") == found.at("rows")[1][11]);
  const std::string note = found.at("notes").at("angle_growth");
  CHECK(
      note.starts_with("in 2 of 4 layers 1 - cosine is below 4.5e-13, which rounding makes of equal tokens"));
  CHECK(run.errors == "widelimit: warning: " + note + "\n");
  REQUIRE(run_program("propagation " + measure + " --out " + (folder / "t.csv").string()).code == 0);
  const std::string text = file_text(folder / "t.csv");
  CHECK(text.find("-nan") == std::string::npos);
  CHECK(text.find(",nan\n") != std::string::npos);
  CHECK(text.find("# notes: ") != std::string::npos);

  const auto write_file = [&](const char* name, const auto& array) {
    widelimit::data::write_npy(folder / name, array);
    return (folder / name).string();
  };
  // Cut to two tokens both ways.
  const std::string lengths = write_file("n.npy", xt::xarray<std::int64_t>{2, 2}),
                    mask = write_file("m.npy", xt::xarray<std::int64_t>{{1, 1, 0, 0}, {1, 1, 0, 0}});
  const json cut = propagation_json(measure + " --lengths " + lengths);
  CHECK(cut.at("rows") == propagation_json(measure + " --mask " + mask).at("rows"));
  CHECK(cut.at("rows")[0][6] != found.at("rows")[0][6]);
  check_refused(measure + " --lengths " + lengths + " --mask " + mask, "--lengths: has no effect together");
  check_refused(measure + " --lengths " + write_file("o.npy", xt::xarray<std::int64_t>{2, 9}),
                "o.npy: expected lengths from 2 to 4, got 9 for sequence 1");
  check_refused(measure + " --mask " + write_file("p.npy", xt::xarray<std::int64_t>{{1, 1}}),
                "p.npy: expected a mask [sequences, tokens] = [2, 4], got [1, 2]");
  check_refused(measure + " --network " + block_file(folder) + " --lengths " +
                    write_file("q.npy", xt::xarray<std::int64_t>{2, 3}),
                "--network: the theory is that of one number of tokens");
  widelimit::data::write_npy(folder / "layer_0.npy", xt::xarray<float>(xt::ones<float>({4, 16})));
  check_refused(measure,
                "layer_0.npy: expected activations [sequences, tokens, width] of at least two tokens, got "
                "[4, 16]; one sequence is array[None], of the shape [1, 4, 16]");
}

TEST_CASE("propagation network: the mean cosine of tokens of different norms") {
  const TemporaryFolder folder;
  const std::string block = block_file(folder);
  // Cosine .5 of two tokens, one ten times as long.
  widelimit::data::write_npy(folder / "g.npy", xt::xarray<double>{{1, 5}, {5, 100}});
  const json found =
      propagation_json("network " + block + " --gram " + (folder / "g.npy").string() + " --depth 1");
  CHECK(found.at("rows")[0][3] == doctest::Approx(0.5));
  CHECK(found.at("rows")[0][7] == doctest::Approx(5 / 50.5));
}

TEST_CASE("propagation exponents: no word follows from a number that is none") {
  for (const char* options : {"--activation exp --sigma-w 2", "--activation exp --sigma-w 2 --skip 1",
                              "--mlp-depth 2000 --sigma-w 10 --sigma-out shared"}) {
    check_refused(std::string("exponents ") + options, "lower sigma_w = ");
    check_refused(std::string("trajectory --tokens 4 ") + options, "lower sigma_w = ");
  }
  const json deep = propagation_json("exponents --skip 1.5 --depth 512");
  CHECK(deep.at("lambda_g").get<double>() == doctest::Approx(1.6219).epsilon(1e-4));
  CHECK(deep.at("phase").get<std::string>().find("exploding gradients") != std::string::npos);
  CHECK(std::abs(deep.at("lambda_a").get<double>()) < 1e-3);
  const auto run = run_program("propagation phase --activation exp --x alpha:.2:.8:2 --y sigma_w:.5:4:3");
  REQUIRE(run.code == 0);
  const json phase = json::parse(run.output);
  CHECK(phase.at("rows")[5][2].is_null());
  const std::string note = phase.at("notes").at("lambda_a");
  CHECK(note.starts_with("none at 4 of 6 points"));
  CHECK(run.errors.find(note) != std::string::npos);
  // All angles close in one block: -infinity is no missing number.
  const json closed = propagation_json("exponents --alpha-A 1");
  CHECK(closed.at("notes").at("lambda_a_log") == "-infinity: one block makes all tokens equal");
  CHECK(closed.at("phase").get<std::string>().starts_with("ordered angles"));
  check_refused("trajectory --skip 1.5 --depth 1024 --tokens 8", "the squared norm after block 438");
}
