// Derivatives of numbers that depend on Gram matrices by numbers of networks, against derivatives of the matrices.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "kernel/backends/cpu/backward/plan/scalar_slopes.hpp"
#include "kernel/backends/cpu/backward/run/backward_plan.hpp"
#include "kernel/random_networks.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram_gradient.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/network/network_numbers.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

Matrix<double> random_matrix(unsigned seed, Index rows, Index columns) {
  const auto numbers = random_inputs(seed, {rows, columns});
  return Eigen::Map<const Matrix<double>>(numbers.data(), rows, columns);
}

/// "layers[0].branches[1].scale" of "/layers/0/branches/1/scale".
std::string path_of(const std::string& pointer) {
  std::string path;
  for (std::size_t begin = 1; begin <= pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', begin), pointer.size());
    const std::string part = pointer.substr(begin, end - begin);
    const bool is_index = std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    path += is_index ? "[" + part + "]" : (path.empty() ? "" : ".") + part;
    begin = end + 1;
  }
  return path;
}

/// Every number of the network that can change continuously by itself.
std::vector<std::string> numbers_of(const Network& network) {
  std::vector<std::string> paths;
  const nlohmann::json document = nlohmann::json::parse(to_json(network)).flatten();
  for (const auto& [pointer, value] : document.items())
    if (value.is_number_float() && pointer.starts_with("/layers/")) paths.push_back(path_of(pointer));
  return paths;
}

double contracted(const GramResult<double>& derivative, const KernelCotangents<double>& cotangents) {
  double sum = 0;
  if (cotangents.nngp.size() > 0) sum += cotangents.nngp.cwiseProduct(derivative.nngp).sum();
  if (cotangents.ntk.size() > 0) sum += cotangents.ntk.cwiseProduct(derivative.ntk).sum();
  return sum;
}

/// The derivatives of matrices are right to a share of their largest entry.
double size_of(const GramResult<double>& derivative, const KernelCotangents<double>& cotangents) {
  const auto size = [](const Matrix<double>& cotangent, const Matrix<double>& of_kernel) {
    return cotangent.size() == 0 ? 0 : cotangent.cwiseAbs().sum() * of_kernel.cwiseAbs().maxCoeff();
  };
  return size(cotangents.nngp, derivative.nngp) + size(cotangents.ntk, derivative.ntk);
}

void check_numbers(const Network& network, const std::vector<std::string>& numbers, const Inputs<double>& x1,
                   const Inputs<double>& x2) {
  CAPTURE(to_json(network));
  const KernelCotangents<double> square{random_matrix(31, x1.size(), x1.size()),
                                        random_matrix(32, x1.size(), x1.size())};
  const KernelCotangents<double> oblong{{}, random_matrix(33, x1.size(), x2.size())};
  // Threads would take longer to start than these matrices to compute.
  const RunControl one_thread{.threads = 1};
  const auto of_one = gram_number_vjp(network, x1, square, numbers, one_thread),
             of_two = gram_number_vjp(network, x1, x2, oblong, numbers, one_thread);
  REQUIRE(of_one.size() == numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    CAPTURE(numbers[i]);
    // One-sided differences, at the end of a range, are less exact.
    const double share = NetworkNumbers(network, {numbers[i]}).values().front() == 0 ? 1e-8 : 1e-9;
    const auto one = gram_jvp(network, x1, {{numbers[i], 1}}, Kernels::both, one_thread);
    const auto two = gram_jvp(network, x1, x2, {{numbers[i], 1}}, Kernels::both, one_thread);
    CHECK(std::abs(of_one[i] - contracted(one, square)) <= share * size_of(one, square) + 1e-12);
    CHECK(std::abs(of_two[i] - contracted(two, oblong)) <= share * size_of(two, oblong) + 1e-12);
  }
}

TEST_CASE("gram_number_vjp: variances, biases and factors through every kind of layer") {
  const auto x1 = random_inputs(1, {3, 4, 4, 2}), x2 = random_inputs(2, {4, 4, 4, 2});
  const std::vector<Branch> branches{
      {0.7, {conv({.filter = {3, 3}, .weight_variance = 1.3, .bias_variance = 0.2}), erf()}},
      {1.1, {dense({.weight_variance = 0.6, .bias_variance = 0.1})}}};
  for (const Layer& readout : {flatten(), global_average_pool()})
    for (const Layer& middle :
         {sum(branches), product(branches), concat({{0.4, branches[0].layers}, {0.6, branches[1].layers}}),
          layer_norm(), attention(), conv({.filter = {3, 2}, .strides = {2, 2}}),
          average_pool({.window = {2, 2}})}) {
      const Network network({conv({.filter = {3, 3}, .weight_variance = 1.7, .bias_variance = 0.3}), relu(),
                             dense({.weight_variance = 0.8}), middle,
                             dense({.weight_variance = 0.9, .bias_variance = 0.2}), gelu(), readout,
                             dense({.weight_variance = 1.2, .bias_variance = 0.4})});
      check_numbers(network,
                    {"layers[0].weight_variance", "layers[0].bias_variance", "layers[2].weight_variance",
                     "layers[4].weight_variance", "layers[7].weight_variance", "layers[7].bias_variance"},
                    x1, x2);
    }
}

/// Every `step`-th number of 25 random networks, another one first in each; returns how many were compared.
std::size_t check_random_networks(unsigned step) {
  std::size_t compared = 0;
  for (unsigned seed = 1; seed <= 25; ++seed) {
    CAPTURE(seed);
    const Shape shape = seed % 2 == 0 ? Shape{5} : Shape{3, 4};
    std::vector<Index> dimensions{2};
    dimensions.insert(dimensions.end(), shape.begin(), shape.end());
    dimensions.push_back(2);
    const Network network = random_network(seed, shape);
    std::vector<std::string> numbers;
    unsigned place = seed;
    for (const std::string& number : numbers_of(network)) {
      if (number.find("share") != std::string::npos) continue;  // They hold each other.
      if (++place % step == 0) numbers.push_back(number);
    }
    if (numbers.empty()) continue;
    const auto x1 = random_inputs(40 + seed, dimensions);
    dimensions[0] = 3;
    const auto x2 = random_inputs(80 + seed, dimensions);
    check_numbers(network, numbers, x1, x2);
    compared += numbers.size();
  }
  return compared;
}

TEST_CASE("gram_number_vjp: every fourth number of random networks") { CHECK(check_random_networks(4) > 50); }

TEST_CASE("gram_number_vjp: all numbers of random networks [slow]") { CHECK(check_random_networks(1) > 200); }

Graph graph_for(const Network& network) {
  return backward_graph(network, {{{Shape{4, 4}, "x"}}, {{Shape{4, 4}, "x"}}, 2, InputMasks::absent});
}

TEST_CASE("scalar_slopes: numbers of linear layers, and of branches with nothing else in them") {
  const Network network({conv({.filter = {3, 3}, .weight_variance = 1.7, .bias_variance = 0.3}), erf(),
                         sum({{0.7, {dense({.weight_variance = 0.6})}}, {1.1, {dense(), gelu(), dense()}}}),
                         attention(), dense({.bias_variance = 0}), flatten()});
  for (const auto& [number, of_scalar] :
       std::map<std::string, double>{{"layers[0].weight_variance", 1},
                                     {"layers[0].bias_variance", 1},
                                     {"layers[2].branches[0].layers[0].weight_variance", 1},
                                     {"layers[2].branches[0].scale", 1.4},  // Of its square.
                                     {"layers[4].bias_variance", 1}}) {
    CAPTURE(number);
    const auto slopes = scalar_slopes(network, number, graph_for);
    REQUIRE(slopes);
    CHECK(std::abs(std::accumulate(slopes->begin(), slopes->end(), 0.0) - of_scalar) < 1e-11);
    CHECK(std::count_if(slopes->begin(), slopes->end(), [](double slope) { return slope != 0; }) == 1);
  }
  for (const char* number : {"layers[1].b", "layers[3].query_variance", "layers[2].branches[1].scale"}) {
    CAPTURE(number);
    CHECK_FALSE(scalar_slopes(network, number, graph_for));
  }
}

TEST_CASE("gram_number_vjp: the same bits for any number of threads, and digits of float") {
  const Network network({conv({.filter = {3}, .weight_variance = 1.5, .bias_variance = 0.2}), relu(),
                         conv({.filter = {3}, .weight_variance = 1.2}), erf(), global_average_pool(),
                         dense()});
  const std::vector<std::string> numbers{"layers[0].weight_variance", "layers[0].bias_variance",
                                         "layers[2].weight_variance", "layers[5].bias_variance"};
  const auto x = random_inputs(7, {40, 6, 2});
  const KernelCotangents<double> cotangents{random_matrix(8, 40, 40), random_matrix(9, 40, 40)};
  const auto one = gram_number_vjp<double>(network, x, cotangents, numbers, {.threads = 1});
  CHECK(one == gram_number_vjp<double>(network, x, cotangents, numbers, {.threads = 3}));
  const KernelCotangents<float> rounded{cotangents.nngp.cast<float>(), cotangents.ntk.cast<float>()};
  const auto in_float =
      gram_number_vjp<float>(network, xt::xarray<float>(xt::cast<float>(x)), rounded, numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    CHECK(std::abs(in_float[i] - one[i]) < 1e-4 * std::abs(one[i]) + 1e-3);
}

TEST_CASE("gram_number_vjp: weight variances of 0, sampled layers, and errors") {
  const auto x = random_inputs(5, {3, 4, 4, 2});
  const KernelCotangents<double> cotangents{random_matrix(6, 3, 3), random_matrix(7, 3, 3)};
  // Both are found by differences.
  check_numbers(Network({dense({.weight_variance = 1.2}), erf(),
                         dense({.weight_variance = 0, .bias_variance = 1}), flatten()}),
                {"layers[2].weight_variance", "layers[0].weight_variance"}, x, x);
  CHECK_THROWS_WITH_AS(
      gram_number_vjp<double>(Network({flatten(), dense()}), x, {}, {"layers[1].weight_variance"}),
      "gram_number_vjp: cotangents of the nngp, the ntk or both must be given, got none", ArgumentError);
  CHECK_THROWS_WITH_AS(gram_number_vjp<double>(Network({flatten(), dense()}), x, {Matrix<double>::Zero(2, 3)},
                                               {"layers[1].weight_variance"}),
                       "gram_number_vjp: the cotangents of the nngp must be [3, 3], got [2, 3]",
                       ArgumentError);
  CHECK_THROWS_AS(
      gram_number_vjp<double>(Network({flatten(), dense()}), x, cotangents, {"layers[1].nothing"}),
      ArgumentError);
}

}  // namespace
}  // namespace widelimit::testing
