// Pairs of 4 x 8 CIFAR-10 images under convolutions, attention, layer norm and flatten, in products of 1,024 x 1,024
// matrices: processor time, one thread, the best of three in turns.
//
//     attention_pairs FOLDER [QUERY_KEY_STD]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <xtensor/xmath.hpp>
#include <xtensor/xview.hpp>

#include "numerics/blas_threads.hpp"
#include "numerics/gemm.hpp"
#include "processor_time.hpp"
#include "widelimit/data/cifar10.hpp"
#include "widelimit/widelimit.hpp"

namespace {

using namespace widelimit;
using benchmarks::processor_seconds;

/// Standardised channel by channel.
xt::xarray<float> images(const xt::xarray<float>& all, Index first, Index count) {
  xt::xarray<float> x = xt::view(all, xt::range(first, first + count));
  for (Index channel = 0; channel < 3; ++channel) {
    auto values = xt::view(x, xt::all(), xt::all(), xt::all(), channel);
    const auto mean = static_cast<float>(xt::mean(values)()),
               deviation = static_cast<float>(xt::stddev(values)());
    values = (values - mean) / deviation;
  }
  return x;
}

Network convolutions_and_attention(Index depth, double query_key_std) {
  layers::AttentionOptions options;
  options.query_key_std = query_key_std;
  options.positions = layers::PositionalEncodings{layers::StructuredPositions{1, 2.5}, 0.75, 0.25};
  Layers all;
  for (Index i = 0; i < depth; ++i) {
    all.push_back(layers::conv({.filter = {3, 3}, .weight_variance = 2, .bias_variance = 0.01}));
    all.push_back(layers::relu());
  }
  all.insert(all.end(),
             {layers::attention(options), layers::layer_norm(), layers::flatten(), layers::dense()});
  return Network(all);
}

class Yardstick {
 public:
  double seconds() {
    const numerics::BlasThreads one_thread(1);
    return processor_seconds([&] {
      numerics::gemm(numerics::Transpose::yes, numerics::Transpose::no, size, size, size, 1.0F,
                     {left_.data(), size}, {right_.data(), size}, 0.0F, result_.data(), size);
    });
  }

 private:
  static constexpr Index size = 1024;
  Matrix<float> left_ = Matrix<float>::Random(size, size), right_ = Matrix<float>::Random(size, size),
                result_{size, size};
};

/// A batch's diagonal has a state and a pair an image, the rectangle fewer states than pairs: both follow.
void measure(Index depth, double query_key_std, const xt::xarray<float>& all) {
  constexpr Index rows = 4, columns = 8;
  const Network network = convolutions_and_attention(depth, query_key_std);
  const auto x1 = images(all, 0, rows), x2 = images(all, rows, columns);
  const GramOptions options{.threads = 1};
  Yardstick yardstick;
  double product = std::numeric_limits<double>::infinity(), rectangle = product, diagonal = product;
  for (int turn = 0; turn < 3; ++turn) {
    for (int repeat = 0; repeat < 3; ++repeat) product = std::min(product, yardstick.seconds());
    rectangle = std::min(
        rectangle, processor_seconds([&] { static_cast<void>(gram<float>(network, x1, x2, options)); }));
    diagonal = std::min(
        diagonal, processor_seconds([&] { static_cast<void>(gram_diagonal<float>(network, x1, options)); }));
  }
  const double alone = diagonal / rows, pairs = rows * columns, states = rows + columns,
               pair = (rectangle - states * alone) / (pairs - states);
  fmt::print(
      "depth {}: a product {:.1f} ms; a pair of 4 x 8 {:.1f} ms, {:.2f} products; of many {:.2f}, a state "
      "{:.2f}\n",
      depth, 1e3 * product, 1e3 * rectangle / pairs, rectangle / pairs / product, pair / product,
      (alone - pair) / product);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "attention_pairs: expected the folder of CIFAR-10's binary files\n");
    return EXIT_FAILURE;
  }
  const auto files = data::cifar10_training_files(argv[1]);
  const auto all = data::read_cifar10(std::span(files).first(1)).images;
  const double query_key_std = argc > 2 ? std::atof(argv[2]) : 2;
  for (const Index depth : {3, 8}) measure(depth, query_key_std, all);
  return EXIT_SUCCESS;
}
