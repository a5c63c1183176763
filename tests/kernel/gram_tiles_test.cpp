// Tiles of a Gram matrix: put together, they are gram() bit for bit, whatever their size and order.
#include "widelimit/kernel/gram_tiles.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <stop_token>
#include <vector>

#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/graphs.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

std::vector<InputRange> ranges(Index size, Index side) {
  std::vector<InputRange> ranges;
  for (Index begin = 0; begin < size; begin += side) ranges.push_back({begin, std::min(begin + side, size)});
  return ranges;
}

template <typename Scalar>
void place(Matrix<Scalar>& whole, const Matrix<Scalar>& tile, InputRange rows, InputRange columns,
           bool mirrored) {
  if (tile.size() == 0) return;
  whole.block(rows.begin, columns.begin, rows.size(), columns.size()) = tile;
  if (mirrored) whole.block(columns.begin, rows.begin, columns.size(), rows.size()) = tile.transpose();
}

/// All tiles, the last first.
template <typename Scalar>
GramResult<Scalar> put_together(GramTiles<Scalar>& tiles, Index side) {
  GramResult<Scalar> whole;
  for (Matrix<Scalar>* matrix : {&whole.nngp, &whole.ntk, &whole.nngp_error, &whole.ntk_error})
    matrix->setConstant(tiles.rows(), tiles.columns(), -1);
  auto row_ranges = ranges(tiles.rows(), side), column_ranges = ranges(tiles.columns(), side);
  std::reverse(row_ranges.begin(), row_ranges.end());
  for (const InputRange& rows : row_ranges)
    for (const InputRange& columns : column_ranges) {
      if (tiles.is_symmetric() && columns.begin < rows.begin) continue;
      const auto tile = tiles.compute(rows, columns);
      const bool mirrored = tiles.is_symmetric() && rows != columns;
      place(whole.nngp, tile.nngp, rows, columns, mirrored);
      place(whole.ntk, tile.ntk, rows, columns, mirrored);
      place(whole.nngp_error, tile.nngp_error, rows, columns, mirrored);
      place(whole.ntk_error, tile.ntk_error, rows, columns, mirrored);
    }
  return whole;
}

template <typename Scalar>
void check_same_tiles(const GramResult<Scalar>& actual, const GramResult<Scalar>& expected) {
  CHECK(actual.nngp == expected.nngp);
  if (expected.ntk.size() > 0) CHECK(actual.ntk == expected.ntk);
  if (expected.nngp_error.size() > 0) CHECK(actual.nngp_error == expected.nngp_error);
  if (expected.ntk_error.size() > 0) CHECK(actual.ntk_error == expected.ntk_error);
}

template <typename Scalar>
void check_tiles(const Network& network, const Inputs<Scalar>& x, const Inputs<Scalar>& x2, Index side,
                 const GramOptions& options = {}) {
  GramTiles<Scalar> symmetric(network, x, options);
  check_same_tiles(put_together(symmetric, side), gram(network, x, options));
  GramTiles<Scalar> rectangular(network, x, x2, options);
  check_same_tiles(put_together(rectangular, side), gram(network, x, x2, options));
}

template <typename Scalar>
Inputs<Scalar> batch(unsigned seed, std::vector<Index> dimensions) {
  xt::xarray<Scalar> values = random_inputs(seed, dimensions);
  return Inputs<Scalar>(std::move(values));
}

Inputs<double> sequence_inputs(unsigned seed, const std::vector<Index>& lengths) {
  std::vector<xt::xarray<double>> batch;
  for (const Index length : lengths) batch.push_back(random_inputs(seed++, {length, 3}));
  return Inputs<double>(std::move(batch));
}

Network image_network() {
  return Network({conv({{3, 3}, {}, Padding::same, 1.5, 0.1}), relu(), average_pool({{2, 2}}), dense(),
                  relu(), global_average_pool(), dense()});
}

TEST_CASE("tiles of images are gram(), whatever fits into memory") {
  const auto x = batch<float>(1, {13, 6, 6, 2}), x2 = batch<float>(2, {5, 6, 6, 2});
  for (const Index side : {1, 4, 13}) check_tiles(image_network(), x, x2, side);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{20000}, std::size_t{60000}})
    check_tiles(image_network(), x, x2, 8, {.threads = 2, .state_memory_bytes = bytes});
  check_tiles(image_network(), x, x2, 4, {.kernels = Kernels::nngp});
}

TEST_CASE("tiles of vectors are gram() on the grid of its products") {
  const Network network({dense({1.5, 0.1}), relu(), dense({1.5, 0.1}), relu(), dense()});
  const auto x = batch<float>(1, {700, 7}), x2 = batch<float>(2, {300, 7});
  CHECK(GramTiles<float>(network, x).grid() == 256);
  check_tiles(network, x, x2, 256);
  check_tiles(network, x, x2, 512, {.state_memory_bytes = 1});
  const auto many = batch<double>(3, {2100, 5}), few = batch<double>(4, {20, 5});
  CHECK(GramTiles<double>(network, many).grid() == 512);
  check_tiles(network, many, few, 1024);
  CHECK(error_message<ArgumentError>([&] {
          return GramTiles<float>(network, x).compute({0, 100}, {0, 100});
        }) ==
        "GramTiles: expected rows within [0, 700) that begin at a multiple of 256 and end at one or at 700, "
        "got [0, "
        "100)");
}

TEST_CASE("tiles of sequences of different length are gram(): the shorter input is the left one") {
  const auto x = sequence_inputs(1, {6, 9, 6, 7, 12, 3, 9, 6, 1, 4}), x2 = sequence_inputs(40, {5, 6, 15, 2});
  const Network convolution(
      {conv({{3}, {}, Padding::same, 1.5, 0.1}), relu(), global_average_pool(), dense()});
  const Network transformer(
      {attention(), dense({1.5, 0.1}), erf(), attention(), global_average_pool(), dense()});
  for (const Network& network : {convolution, transformer})
    for (const Index side : {1, 3, 7}) check_tiles(network, x, x2, side);
}

TEST_CASE("tiles of masked inputs, of graphs, and of sampled layers are gram()") {
  xt::xarray<bool> mask = xt::ones<bool>({std::size_t{6}, std::size_t{5}});
  mask(1, 3) = mask(1, 4) = mask(4, 0) = false;
  const auto plain = batch<double>(1, {6, 5, 2});
  const Network convolution(
      {conv({{3}, {}, Padding::same, 1.5, 0.1}), relu(), global_average_pool(), dense()});
  check_tiles(convolution, Inputs<double>(plain, mask), plain, 4);

  const std::vector<Index> nodes{4, 2, 5, 4, 3};
  std::vector<InputGraph> graphs;
  for (const Index n : nodes)
    graphs.emplace_back(n, std::vector<GraphEdge>{{0, n - 1, 0.5}, {n - 1, 0, 0.5}});
  const Inputs<double> with_graphs(sequence_inputs(1, nodes), graphs);
  check_tiles(Network({aggregate(), dense({1.5, 0.1}), relu(), global_average_pool(), dense()}), with_graphs,
              with_graphs, 2);

  AttentionOptions softmax;
  softmax.scaling = AttentionScaling::inverse_sqrt_width;
  softmax.samples = 4;
  softmax.seed = 3;
  check_tiles(Network({attention(softmax), global_average_pool(), dense()}), batch<double>(1, {5, 4, 3}),
              batch<double>(2, {3, 4, 3}), 2);
}

TEST_CASE("tiles name pairs and inputs as the whole matrix does") {
  auto values = random_inputs<float>(1, {6, 4});
  for (std::size_t c = 0; c < 4; ++c) values(3, c) *= 1e15F, values(5, c) *= 1e15F;
  const Network cubic({dense(), polynomial({0, 0, 1}), dense()});
  GramTiles<float> tiles(cubic, values);
  const auto of_tile = error_message<NumericalError>([&] { return tiles.compute({0, 6}, {0, 6}); });
  CHECK(of_tile == error_message<NumericalError>([&] { return gram<float>(cubic, values); }));
  CHECK(of_tile.find("input 3 of x") != std::string::npos);
  const Network convolution({conv({{1}}), exp(), global_average_pool(), dense()});
  auto images = random_inputs<float>(1, {6, 1, 4});
  for (std::size_t c = 0; c < 4; ++c) images(4, 0, c) *= 1e15F;
  GramTiles<float> of_images(convolution, images);
  const auto whole = error_message<NumericalError>([&] { return gram<float>(convolution, images); });
  CHECK(whole.find("pair (0, 4)") != std::string::npos);
  CHECK(error_message<NumericalError>([&] { return of_images.compute({0, 2}, {2, 6}); }) == whole);
  // The next tile is none the worse.
  CHECK(of_images.compute({0, 2}, {2, 4}).nngp.allFinite());
}

TEST_CASE("tiles below the diagonal, of other inputs or stopped are refused") {
  const auto x = batch<float>(1, {9, 6, 6, 2});
  GramTiles<float> tiles(image_network(), x);
  CHECK(error_message<ArgumentError>([&] {
          return tiles.compute({4, 8}, {0, 4});
        }) ==
        "GramTiles: of a symmetric matrix, expected rows that are the columns or come before them, got rows "
        "[4, 8) and "
        "columns [0, 4)");
  CHECK(error_message<ArgumentError>([&] {
          return tiles.compute({4, 8}, {8, 10});
        }) ==
        "GramTiles: expected columns within [0, 9) that begin at a multiple of 1 and end at one or at 9, got "
        "[8, 10)");
  CHECK_THROWS_AS(GramTiles<float>(image_network(), x, batch<float>(1, {9, 6, 6, 3})), ArgumentError);
  std::stop_source stop;
  stop.request_stop();
  GramTiles<float> stopped(image_network(), x, {.stop = stop.get_token()});
  CHECK_THROWS_AS(static_cast<void>(stopped.compute({0, 9}, {0, 9})), Cancelled);
}

}  // namespace
}  // namespace widelimit::testing
