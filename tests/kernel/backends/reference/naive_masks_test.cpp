// Random networks on inputs with masks, against plain loops over positions.
#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "kernel/backends/reference/naive_check.hpp"
#include "kernel/random_networks.hpp"
#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

constexpr Index batch_size = 3;

const std::vector<Shape> masked_shapes{{7},    {12},   {4, 5},    {9},  {5, 3},    {2},
                                       {1, 6}, {6, 7}, {2, 4, 3}, {16}, {3, 3, 3}, {20}};

xt::xarray<double> values_of(unsigned seed, const Shape& shape) {
  std::vector<Index> dimensions{batch_size};
  dimensions.insert(dimensions.end(), shape.begin(), shape.end());
  dimensions.push_back(2);
  return random_inputs(seed, dimensions);
}

/// Few or many positions of an input count, one at least.
xt::xarray<bool> random_mask(unsigned seed, const Shape& shape) {
  std::mt19937 generator(seed);
  const unsigned percent = std::array{30U, 60U, 90U}[generator() % 3];
  std::vector<std::size_t> sizes{batch_size};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  xt::xarray<bool> mask(sizes);
  for (bool& counts : mask) counts = generator() % 100 < percent;
  const auto positions = static_cast<std::size_t>(position_count(shape));
  for (std::size_t i = 0; i < batch_size; ++i) mask.data()[i * positions + generator() % positions] = true;
  return mask;
}

/// The error for the first input of which a layer leaves no position; nothing if there is none.
std::optional<std::string> expected_error(const NaiveKernel& naive, const Inputs<double>& x,
                                          const std::string& name) {
  for (Index i = 0; i < x.size(); ++i) {
    try {
      static_cast<void>(naive(naive_input(x, i), naive_input(x, i), true));
    } catch (const NoPositionLeft& none) {
      return none.path + " ... (input " + std::to_string(i) + " of " + name + ")";
    }
  }
  return std::nullopt;
}

/// "layers[2] (conv): expected ... (input 0 of x)" without what stands between path and input.
std::string place_of(const std::string& error) {
  if (error.find('(') == std::string::npos) return error;
  return error.substr(0, error.find(' ')) + " ... " + error.substr(error.rfind('('));
}

enum class Found { numbers, error };

Found check_pairs(const Network& network, const NaiveKernel& naive, const Inputs<double>& x1,
                  const Inputs<double>& x2) {
  std::ostringstream printed;
  printed << network;
  CAPTURE(printed.str());
  if (const auto expected = expected_error(naive, x1, "x")) {
    CHECK(place_of(error_message<NetworkError>([&] { return gram(network, x1); })) == *expected);
    return Found::error;
  }
  check_against(naive, x1, x1, true, gram(network, x1), tolerance_for(printed.str()));
  if (const auto expected = expected_error(naive, x2, "x2")) {
    CHECK(place_of(error_message<NetworkError>([&] { return gram(network, x1, x2); })) == *expected);
    return Found::error;
  }
  check_against(naive, x1, x2, false, gram(network, x1, x2), tolerance_for(printed.str()));
  return Found::numbers;
}

/// How many of the networks have numbers for all inputs.
int check_masked_networks(unsigned first_seed, unsigned count) {
  int with_numbers = 0;
  for (unsigned seed = first_seed; seed < first_seed + count; ++seed) {
    CAPTURE(seed);
    const Shape& shape = masked_shapes[seed % masked_shapes.size()];
    const Network network = random_masked_network(seed, {shape});
    const NaiveKernel naive(network);
    const Inputs<double> plain1(values_of(seed, shape)), plain2(values_of(seed + 1000, shape)),
        masked1(plain1, random_mask(seed, shape)), masked2(plain2, random_mask(seed + 1000, shape));
    // One batch in three has no mask, beside one that has.
    const Found found = check_pairs(network, naive, masked1, seed % 3 == 0 ? plain2 : masked2);
    if (found == Found::numbers) ++with_numbers;
    if (seed % 4 == 0) CHECK(check_pairs(network, naive, plain1, plain2) == Found::numbers);
  }
  return with_numbers;
}

TEST_CASE("random networks on inputs with masks agree with the naive kernel") {
  const int with_numbers = check_masked_networks(1, 150);
  CHECK(with_numbers > 75);
  CHECK(with_numbers < 150);
}

/// A mask an input.
std::vector<xt::xarray<bool>> random_masks(unsigned seed, const std::vector<Shape>& shapes) {
  std::mt19937 generator(seed);
  std::vector<xt::xarray<bool>> masks;
  for (const Shape& shape : shapes) {
    xt::xarray<bool> mask = xt::ones<bool>(std::vector<std::size_t>(shape.begin(), shape.end()));
    for (bool& counts : mask) counts = generator() % 100 < 70;
    mask.data()[generator() % mask.size()] = true;
    masks.push_back(std::move(mask));
  }
  return masks;
}

std::vector<xt::xarray<double>> values_of_shapes(unsigned seed, const std::vector<Shape>& shapes) {
  std::vector<xt::xarray<double>> arrays;
  for (const Shape& shape : shapes) {
    std::vector<Index> dimensions(shape.begin(), shape.end());
    dimensions.push_back(2);
    arrays.emplace_back(random_inputs(seed++, dimensions));
  }
  return arrays;
}

TEST_CASE("random networks on inputs of different shapes with masks agree with the naive kernel") {
  const std::vector<std::vector<Shape>> batches{{{7}, {12}, {9}},
                                                {{4, 5}, {5, 4}, {3, 6}},
                                                {{16}, {5}, {5}},
                                                {{2, 3, 3}, {3, 2, 4}},
                                                {{6, 2}, {2, 6}, {6, 2}}};
  int with_numbers = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    const std::vector<Shape>& shapes = batches[seed % batches.size()];
    const Network network = random_masked_network(seed, shapes);
    const Inputs<double> plain1(values_of_shapes(seed, shapes)),
        plain2(values_of_shapes(seed + 1000, shapes)), masked1(plain1, random_masks(seed, shapes)),
        masked2(plain2, random_masks(seed + 1000, shapes));
    if (check_pairs(network, NaiveKernel(network), masked1, seed % 3 == 0 ? plain2 : masked2) ==
        Found::numbers)
      ++with_numbers;
  }
  CHECK(with_numbers > 25);
}

TEST_CASE("lengths and a mask together are masks of a list") {
  const auto x = values_of(1, {6});
  const std::vector<Index> lengths{6, 4, 5};
  const xt::xarray<bool> mask = random_mask(2, {6});
  std::vector<xt::xarray<double>> arrays;
  std::vector<xt::xarray<bool>> masks;
  for (std::size_t i = 0; i < batch_size; ++i) {
    const auto length = static_cast<std::size_t>(lengths[i]);
    arrays.emplace_back(xt::xarray<double>::from_shape({length, 2}));
    masks.emplace_back(xt::xarray<bool>::from_shape({length}));
    for (std::size_t a = 0; a < length; ++a) {
      masks.back()(a) = mask(i, a);
      for (std::size_t c = 0; c < 2; ++c) arrays.back()(a, c) = x(i, a, c);
    }
  }
  const Network network({layers::dense({1.2, 0.3}), layers::relu(), layers::global_average_pool()});
  const Inputs<double> list(arrays), masked_list(list, masks), padded(Inputs<double>(x), lengths),
      masked_padded(padded, mask);
  CHECK(gram(network, masked_list).ntk == gram(network, masked_padded).ntk);
  CHECK(gram(network, list).ntk != gram(network, masked_padded).ntk);
}

TEST_CASE("masked poolings whose windows go around a short axis several times, or see nothing but it") {
  for (const Shape& shape : {Shape{2}, Shape{3}, Shape{5}, Shape{2, 3}})
    for (const Index size : {2, 4, 5, 9})
      for (const Index stride : {1, 2})
        for (const bool circular : {false, true}) {
          const std::vector<Index> window(shape.size(), size), strides(shape.size(), stride);
          const Layer pool = layers::average_pool(
              {window, strides, circular ? Padding::circular : Padding::same, !circular});
          const Network network({layers::dense({1.2, 0.3}), layers::erf(), pool, layers::dense({1.1, 0.2}),
                                 layers::cos(), layers::global_average_pool()});
          const auto seed = static_cast<unsigned>(size + 10 * stride);
          const Inputs<double> x1(Inputs<double>(values_of(seed, shape)), random_mask(seed, shape)),
              x2(Inputs<double>(values_of(seed + 100, shape)), random_mask(seed + 100, shape));
          static_cast<void>(check_pairs(network, NaiveKernel(network), x1, x2));
        }
}

TEST_CASE("many random networks on inputs with masks agree with the naive kernel [slow]") {
  CHECK(check_masked_networks(1000, 2000) > 1000);
}

}  // namespace
}  // namespace widelimit::testing
