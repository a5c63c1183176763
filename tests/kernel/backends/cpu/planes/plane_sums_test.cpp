// Weighted sums over planes against the same sums over a matrix.
#include "kernel/backends/cpu/planes/plane_sums.hpp"

#include <doctest/doctest.h>

#include <random>
#include <vector>

using namespace widelimit;

namespace {

struct Sizes {
  Index3 left;
  Index3 right;
};

std::vector<double> random_numbers(Index count, std::mt19937& generator) {
  std::normal_distribution<double> normal;
  std::vector<double> numbers(static_cast<std::size_t>(count));
  for (double& number : numbers) number = normal(generator);
  return numbers;
}

/// A d x d' matrix and the same entries as planes.
struct Covariance {
  std::vector<double> matrix;
  std::vector<double> planes;

  Covariance(const Sizes& sizes, const Offsets& offsets, const StoreLayout& layout, std::mt19937& generator)
      : matrix{random_numbers(product(sizes.left) * product(sizes.right), generator)}, planes(matrix.size()) {
    const StoreLayout as_matrix = StoreLayout::matrix(sizes.left, sizes.right);
    offsets.for_each([&](const Index3& offset) {
      const Box box(sizes.left, sizes.right, offset);
      for (Index x = 0; x < box.extent[0]; ++x)
        for (Index y = 0; y < box.extent[1]; ++y)
          for (Index z = 0; z < box.extent[2]; ++z) {
            const Index3 a{box.origin[0] + x, box.origin[1] + y, box.origin[2] + z};
            const Index3 b{a[0] + offset[0], a[1] + offset[1], a[2] + offset[2]};
            planes[static_cast<std::size_t>(layout.entry(a, b))] =
                matrix[static_cast<std::size_t>(as_matrix.entry(a, b))];
          }
    });
  }
};

void check_equal(const FeatureStage::Values& value, const FeatureStage::Values& expected) {
  CHECK(value.nngp == doctest::Approx(expected.nngp).epsilon(1e-10).scale(0));
  CHECK(value.ntk == doctest::Approx(expected.ntk).epsilon(1e-10).scale(0));
}

}  // namespace

TEST_CASE("sums over planes are those over the matrix") {
  std::mt19937 generator(5);
  // Sequences longer than the blocks of rows, of equal and different length; images; volumes; one position.
  const std::vector<Sizes> cases{{{1, 1, 70}, {1, 1, 70}}, {{1, 1, 33}, {1, 1, 100}}, {{1, 1, 64}, {1, 1, 5}},
                                 {{1, 6, 7}, {1, 6, 7}},   {{1, 3, 40}, {1, 5, 34}},  {{2, 3, 4}, {3, 4, 2}},
                                 {{1, 1, 1}, {1, 1, 1}}};
  for (const Sizes& sizes : cases) {
    CAPTURE(sizes.left[2]);
    CAPTURE(sizes.right[2]);
    const Offsets offsets = Offsets::all(sizes.left, sizes.right);
    const StoreLayout layout = StoreLayout::planes(sizes.left, sizes.right, offsets);
    const Index rows = product(sizes.left), columns = product(sizes.right);
    REQUIRE(layout.size() == rows * columns);
    Covariance nngp(sizes, offsets, layout, generator), ntk(sizes, offsets, layout, generator);
    const auto left = random_numbers(rows, generator), right = random_numbers(columns, generator);
    const auto weights = random_numbers(rows * columns, generator);
    const PlaneSums<double> planes(sizes.left, sizes.right, offsets, layout,
                                   {nngp.planes.data(), ntk.planes.data()});
    const MatrixSums<double> matrix(nngp.matrix.data(), ntk.matrix.data(), rows, columns);
    check_equal(planes.outer(left.data(), right.data()), matrix.outer(left.data(), right.data()));
    check_equal(planes.full(weights.data()), matrix.full(weights.data()));
    if (sizes.left == sizes.right)
      check_equal(planes.diagonal(left.data(), right.data()), matrix.diagonal(left.data(), right.data()));
    const PlaneSums<double> nngp_only(sizes.left, sizes.right, offsets, layout,
                                      {nngp.planes.data(), nullptr});
    CHECK(nngp_only.full(weights.data()).nngp == planes.full(weights.data()).nngp);
    CHECK(nngp_only.full(weights.data()).ntk == 0);
  }
}
