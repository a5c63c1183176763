// Maps of positions, applied plane by plane, against M K M'^T of whole matrices.
#include "kernel/backends/cpu/planes/plane_map.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "kernel/backends/cpu/planes/plane_feed.hpp"
#include "kernel/laws/larger.hpp"

namespace widelimit::testing::plane_map_test {
namespace {

/// The weights with which position `to` of an axis after a map reads positions before it, of which there are so many.
using AxisWeights = std::function<std::vector<double>(std::size_t axis, Index to, Index size)>;

/// The map of a network, and covariances of some pairs before it.
class MapCheck {
 public:
  MapCheck(const EngineProgram& engine, AxisWeights weights, Index pairs)
      : weights_{std::move(weights)},
        feed_(engine, step_ending_in<PairNode>(engine.program), pairs, 19),
        row_sums_(static_cast<std::size_t>(mapped_row_sums(engine.pair, feed_.target(), pairs)), 7.0) {}

  /// Adds all planes, `at_once` pairs in a stack, and compares what comes out.
  void check(Index at_once) {
    PlaneMap<double> map(feed_.engine().pair, feed_.target(), feed_.result(0), row_sums_.data());
    feed_.feed(map, at_once, [&] { map.end_group(); });
    feed_.check_results([&](const PairCovariances& covariances, Index pair, const double* mapped) {
      check_kernel(covariances, pair, mapped);
    });
  }

 private:
  /// M, [positions after the map, positions before it].
  [[nodiscard]] Matrix<double> matrix(const Index3& after, const Index3& before) const {
    Matrix<double> matrix(product(after), product(before));
    for_each_position(after, [&](const Index3& to) {
      std::array<std::vector<double>, 3> axes;
      for (std::size_t k = 0; k < 3; ++k) axes[k] = weights_(k, to[k], before[k]);
      for_each_position(before, [&](const Index3& from) {
        double weight = 1;
        for (std::size_t k = 0; k < 3; ++k) weight *= axes[k][static_cast<std::size_t>(from[k])];
        matrix(position_number(to, after), position_number(from, before)) = weight;
      });
    });
    return matrix;
  }

  template <typename Body>
  static void for_each_position(const Index3& sizes, const Body& body) {
    for (Index x = 0; x < sizes[0]; ++x)
      for (Index y = 0; y < sizes[1]; ++y)
        for (Index z = 0; z < sizes[2]; ++z) body(Index3{x, y, z});
  }

  /// M K M'^T of a pair.
  [[nodiscard]] Matrix<double> expected(const PairCovariances& covariances, Index pair) const {
    const Index3 &left_before = feed_.left_before(), &right_before = feed_.right_before();
    Matrix<double> before(product(left_before), product(right_before));
    for_each_position(left_before, [&](const Index3& a) {
      for_each_position(right_before, [&](const Index3& b) {
        before(position_number(a, left_before), position_number(b, right_before)) =
            covariances.at(pair, a, b);
      });
    });
    return matrix(feed_.left_after(), left_before) * before *
           matrix(feed_.right_after(), right_before).transpose();
  }

  void check_kernel(const PairCovariances& covariances, Index pair, const double* mapped) const {
    const Matrix<double> whole = expected(covariances, pair);
    double worst = 0;
    Index entries = 0;
    feed_.for_each_demanded([&](const Index3& a, const Index3& b, Index place) {
      const double difference = mapped[place] - whole(position_number(a, feed_.left_after()),
                                                      position_number(b, feed_.right_after()));
      worst = larger(worst, std::abs(difference));
      ++entries;
    });
    CHECK(entries > 0);
    CHECK(worst < 1e-12);
  }

  AxisWeights weights_;
  PlaneFeed feed_;
  std::vector<double> row_sums_;
};

/// A window along each axis, the last axes those of the shape: of this size, every `stride` positions.
struct AxisWindow {
  Index size = 1;
  Index stride = 1;

  /// Where it begins at the first position: the padding that is left is at the end.
  [[nodiscard]] Index front(Index length) const {
    const Index outputs = (length + stride - 1) / stride;
    return std::max<Index>((outputs - 1) * stride + size - length, 0) / 2;
  }
};

AxisWeights circular_means(const std::array<AxisWindow, 3>& windows) {
  return [windows](std::size_t axis, Index to, Index length) {
    const AxisWindow& window = windows[axis];
    std::vector<double> weights(static_cast<std::size_t>(length), 0.0);
    for (Index k = 0; k < window.size; ++k) {
      const Index place = window.stride * to + k - window.front(length);
      weights[static_cast<std::size_t>((place % length + length) % length)] +=
          1.0 / static_cast<double>(window.size);
    }
    return weights;
  };
}

AxisWeights means_of_what_is_there(const std::array<AxisWindow, 3>& windows) {
  return [windows](std::size_t axis, Index to, Index length) {
    const AxisWindow& window = windows[axis];
    std::vector<double> weights(static_cast<std::size_t>(length), 0.0);
    double count = 0;
    for (Index k = 0; k < window.size; ++k) {
      const Index place = window.stride * to + k - window.front(length);
      if (place < 0 || place >= length) continue;
      weights[static_cast<std::size_t>(place)] = 1;
      ++count;
    }
    for (double& weight : weights) weight /= count;
    return weights;
  };
}

std::string mapped_network(const std::string& convolution, const std::string& pool,
                           const std::string& readout) {
  return R"([{"layer": "conv", )" + convolution + R"(}, {"layer": "relu"}, {"layer": "average_pool", )" +
         pool + R"(}, {"layer": "dense"}, {"layer": "relu"}, {"layer": ")" + readout +
         R"("}, {"layer": "dense"}])";
}

void check_map(const std::string& network, const AxisWeights& weights, const Shape& left,
               const Shape& right) {
  CAPTURE(network);
  const EngineProgram engine(network, left, right, 2);
  for (const Index at_once : {1, 2, 5}) MapCheck(engine, weights, 5).check(at_once);
}

TEST_CASE("PlaneMap: circular windows of images, with all offsets and with those on the diagonal") {
  const AxisWeights weights = circular_means({AxisWindow{}, AxisWindow{3, 1}, AxisWindow{2, 2}});
  for (const char* readout : {"global_average_pool", "flatten"})
    check_map(mapped_network(R"("filter": [3, 3])",
                             R"("window": [3, 2], "strides": [1, 2], "padding": "circular")", readout),
              weights, {5, 6}, {5, 6});
}

TEST_CASE("PlaneMap: means over what windows see of the input, behind joined offsets and alone") {
  const AxisWeights weights = means_of_what_is_there({AxisWindow{}, AxisWindow{3, 2}, AxisWindow{3, 1}});
  const std::string pool =
      R"("window": [3, 3], "strides": [2, 1], "padding": "same", "normalize_edges": true)";
  for (const std::string& convolution :
       {std::string(R"("filter": [3, 3])"), std::string(R"("filter": [3, 3], "padding": "valid")")}) {
    check_map(mapped_network(convolution, pool, "global_average_pool"), weights, {6, 7}, {6, 7});
    check_map(mapped_network(convolution, pool, "flatten"), weights, {6, 7}, {6, 7});
  }
}

// Sequences have no planes of several rows, so that they are mapped as matrices.
TEST_CASE("PlaneMap: images of equal and of different size, longer than a chunk of columns") {
  const std::string network =
      mapped_network(R"("filter": [3, 3])",
                     R"("window": [2, 3], "strides": [2, 1], "padding": "same", "normalize_edges": true)",
                     "global_average_pool");
  const AxisWeights weights = means_of_what_is_there({AxisWindow{}, AxisWindow{2, 2}, AxisWindow{3, 1}});
  check_map(network, weights, {8, 21}, {8, 21});
  check_map(network, weights, {8, 37}, {9, 21});
}

TEST_CASE("PlaneMap: volumes") {
  check_map(mapped_network(R"("filter": [1, 3, 2])",
                           R"("window": [2, 3, 1], "strides": [1, 1, 1], "padding": "circular")",
                           "global_average_pool"),
            circular_means({AxisWindow{2, 1}, AxisWindow{3, 1}, AxisWindow{}}), {3, 4, 2}, {3, 4, 2});
}

}  // namespace
}  // namespace widelimit::testing::plane_map_test
