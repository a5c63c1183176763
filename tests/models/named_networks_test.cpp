#include "widelimit/models/named_networks.hpp"

#include <doctest/doctest.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <numbers>
#include <set>

#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/network/network_file.hpp"

using namespace widelimit;
using models::named_network;

namespace {

/// Four different inputs of the given dimensions, entries of order one.
xt::xarray<double> some_inputs(const std::vector<std::size_t>& dimensions) {
  xt::xarray<double> x = xt::xarray<double>::from_shape(dimensions);
  double phase = 0.3;
  for (double& value : x) value = std::sin(phase += 1.7 + 0.001 * phase);
  return x;
}

/// The positions of every input along a ring of its own.
Inputs<double> with_rings(const xt::xarray<double>& x) {
  std::vector<InputGraph> graphs;
  const auto nodes = static_cast<Index>(x.shape(1));
  for (Index i = 0; i < static_cast<Index>(x.shape(0)); ++i) {
    std::vector<GraphEdge> edges;
    for (Index node = 0; node < nodes; ++node) edges.push_back({node, (node * (i + 2) + 1) % nodes, 0.5});
    graphs.emplace_back(nodes, edges);
  }
  return {x, std::move(graphs)};
}

double largest_difference(const Matrix<double>& left, const Matrix<double>& right) {
  return (left - right).cwiseAbs().maxCoeff() / right.cwiseAbs().maxCoeff();
}

void check_equal_kernels(const Network& left, const Network& right) {
  const auto x = some_inputs({3, 5, 5, 3});
  const auto a = gram<double>(left, x), b = gram<double>(right, x);
  CHECK(largest_difference(a.nngp, b.nngp) < 1e-13);
  CHECK(largest_difference(a.ntk, b.ntk) < 1e-13);
}

}  // namespace

TEST_CASE("named networks: the names that are promised, each once, each with a description") {
  std::set<std::string> names;
  for (const auto& network : models::named_networks()) {
    CHECK(names.insert(network.name).second);
    CHECK(!network.description.empty());
    CHECK(network.description.find('\n') == std::string::npos);
  }
  CHECK(names == std::set<std::string>{"fcn", "conv-flatten", "conv-gap", "conv-lap", "vanilla", "struct",
                                       "residual-attention", "myrtle5", "resnet", "imdb-gap", "imdb-gap-fcn",
                                       "imdb-cnn-gap", "imdb-struct", "decoder", "gntk", "matern", "laplace",
                                       "rbf"});
}

TEST_CASE("named networks: all lower on small and large images or texts, and survive their file") {
  for (const auto& named : models::named_networks()) {
    const std::string& name = named.name;
    CAPTURE(name);
    const Network network = named_network(name);
    const bool images = named.example_shape.size() == 2;
    const auto shapes =
        images ? std::vector<Shape>{{8, 8}, {32, 32}, {9, 13}} : std::vector<Shape>{{1}, {7}, {1000}};
    CHECK_NOTHROW(static_cast<void>(network.describe(named.example_shape)));
    for (const Shape& shape : shapes) {
      CAPTURE(to_string(shape));
      const std::string text = network.describe(shape);
      CHECK(text.find(name) == 0);
      const std::size_t last_line = text.rfind('\n', text.size() - 2);
      CHECK(text.find("\n  no positions  ", last_line) == last_line);
    }
    CHECK(parse_network(to_json(network)) == network);
  }
}

TEST_CASE("named networks: every option is used, within its range and not beyond") {
  for (const auto& named : models::named_networks())
    for (const auto& option : named.options) {
      const std::string& name = named.name;
      CAPTURE(name);
      CAPTURE(option.name);
      const double other = option.smallest != option.default_value ? option.smallest : option.smallest + 1;
      // Some options are those of hidden layers.
      models::NetworkSettings deep;
      if (named.has_option("depth")) deep["depth"] = 3;
      models::NetworkSettings changed = deep;
      changed[option.name] = other;
      CHECK_FALSE(named_network(name, changed) == named_network(name, deep));
      CHECK(named_network(name, {{option.name, option.default_value}}) == named_network(name));
      CHECK_NOTHROW(static_cast<void>(named_network(name, {{option.name, option.smallest}})));
      CHECK_NOTHROW(static_cast<void>(named_network(name, {{option.name, option.largest}})));
      CHECK_THROWS_AS(static_cast<void>(named_network(name, {{option.name, option.smallest - 1}})),
                      ArgumentError);
      CHECK_THROWS_AS(
          static_cast<void>(named_network(name, {{option.name, option.largest * (1 + 1e-9) + 1}})),
          ArgumentError);
      CHECK_THROWS_AS(static_cast<void>(named_network(name, {{option.name, std::nan("")}})), ArgumentError);
    }
}

TEST_CASE("named networks: vectors, sequences and volumes through the option axes") {
  CHECK_NOTHROW(static_cast<void>(named_network("fcn", {{"axes", 0}}).describe({})));
  CHECK_THROWS_AS(static_cast<void>(named_network("fcn").describe({})), NetworkError);
  for (const char* name : {"conv-gap", "conv-lap", "struct", "residual-attention", "myrtle5", "resnet"}) {
    CAPTURE(name);
    CHECK_NOTHROW(static_cast<void>(named_network(name, {{"axes", 1}}).describe({16})));
    CHECK_NOTHROW(static_cast<void>(named_network(name, {{"axes", 3}}).describe({8, 8, 8})));
    CHECK_THROWS_AS(static_cast<void>(named_network(name, {{"axes", 1}}).describe({8, 8})), NetworkError);
  }
}

TEST_CASE("named networks: residual-attention has the paper's R, or one that lets alpha weigh equal parts") {
  const auto images = some_inputs({4, 8, 8, 3});
  const auto correlation = [&](double alpha, double row_sum) {
    const auto kernel =
        gram<double>(named_network("residual-attention", {{"alpha", alpha}, {"row_sum", row_sum}}), images)
            .nngp;
    return kernel(0, 1) / std::sqrt(kernel(0, 0) * kernel(1, 1));
  };
  const auto half_way = [&](double row_sum) {
    return (correlation(0.5, row_sum) - correlation(0, row_sum)) /
           (correlation(1, row_sum) - correlation(0, row_sum));
  };
  // Rows as published sum to some 50 here: half of alpha is half of nothing.
  CHECK(half_way(1) > 0.1);
  CHECK(half_way(0) < 0.01);
  CHECK(gram<double>(named_network("residual-attention"), images).nngp ==
        gram<double>(named_network("residual-attention", {{"row_sum", 0}}), images).nngp);
}

TEST_CASE("named networks: kernels are finite and positive definite on different images") {
  const auto images = some_inputs({4, 8, 8, 3}), texts = some_inputs({4, 30, 6});
  for (const auto& named : models::named_networks()) {
    const std::string& name = named.name;
    CAPTURE(name);
    const Inputs<double> x = named.example_shape.size() == 2 ? Inputs<double>(images)
                             : name == "gntk"                ? with_rings(texts)
                                                             : Inputs<double>(texts);
    const auto kernels = gram<double>(named_network(name), x);
    for (const auto& kernel : {kernels.nngp, kernels.ntk}) {
      CHECK(kernel.allFinite());
      const Eigen::LLT<Eigen::MatrixXd> cholesky(kernel);
      CHECK(cholesky.info() == Eigen::Success);
    }
    // Of a single trained layer both kernels are the same.
    const double excess = (kernels.ntk - kernels.nngp).diagonal().minCoeff();
    const bool is_single = name == "imdb-gap" || name == "matern" || name == "laplace";
    CHECK((is_single ? excess == 0 : excess > 0));
  }
}

TEST_CASE("named networks: one fully connected ReLU layer is the arc-cosine kernel of order one") {
  const auto x = some_inputs({2, 3, 2, 2});
  const auto result = gram<double>(named_network("fcn", {{"depth", 1}}), x).nngp;
  const Eigen::Map<const Matrix<double>> rows(x.data(), 2, 12);
  const Eigen::Matrix2d k = (2 * rows * rows.transpose() / 12).array() + 0.01;
  const double theta = std::acos(k(0, 1) / std::sqrt(k(0, 0) * k(1, 1)));
  const double expected = std::sqrt(k(0, 0) * k(1, 1)) *
                          (std::sin(theta) + (std::numbers::pi - theta) * std::cos(theta)) /
                          (2 * std::numbers::pi);
  CHECK(result(0, 1) == doctest::Approx(expected).epsilon(1e-12).scale(0));
  CHECK(result(0, 0) == doctest::Approx(k(0, 0) / 2).epsilon(1e-14).scale(0));
}

TEST_CASE("named networks: limits in which two of them agree") {
  check_equal_kernels(named_network("conv-lap", {{"window", 1}}), named_network("conv-flatten"));
  // Vanilla attention has no layer norm after it, structured attention has.
  const auto vanilla = [](double query_key_std, const std::string& norm) {
    const std::string conv =
        R"({"layer": "conv", "filter": [3, 3], "weight_variance": 2, "bias_variance": 0.01}, {"layer": "relu"}, )";
    return parse_network(R"({"widelimit": 1, "name": "by hand", "layers": [)" + conv + conv + conv +
                         R"({"layer": "attention", "scaling": "inverse_width", "query_key_std": )" +
                         std::to_string(query_key_std) + "}, " + norm +
                         R"({"layer": "flatten"}, {"layer": "dense"}]})");
  };
  const std::string norm = R"({"layer": "layer_norm"}, )";
  check_equal_kernels(named_network("vanilla"), vanilla(2, ""));
  check_equal_kernels(named_network("struct", {{"alpha", 1}}), vanilla(2, norm));
  // Without positions or logits every token sees the mean of all; alike for any share of the encodings.
  check_equal_kernels(named_network("struct", {{"query_key_std", 0}, {"alpha", 0.5}}), vanilla(0, norm));
  check_equal_kernels(named_network("vanilla", {{"query_key_std", 0}}), vanilla(0, ""));
  check_equal_kernels(named_network("resnet", {{"depth", 1}, {"groups", 1}, {"bias_variance", 0}}),
                      parse_network(R"({"widelimit": 1, "name": "by hand", "layers": [
      {"layer": "conv", "filter": [3, 3], "weight_variance": 2},
      {"layer": "sum", "branches": [{"scale": 0.7071067811865476, "layers": []},
        {"scale": 0.7071067811865476, "layers": [
          {"layer": "relu"}, {"layer": "conv", "filter": [3, 3], "weight_variance": 2},
          {"layer": "relu"}, {"layer": "conv", "filter": [3, 3], "weight_variance": 2}]}]},
      {"layer": "relu"}, {"layer": "global_average_pool"}, {"layer": "dense"}]})"));
}

TEST_CASE("named networks: of linear texts the kernel is that of mean words") {
  const auto x = some_inputs({3, 12, 5});
  Matrix<double> means = Matrix<double>::Zero(3, 5);
  for (Index n = 0; n < 3; ++n)
    for (Index i = 0; i < 12; ++i)
      means.row(n) += Eigen::Map<const Eigen::RowVectorXd>(x.data() + 5 * (12 * n + i), 5) / 12;
  const Matrix<double> expected = means * means.transpose() / 5;
  const auto linear = gram<double>(named_network("imdb-gap"), x).nngp;
  CHECK(largest_difference(linear, expected) < 1e-14);
  const auto close = [&](const char* name, const models::NetworkSettings& settings) {
    CAPTURE(name);
    CHECK(largest_difference(gram<double>(named_network(name, settings), x).nngp, expected) < 1e-14);
  };
  close("imdb-gap-fcn", {{"depth", 0}});
  close("imdb-cnn-gap", {{"depth", 0}});
  // Without logits every word sees the mean of all.
  close("imdb-struct", {{"query_key_std", 0}, {"attention_norm", 0}});
  const auto unit = gram<double>(named_network("imdb-gap", {{"norm", 1}}), x).nngp;
  CHECK(unit(0, 1) ==
        doctest::Approx(expected(0, 1) / std::sqrt(expected(0, 0) * expected(1, 1))).epsilon(1e-9).scale(0));
}

TEST_CASE("named networks: networks for texts, layer by layer") {
  const auto check = [](const char* name, const models::NetworkSettings& settings,
                        const std::string& layers) {
    CAPTURE(name);
    CHECK(named_network(name, settings) == parse_network(R"({"widelimit": 1, "name": ")" + std::string(name) +
                                                         R"(", "layers": [)" + layers + "]}"));
  };
  const std::string pool = R"({"layer": "global_average_pool"}, )", readout = R"({"layer": "dense"})";
  const std::string norm = R"({"layer": "rms_norm"}, )";
  const std::string dense =
      R"({"layer": "dense", "weight_variance": 2, "bias_variance": 0.01}, {"layer": "relu"}, )";
  const std::string dense_erf =
      R"({"layer": "dense", "weight_variance": 1.7562, "bias_variance": 0.1841}, {"layer": "erf"}, )";
  const std::string conv =
      R"({"layer": "conv", "filter": [9], "weight_variance": 2, "bias_variance": 0.01}, {"layer": "relu"}, )";
  const std::string conv_erf =
      R"({"layer": "conv", "filter": [5], "weight_variance": 1.7562, "bias_variance": 0.1841}, {"layer": "erf"}, )";
  const std::string attention =
      R"({"layer": "attention", "scaling": "inverse_width", "query_key_std": 2, "positions": {"kind": "structured", "rho": 1, "phi": 2.5,
          "input_weight": 0.75, "position_weight": 0.25}}, )";
  const std::string normed = attention + R"({"layer": "layer_norm"}, )";
  check("imdb-gap", {}, pool + readout);
  check("imdb-gap", {{"norm", 1}}, pool + norm + readout);
  check("imdb-gap-fcn", {{"depth", 2}}, pool + dense + dense + readout);
  check("imdb-gap-fcn", {{"erf", 1}, {"norm", 1}}, pool + norm + dense_erf + readout);
  check("imdb-cnn-gap", {{"depth", 2}}, conv + conv + pool + readout);
  check("imdb-cnn-gap", {{"erf", 1}, {"filter", 5}, {"dense", 1}, {"norm", 1}},
        conv_erf + pool + norm + dense_erf + readout);
  check("imdb-struct", {}, normed + pool + readout);
  check("imdb-struct", {{"attentions", 2}, {"attention_norm", 0}}, attention + attention + pool + readout);
  check("imdb-struct", {{"depth", 1}}, conv + normed + pool + readout);
  check("imdb-struct", {{"depth", 3}, {"attentions", 2}, {"dense", 1}, {"norm", 1}},
        conv + conv + normed + conv + normed + pool + norm + dense + readout);
  check("imdb-struct", {{"depth", 1}, {"attentions", 3}}, normed + normed + conv + normed + pool + readout);
}

TEST_CASE("named networks: errors list what there is") {
  CHECK_THROWS_WITH_AS(
      static_cast<void>(named_network("alexnet")),
      "unknown network 'alexnet'; known are fcn, conv-flatten, conv-gap, conv-lap, myrtle5, resnet, "
      "vanilla, struct, residual-attention, imdb-gap, imdb-gap-fcn, imdb-cnn-gap, imdb-struct, decoder, "
      "gntk, matern, laplace, rbf",
      ArgumentError);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(named_network("fcn", {{"filter", 3}})),
      "network 'fcn' has no option 'filter'; it has depth, axes, weight_variance, bias_variance",
      ArgumentError);
  CHECK_THROWS_WITH_AS(static_cast<void>(named_network("fcn", {{"depth", 2.5}})),
                       "network 'fcn': depth must be an integer from 0 to 100, got 2.5", ArgumentError);
  CHECK_THROWS_WITH_AS(static_cast<void>(named_network("struct", {{"alpha", 1.5}})),
                       "network 'struct': alpha must be a number from 0 to 1, got 1.5", ArgumentError);
}

TEST_CASE("named networks: kernels of distances, of vectors and of images") {
  const auto images = some_inputs({4, 3, 3, 2});
  xt::xarray<double> vectors = images;
  vectors.reshape({4, 18});
  const auto distance = [&](std::size_t i, std::size_t j) {
    double sum = 0;
    for (std::size_t k = 0; k < 18; ++k) sum += std::pow(vectors(i, k) - vectors(j, k), 2);
    return std::sqrt(sum / 18);
  };
  const double length = 0.7;
  const auto check = [&](const std::string& name, models::NetworkSettings settings, auto&& kernel,
                         bool same_ntk) {
    CAPTURE(name);
    settings["length"] = length;
    const auto of_images = gram<double>(named_network(name, settings), images);
    settings["axes"] = 0;
    const auto of_vectors = gram<double>(named_network(name, settings), vectors);
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 4; ++j) {
        const double expected = kernel(distance(i, j) / length);
        const auto row = static_cast<Index>(i), column = static_cast<Index>(j);
        CHECK(std::abs(of_images.nngp(row, column) - expected) < 1e-14);
        CHECK(std::abs(of_vectors.nngp(row, column) - expected) < 1e-14);
      }
    CHECK((of_vectors.ntk == of_vectors.nngp) == same_ntk);
  };
  check(
      "laplace", {}, [](double r) { return std::exp(-r); }, true);
  check(
      "matern", {{"smoothness", 0.5}}, [](double r) { return std::exp(-r); }, true);
  check(
      "matern", {}, [](double r) { return (1 + std::sqrt(3) * r) * std::exp(-std::sqrt(3) * r); }, true);
  check(
      "matern", {{"smoothness", 2.5}},
      [](double r) { return (1 + std::sqrt(5) * r + 5 * r * r / 3) * std::exp(-std::sqrt(5) * r); }, true);
  check(
      "rbf", {}, [](double r) { return std::exp(-r * r / 2); }, false);
  CHECK_THROWS_WITH_AS(static_cast<void>(named_network("matern", {{"smoothness", 1}})),
                       "matern: smoothness must be 0.5, 1.5 or 2.5, got 1", ArgumentError);
}
