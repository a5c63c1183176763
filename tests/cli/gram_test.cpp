#include "widelimit/kernel/gram.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/gp/median_distance.hpp"
#include "widelimit/kernel/position_covariances.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/models/named_networks.hpp"
#include "widelimit/network/network_file.hpp"

using namespace widelimit;
using widelimit::testing::lines_of;
using widelimit::testing::run_program;
using widelimit::testing::run_script;
using widelimit::testing::TemporaryFolder;

namespace {

/// Small integers, so that every element type can hold them.
template <typename T>
xt::xarray<T> some_inputs(std::size_t count, std::size_t size = 4) {
  xt::xarray<T> x = xt::xarray<T>::from_shape({count, size, size, 2});
  int value = 1;
  for (T& entry : x) entry = static_cast<T>((value = value * 5 % 17));
  return x;
}

Matrix<double> read_matrix(const std::filesystem::path& file) {
  const auto array = data::read_npy_as<double>(file);
  return Eigen::Map<const Matrix<double>>(array.data(), static_cast<Index>(array.shape(0)),
                                          static_cast<Index>(array.shape(1)));
}

const Network& network() {
  static const Network value = models::named_network("conv-gap", {{"depth", 1}});
  return value;
}

void check_gram_fails(const std::string& arguments, const std::string& part) {
  CAPTURE(arguments);
  const auto result = run_program("gram " + arguments);
  CHECK(result.code == 1);
  CHECK(result.errors.find("widelimit: ") == 0);
  CHECK(result.errors.find('\n') == result.errors.size() - 1);
  CAPTURE(result.errors);
  CHECK(result.errors.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("gram: says of each file its shape and range, in the order of the computation") {
  const TemporaryFolder folder;
  data::write_npy(folder / "x.npy", some_inputs<double>(3));
  const auto result = run_program("gram conv-gap:depth=1 --variances --x " + (folder / "x.npy").string() +
                                  " --out " + (folder / "out").string());
  REQUIRE(result.code == 0);
  std::vector<std::vector<std::string>> cells;
  for (const std::string& line : lines_of(result.output)) {
    std::istringstream words(line);
    cells.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  }
  REQUIRE(cells.size() == 4);
  CHECK(cells[0] == std::vector<std::string>{"file", "shape", "smallest", "mean", "largest"});
  const char* files[] = {"nngp.npy", "ntk.npy", "variances.npy"};
  for (std::size_t i = 0; i < 3; ++i) CHECK(cells[i + 1].front() == files[i]);
}

TEST_CASE("gram: says how many inputs leading outputs of attention shortened, unless it is to be exact") {
  const TemporaryFolder folder;
  data::write_npy(folder / "x.npy", xt::xarray<float>(xt::full_like(some_inputs<float>(3, 16), 0.7F)));
  std::ofstream(folder / "network.json")
      << R"({"widelimit": 1, "layers": [{"layer": "dense"}, {"layer": "relu"},
    {"layer": "attention"}, {"layer": "flatten"}, {"layer": "dense"}]})";
  const std::string command =
      "gram " + (folder / "network.json").string() + " --x " + (folder / "x.npy").string();
  const auto few = run_program(command + " --out " + (folder / "few").string());
  REQUIRE(few.code == 0);
  CHECK(few.output.find("attention of 3 inputs by ") != std::string::npos);
  const auto exact = run_program(command + " --exact-attention --out " + (folder / "exact").string());
  REQUIRE(exact.code == 0);
  CHECK(exact.output.find("leading combinations") == std::string::npos);
  const Matrix<double> one = read_matrix(folder / "few" / "ntk.npy"),
                       other = read_matrix(folder / "exact" / "ntk.npy");
  CHECK((one - other).cwiseAbs().maxCoeff() < 1e-6 * other.cwiseAbs().maxCoeff());
}

TEST_CASE("gram: both kernels of one batch, from a network file, in double") {
  const TemporaryFolder folder;
  write_network(folder / "network.json", network());
  const auto x = some_inputs<double>(3);
  data::write_npy(folder / "x.npy", x);
  const auto result =
      run_program("gram " + (folder / "network.json").string() + " --x " + (folder / "x.npy").string() +
                  " --kernel both --precision double --threads 2 --out " + (folder / "a/b").string());
  CHECK(result.code == 0);
  CHECK(result.errors.empty());
  const auto expected = gram<double>(network(), x);
  const auto table = lines_of(result.output);
  REQUIRE(table.size() == 3);
  CHECK(table[0].find("file") != std::string::npos);
  CHECK(table[1].find("nngp.npy") != std::string::npos);
  CHECK(table[1].find("3 x 3") != std::string::npos);
  CHECK(table[1].find(fmt::format("{:.6g}", expected.nngp.maxCoeff())) != std::string::npos);
  CHECK(read_matrix(folder / "a/b/nngp.npy") == expected.nngp);
  CHECK(read_matrix(folder / "a/b/ntk.npy") == expected.ntk);
  CHECK_FALSE(std::filesystem::exists(folder / "a/b/nngp_error.npy"));
}

TEST_CASE("gram: inputs of every element type") {
  const TemporaryFolder folder;
  data::write_npy(folder / "f4.npy", some_inputs<float>(2));
  data::write_npy(folder / "i4.npy", some_inputs<std::int32_t>(2));
  data::write_npy(folder / "i8.npy", some_inputs<std::int64_t>(2));
  data::write_npy(folder / "u1.npy", some_inputs<std::uint8_t>(2));
  const auto expected = gram<double>(network(), some_inputs<double>(2)).nngp;
  for (const char* type : {"f4", "i4", "i8", "u1"}) {
    CAPTURE(type);
    CHECK(run_program("gram conv-gap:depth=1 --kernel nngp --precision double --x " + folder.string() + "/" +
                      type + ".npy --out " + folder.string() + "/" + type)
              .code == 0);
    CHECK(read_matrix(folder / (std::string(type) + "/nngp.npy")) == expected);
    CHECK_FALSE(std::filesystem::exists(folder / (std::string(type) + "/ntk.npy")));
  }
}

TEST_CASE("gram: two batches, one kernel, in float") {
  const TemporaryFolder folder;
  const auto x1 = some_inputs<float>(3), x2 = xt::xarray<float>(2 * some_inputs<float>(2));
  data::write_npy(folder / "x1.npy", x1);
  data::write_npy(folder / "x2.npy", x2);
  CHECK(run_program("gram conv-gap:depth=1 --kernel ntk --precision float --x " +
                    (folder / "x1.npy").string() + " --x2 " + (folder / "x2.npy").string() + " --out " +
                    (folder / "out").string())
            .code == 0);
  const auto ntk = data::read_npy<float>(folder / "out/ntk.npy");
  REQUIRE(ntk.size() == 6);
  CHECK(ntk.shape(0) == 3);
  CHECK(Eigen::Map<const Matrix<float>>(ntk.data(), 3, 2) == gram<float>(network(), x1, x2).ntk);
  CHECK_FALSE(std::filesystem::exists(folder / "out/nngp.npy"));
}

TEST_CASE("gram: standard errors of sampled layers") {
  const TemporaryFolder folder;
  data::write_npy(folder / "x.npy", some_inputs<float>(2));
  const Network sampled = parse_network(R"({"widelimit": 1, "name": "sampled", "layers": [
    {"layer": "attention", "scaling": "inverse_sqrt_width", "query_key_std": 0.05, "samples": 64},
    {"layer": "flatten"}, {"layer": "dense"}]})");
  write_network(folder / "n.json", sampled);
  const std::string start = "gram " + (folder / "n.json").string() + " --precision double --x " +
                            (folder / "x.npy").string() + " --out " + folder.string();
  CHECK(run_program(start + "/both").code == 0);
  CHECK(run_program(start + "/nngp --kernel nngp").code == 0);
  const auto expected = gram<double>(sampled, some_inputs<double>(2));
  CHECK(read_matrix(folder / "both/nngp_error.npy") == expected.nngp_error);
  CHECK(read_matrix(folder / "both/ntk_error.npy") == expected.ntk_error);
  CHECK(std::filesystem::exists(folder / "nngp/nngp_error.npy"));
  CHECK_FALSE(std::filesystem::exists(folder / "nngp/ntk_error.npy"));
  CHECK(run_program(start + "/pairs --pairs 0,1 1,1").code == 0);
  const auto error = data::read_npy<double>(folder / "pairs/ntk_error.npy");
  CHECK(error.dimension() == 3);
  CHECK(error(1, 0, 0) == doctest::Approx(expected.ntk_error(1, 1)).epsilon(1e-12).scale(0));
}

TEST_CASE("gram: inputs that float rounds to 0") {
  const TemporaryFolder folder;
  auto x = some_inputs<double>(3);
  for (std::size_t k = 0; k < x.size() / 3; ++k) x.data()[k] *= 1e-60;
  data::write_npy(folder / "x.npy", x);
  const std::string arguments = "fcn --kernel nngp --x " + (folder / "x.npy").string() + " --out ";
  check_gram_fails(
      arguments + (folder / "float").string(),
      "x.npy: all numbers of input 0 are rounded to 0, they leave the range of float: rescale the inputs, or "
      "use double");
  CHECK(run_program("gram " + arguments + (folder / "double").string() + " --precision double").code == 0);
}

TEST_CASE("gram: errors name what is wrong, before anything is written") {
  const TemporaryFolder folder;
  const std::string end = " --out " + (folder / "out").string();
  const auto file = [&](const char* name) { return (folder / name).string(); };
  data::write_npy(folder / "x.npy", some_inputs<double>(2));
  data::write_npy(folder / "larger.npy", some_inputs<double>(2, 5));
  data::write_npy(folder / "flat.npy", xt::xarray<double>::from_shape({4}));
  auto broken = some_inputs<double>(2);
  broken.flat(35) = std::numeric_limits<double>::quiet_NaN();
  data::write_npy(folder / "nan.npy", broken);
  write_network(folder / "open.json", Network("open", {}));

  check_gram_fails("conv-gap --x " + file("none.npy") + end, "none.npy");
  check_gram_fails("conv-gap --x " + file("flat.npy") + end, "flat.npy: ");
  check_gram_fails("conv-gap --x " + file("nan.npy") + end,
                   "nan.npy: values must be finite, got nan at entry ");
  check_gram_fails("conv-gap --x " + file("x.npy") + " --x2 " + file("larger.npy") + end, "4x4");
  check_gram_fails("conv-gap:axes=1 --x " + file("x.npy") + end, "layers[0]");
  check_gram_fails(file("open.json") + " --x " + file("x.npy") + end,
                   "expected no positions after the last layer");
  check_gram_fails(file("none.json") + " --x " + file("x.npy") + end, "none.json");
  std::ofstream(folder / "network.csv") << "a,b";
  CHECK(run_script("cd '" + folder.string() + "' && \"$WIDELIMIT\" gram network.csv --x x.npy" + end)
            .errors.starts_with("widelimit: network.csv: not JSON at line 1"));
  check_gram_fails("gap --x " + file("x.npy") + end, "unknown network 'gap'");
  check_gram_fails("fcn --x " + file("x.npy") + " --out " + file("x.npy"), "x.npy: cannot make this folder");
  CHECK_FALSE(std::filesystem::exists(folder / "out"));

  CHECK(run_program("gram fcn --x " + file("x.npy") + end + " --kernel NTK --precision Double").code == 0);
  CHECK_FALSE(std::filesystem::exists(folder / "out/nngp.npy"));
  CHECK(std::filesystem::exists(folder / "out/ntk.npy"));

  for (const char* wrong : {" --kernel ntkk", " --precision half", " --threads -1", " --threads x"}) {
    CAPTURE(wrong);
    CHECK(run_program("gram fcn --x " + file("x.npy") + end + wrong).code == 2);
  }
}

TEST_CASE("gram: an interrupt ends the run with code 130, a clear message and no files") {
  const TemporaryFolder folder;
  data::write_npy(folder / "x.npy", some_inputs<float>(300, 24));
  const auto result = widelimit::testing::run_program_under(
      "timeout --preserve-status --signal=INT 1.5",
      "gram conv-gap:depth=8 --x " + (folder / "x.npy").string() + " --out " + (folder / "out").string());
  CHECK(result.code == 130);
  CHECK(result.errors.find("widelimit: ") == 0);
  CHECK(result.errors.find('\n') == result.errors.size() - 1);
  CHECK_FALSE(std::filesystem::exists(folder / "out/nngp.npy"));
}

TEST_CASE("gram: masks, variances, and covariances of chosen pairs") {
  const TemporaryFolder folder;
  auto x = xt::xarray<double>::from_shape({3, 4, 2});
  double value = 0;
  for (double& entry : x) entry = std::sin(++value);
  x(1, 1, 0) = std::numeric_limits<double>::quiet_NaN();
  xt::xarray<bool> mask = xt::ones<bool>({3, 4});
  mask(0, 2) = mask(1, 1) = false;
  xt::xarray<std::int8_t> numbers = xt::cast<std::int8_t>(mask);
  data::write_npy(folder / "x.npy", x);
  data::write_npy(folder / "mask.npy", numbers);
  numbers(0, 0) = 2;
  data::write_npy(folder / "bad.npy", numbers);
  data::write_npy(folder / "few.npy", xt::xarray<std::int8_t>(xt::ones<std::int8_t>({3, 5})));
  const Layers open{layers::conv({.filter = {3}, .bias_variance = 0.1}), layers::relu()};
  Layers closed = open;
  closed.push_back(layers::global_average_pool());
  write_network(folder / "open.json", Network{"open", open});
  write_network(folder / "closed.json", Network{"closed", closed});
  const auto arguments = [&](const std::string& network, const std::string& mask_file) {
    return (folder / network).string() + " --precision double --kernel both --force --out " +
           (folder / "out").string() + " --x " + (folder / "x.npy").string() + " --mask " +
           (folder / mask_file).string();
  };
  const Inputs<double> masked(x, mask);
  CHECK(run_program("gram " + arguments("closed.json", "mask.npy") + " --variances").code == 0);
  const auto expected = gram<double>(Network(closed), masked);
  CHECK(read_matrix(folder / "out/nngp.npy") == expected.nngp);
  CHECK(read_matrix(folder / "out/ntk.npy") == expected.ntk);
  const auto variances = data::read_npy<double>(folder / "out/variances.npy");
  REQUIRE(variances.dimension() == 1);
  for (Index i = 0; i < 3; ++i) CHECK(variances(i) == expected.nngp(i, i));

  const auto printed = run_program("gram " + arguments("open.json", "mask.npy") + " --pairs 0,1 2,2 --json");
  CHECK(printed.code == 0);
  const auto files = nlohmann::json::parse(printed.output);
  REQUIRE(files.size() == 2);  // No errors of a network that is not sampled.
  CHECK(files[0].at("file") == "nngp.npy");
  CHECK(files[1].at("file") == "ntk.npy");
  CHECK(files[1].at("shape") == "2 x 4 x 4");
  CHECK_FALSE(std::filesystem::exists(folder / "out/nngp_error.npy"));
  const auto nngp = data::read_npy<double>(folder / "out/nngp.npy"),
             ntk = data::read_npy<double>(folder / "out/ntk.npy");
  REQUIRE(nngp.dimension() == 3);
  CHECK(files[0].at("largest") == *std::max_element(nngp.begin(), nngp.end()));
  const auto first = position_covariances(Network(open), masked, 0, 1),
             second = position_covariances(Network(open), masked, 2, 2);
  for (Index a = 0; a < 4; ++a)
    for (Index b = 0; b < 4; ++b) {
      CHECK(nngp(0, a, b) == first.nngp(a, b));
      CHECK(ntk(1, a, b) == second.ntk(a, b));
    }
  CHECK(nngp(0, 2, 0) == 0);
  check_gram_fails(arguments("closed.json", "bad.npy"), "bad.npy: expected booleans, or 0 and 1, got 2");
  check_gram_fails(arguments("closed.json", "few.npy"),
                   "few.npy: inputs: expected a mask [3, 4], one value a position, got [3, 5]");
  check_gram_fails(arguments("open.json", "mask.npy") + " --pairs 0:1",
                   "--pairs: expected two inputs I,J, got 0:1");
  check_gram_fails(arguments("open.json", "mask.npy") + " --pairs 0,3",
                   "position_covariances: expected an input from 0 to 2 of x, got 3");
  const auto both = run_program("gram " + arguments("open.json", "mask.npy") + " --pairs 0,1 --variances");
  CHECK(both.code == 2);
  CHECK(both.errors.find("--variances: goes with Gram matrices, not with --pairs") != std::string::npos);
}

TEST_CASE("gram: sequences of different length") {
  const TemporaryFolder folder;
  auto x = xt::xarray<double>::from_shape({3, 4, 2});
  double value = 0;
  for (double& entry : x) entry = std::sin(++value);
  // Padding is never read.
  for (std::size_t channel = 0; channel < 2; ++channel)
    x(1, 1, channel) = x(2, 3, channel) = std::numeric_limits<double>::quiet_NaN();
  const xt::xarray<std::int64_t> lengths{4, 1, 3}, few{4, 1};
  data::write_npy(folder / "x.npy", x);
  data::write_npy(folder / "lengths.npy", lengths);
  data::write_npy(folder / "few.npy", few);
  const Network network{"sequences",
                        {layers::conv({.filter = {3}}), layers::relu(), layers::global_average_pool()}};
  write_network(folder / "sequences.json", network);
  const std::string arguments = (folder / "sequences.json").string() +
                                " --precision double --kernel both --out " + (folder / "out").string() +
                                " --x " + (folder / "x.npy").string() + " --lengths ";
  CHECK(run_program("gram " + arguments + (folder / "lengths.npy").string()).code == 0);
  const std::vector<Index> expected_lengths{4, 1, 3};
  const auto expected = gram<double>(network, x, expected_lengths);
  CHECK(read_matrix(folder / "out/nngp.npy") == expected.nngp);
  CHECK(read_matrix(folder / "out/ntk.npy") == expected.ntk);
  check_gram_fails(arguments + (folder / "few.npy").string(),
                   "few.npy: inputs: expected 3 lengths, one an input, got 2");
  check_gram_fails(arguments + (folder / "x.npy").string(), "x.npy");
}

TEST_CASE("gram: kernels of distances take the median distance of the inputs, unless a length is given") {
  const TemporaryFolder folder;
  xt::xarray<double> x = some_inputs<double>(7);
  for (std::size_t k = 0; k < x.size(); ++k) x.flat(k) += std::sin(static_cast<double>(k));
  data::write_npy(folder / "x.npy", x);
  const auto nngp = [&](const std::string& network) {
    const auto result = run_program("gram " + network + " --precision double --x " +
                                    (folder / "x.npy").string() + " --out " + (folder / "out").string());
    CAPTURE(result.errors);
    REQUIRE(result.code == 0);
    const Matrix<double> kernel = read_matrix(folder / "out" / "nngp.npy");
    std::filesystem::remove_all(folder / "out");
    return kernel;
  };
  const double median = *gp::median_distance(Inputs<double>(x));
  CHECK(nngp("matern:1.5") == gram<double>(models::named_network("matern", {{"length", median}}), x).nngp);
  CHECK(nngp("rbf") == gram<double>(models::named_network("rbf", {{"length", median}}), x).nngp);
  CHECK(nngp("laplace:length=2") == gram<double>(models::named_network("laplace", {{"length", 2}}), x).nngp);
}
