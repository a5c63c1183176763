// Gram matrices have the same bits for any number of threads, tiles and memory.
#include <doctest/doctest.h>

#include <array>
#include <sstream>

#include "kernel/random_networks.hpp"
#include "support/activation_layers.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

const std::array<Shape, 6> input_shapes{Shape{9}, {5, 6}, {3, 4, 3}, {17}, {6, 4}, {2, 5, 4}};

template <typename Scalar>
struct Case {
  Network network;
  xt::xarray<Scalar> x, y;
};

template <typename Scalar>
Case<Scalar> random_case(unsigned seed, Index n) {
  const Shape& shape = input_shapes[seed % input_shapes.size()];
  std::vector<Index> dimensions{n};
  dimensions.insert(dimensions.end(), shape.begin(), shape.end());
  // Products of many channels are kept as matrices.
  dimensions.push_back(seed % 4 == 0 ? 40 : 3);
  return {random_network(seed, shape), random_inputs<Scalar>(seed, dimensions),
          random_inputs<Scalar>(seed + 500, dimensions)};
}

template <typename Scalar>
bool equal(const GramResult<Scalar>& left, const GramResult<Scalar>& right) {
  return left.nngp == right.nngp && left.ntk == right.ntk;
}

/// Calls check(case) for `count` random networks, with what is needed to find the one that failed.
template <typename Scalar, typename Check>
void for_random_networks(unsigned first_seed, unsigned count, Index n, const Check& check) {
  for (unsigned seed = first_seed; seed < first_seed + count; ++seed) {
    const auto random = random_case<Scalar>(seed, n);
    std::ostringstream printed;
    printed << random.network;
    CAPTURE(seed);
    CAPTURE(printed.str());
    check(random);
  }
}

GramOptions one_thread() { return {.threads = 1, .progress = {}, .stop = {}}; }

/// Both forms of gram() with the options against those with one thread and defaults, bit for bit.
template <typename Scalar>
void check_same_bits(unsigned first_seed, const GramOptions& options) {
  for_random_networks<Scalar>(first_seed, 12, 6, [&](const Case<Scalar>& random) {
    CHECK(equal(gram<Scalar>(random.network, random.x, options),
                gram<Scalar>(random.network, random.x, one_thread())));
    CHECK(equal(gram<Scalar>(random.network, random.x, random.y, options),
                gram<Scalar>(random.network, random.x, random.y, one_thread())));
  });
}

template <typename Scalar>
void check_same_bits_everywhere(const GramOptions& options) {
  check_same_bits<Scalar>(1, options);
  check_same_bits<Scalar>(61, options);
}

TEST_CASE_TEMPLATE("results do not depend on the number of threads, bit for bit", Scalar, float, double) {
  GramOptions options;
  options.threads = 3;
  check_same_bits_everywhere<Scalar>(options);
}

TEST_CASE_TEMPLATE("results do not depend on the tile size, bit for bit", Scalar, float, double) {
  for (const Index side : {1, 4, 16}) {
    CAPTURE(side);
    GramOptions options = one_thread();
    options.tile_size = side;
    check_same_bits_everywhere<Scalar>(options);
  }
}

// The variances after the pooling need two offsets along the second axis, the result needs all: both must
// add them up in one order, or ReLU's NTK loses half of its digits on the diagonal.
TEST_CASE_TEMPLATE("a pooled image of one row has its recorded variances, bit for bit", Scalar, float,
                   double) {
  const Layer conv = layers::conv({.filter = {2, 3}, .weight_variance = 1.5, .bias_variance = 0.1});
  for (const std::vector<Index>& window : {std::vector<Index>{1, 3}, {1, 5}, {2, 3}, {2, 2}}) {
    CAPTURE(window[0]);
    CAPTURE(window[1]);
    const Network network({conv, layers::relu(),
                           layers::average_pool({.window = window, .padding = Padding::same}),
                           layers::dense(), layers::relu(), layers::global_sum_pool()});
    const auto x = random_inputs<Scalar>(1, {5, 5, 7, 3});
    GramOptions everything = one_thread();
    everything.demand = GramOptions::Demand::everything;
    CHECK(equal(gram<Scalar>(network, x, one_thread()), gram<Scalar>(network, x, everything)));
  }
}

// Planes too large to stack: the products of up to six inputs a side are made together.
TEST_CASE_TEMPLATE("results for large images do not depend on the tile size, bit for bit", Scalar, float,
                   double) {
  const Layer conv = layers::conv({.filter = {3, 3}, .weight_variance = 1.5, .bias_variance = 0.1});
  const Layer strided = layers::conv({.filter = {3, 3}, .strides = {2, 2}, .weight_variance = 1.5});
  for (const Layer& readout : {layers::global_average_pool(), layers::flatten()}) {
    const Network network({conv, layers::relu(), strided, layers::relu(), readout, layers::dense()});
    const auto x = random_inputs<Scalar>(1, {8, 24, 22, 3}), y = random_inputs<Scalar>(2, {7, 24, 22, 3});
    GramOptions alone = one_thread();
    alone.tile_size = 1;
    const auto expected = gram<Scalar>(network, x, y, alone),
               expected_square = gram<Scalar>(network, x, alone);
    for (const Index side : {5, 7, 8}) {
      CAPTURE(side);
      GramOptions options = one_thread();
      options.tile_size = side;
      CHECK(equal(gram<Scalar>(network, x, y, options), expected));
      CHECK(equal(gram<Scalar>(network, x, options), expected_square));
    }
  }
}

// Their maps are compiled for several instruction sets, and leave some entries to formulas or tables.
TEST_CASE_TEMPLATE("results of every nonlinearity do not depend on threads and tiles, bit for bit", Scalar,
                   float, double) {
  const Layer conv = layers::conv({.filter = {3, 3}, .weight_variance = 1.5, .bias_variance = 0.1});
  const auto x = random_inputs<Scalar>(1, {5, 6, 7, 3});
  for (const Layer& phi : activations()) {
    CAPTURE(phi.kind());
    const Network network({conv, phi, conv, phi, layers::flatten(), layers::dense()});
    const auto expected = gram<Scalar>(network, x, one_thread());
    CHECK(expected.nngp.array().isFinite().all());
    CHECK(equal(gram<Scalar>(network, x, {.threads = 3, .tile_size = 1}), expected));
    CHECK(equal(gram<Scalar>(network, x, {.threads = 2, .tile_size = 3}), expected));
  }
}

TEST_CASE_TEMPLATE("results do not depend on the memory for states, bit for bit", Scalar, float, double) {
  GramOptions options = one_thread();
  options.state_memory_bytes = 1;
  options.tile_size = 2;
  check_same_bits_everywhere<Scalar>(options);
}

TEST_CASE_TEMPLATE("minimal demand gives the bits of full demand", Scalar, float, double) {
  GramOptions options = one_thread();
  options.demand = GramOptions::Demand::everything;
  check_same_bits_everywhere<Scalar>(options);
}

TEST_CASE_TEMPLATE("asking for one kernel gives the same bits as asking for both", Scalar, float, double) {
  for_random_networks<Scalar>(1, 30, 4, [](const Case<Scalar>& random) {
    GramOptions options = one_thread();
    const auto both = gram<Scalar>(random.network, random.x, options);
    options.kernels = Kernels::nngp;
    const auto nngp = gram<Scalar>(random.network, random.x, options);
    options.kernels = Kernels::ntk;
    const auto ntk = gram<Scalar>(random.network, random.x, options);
    CHECK(nngp.nngp == both.nngp);
    CHECK(nngp.ntk.size() == 0);
    CHECK(ntk.ntk == both.ntk);
    CHECK(ntk.nngp.size() == 0);
  });
}

TEST_CASE_TEMPLATE("gram_diagonal is the diagonal of gram, bit for bit, and gram is exactly symmetric",
                   Scalar, float, double) {
  for_random_networks<Scalar>(1, 40, 5, [](const Case<Scalar>& random) {
    const auto whole = gram<Scalar>(random.network, random.x);
    const auto diagonal = gram_diagonal<Scalar>(random.network, random.x);
    CHECK(Matrix<Scalar>(whole.nngp.diagonal()) == diagonal.nngp);
    CHECK(Matrix<Scalar>(whole.ntk.diagonal()) == diagonal.ntk);
    CHECK(whole.nngp == whole.nngp.transpose());
    CHECK(whole.ntk == whole.ntk.transpose());
  });
}

TEST_CASE_TEMPLATE("equal inputs in a batch have equal rows, bit for bit", Scalar, float, double) {
  for_random_networks<Scalar>(1, 40, 5, [](Case<Scalar> random) {
    const auto size = random.x.size() / 5;
    std::copy_n(random.x.data(), size, random.x.data() + 3 * size);  // input 3 = input 0
    const auto result = gram<Scalar>(random.network, random.y, random.x);
    CHECK(result.nngp.col(3) == result.nngp.col(0));
    CHECK(result.ntk.col(3) == result.ntk.col(0));
    const auto reverse = gram<Scalar>(random.network, random.x, random.y);
    CHECK(reverse.nngp.row(3) == reverse.nngp.row(0));
    CHECK(reverse.ntk.row(3) == reverse.ntk.row(0));
  });
}

TEST_CASE_TEMPLATE("many random networks are invariant [slow]", Scalar, float, double) {
  GramOptions tiles = one_thread(), blocks, everything = one_thread();
  tiles.tile_size = 2;
  blocks.state_memory_bytes = 1;
  blocks.threads = 3;
  everything.demand = GramOptions::Demand::everything;
  for (unsigned first = 200; first < 800; first += 20)
    for (const GramOptions& options : {tiles, blocks, everything}) check_same_bits<Scalar>(first, options);
}

}  // namespace
}  // namespace widelimit::testing
