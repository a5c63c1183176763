// Weighted sums over pieces, products with few columns and the exponentials of softmax against plain loops, on any
// instruction set.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "numerics/rows/exponential_rows.hpp"
#include "numerics/rows/few_columns.hpp"
#include "numerics/rows/piece_sums.hpp"

namespace widelimit::testing {
namespace {

using namespace numerics;

TEST_CASE_TEMPLATE("weighted sums over pieces", Scalar, float, double) {
  std::mt19937 generator(3);
  std::normal_distribution<double> normal;
  std::vector<Scalar> weights(2000), first(2000), second(2000);
  for (auto* row : {&weights, &first, &second})
    for (Scalar& number : *row) number = static_cast<Scalar>(normal(generator));
  std::vector<WeightedPiece<Scalar>> both, one;
  std::array<double, 2> expected{1, 2};
  std::size_t begin = 0;
  for (std::size_t size = 0; size < 40; ++size) {
    both.push_back({weights.data() + begin, first.data() + begin + 1, second.data() + begin + 2, size});
    one.push_back({weights.data() + begin, first.data() + begin + 1, nullptr, size});
    for (std::size_t i = begin; i < begin + size; ++i) {
      expected[0] += static_cast<double>(weights[i]) * static_cast<double>(first[i + 1]);
      expected[1] += static_cast<double>(weights[i]) * static_cast<double>(second[i + 2]);
    }
    begin += size;
  }
  std::array<double, 2> sums{1, 2}, alone{1, 2};
  piece_sums<Scalar>().add(both.data(), both.size(), sums.data());
  piece_sums<Scalar>().add(one.data(), one.size(), alone.data());
  const double rounding = 200 * static_cast<double>(std::numeric_limits<Scalar>::epsilon());
  CHECK(std::abs(sums[0] - expected[0]) < rounding);
  CHECK(std::abs(sums[1] - expected[1]) < rounding);
  CHECK(alone[0] == sums[0]);
  CHECK(alone[1] == 2);
  piece_sums<Scalar>().add(nullptr, 0, alone.data());
  CHECK(alone[0] == sums[0]);
}

/// Sums of FewColumns::terms products in Scalar, added up in double.
template <typename Scalar, typename Entry>
double plain_product(std::size_t size, const Entry& entry, const Scalar* column) {
  constexpr std::size_t columns = FewColumns<Scalar>::columns, terms = FewColumns<Scalar>::terms;
  double sum = 0;
  for (std::size_t first = 0; first < size; first += terms) {
    Scalar part = 0;
    for (std::size_t k = first; k < std::min(first + terms, size); ++k)
      part = std::fma(entry(k), column[k * columns], part);
    sum += static_cast<double>(part);
  }
  return sum;
}

TEST_CASE_TEMPLATE("products of a matrix with few columns are added to what is there", Scalar, float,
                   double) {
  constexpr std::size_t columns = FewColumns<Scalar>::columns;
  std::mt19937 generator(4);
  std::normal_distribution<double> normal;
  for (const std::size_t size : {1, 5, 16, 37, 48, 100, 131}) {
    CAPTURE(size);
    std::vector<Scalar> matrix(size * size), x(size * columns);
    for (auto* numbers : {&matrix, &x})
      for (Scalar& number : *numbers) number = static_cast<Scalar>(normal(generator));
    std::vector<double> sums(size * columns, 3), transposed(size * columns, 3);
    few_columns<Scalar>().add(matrix.data(), size, x.data(), sums.data());
    few_columns<Scalar>().add_transposed(matrix.data(), size, x.data(), transposed.data());
    // Instruction sets without fused multiply-add round a product once more.
    const double rounding = 60 * std::sqrt(static_cast<double>(size)) *
                            static_cast<double>(std::numeric_limits<Scalar>::epsilon());
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t c = 0; c < columns; ++c) {
        CHECK(std::abs(sums[i * columns + c] - 3 -
                       plain_product(
                           size, [&](std::size_t k) { return matrix[i * size + k]; }, &x[c])) < rounding);
        CHECK(std::abs(transposed[i * columns + c] - 3 -
                       plain_product(
                           size, [&](std::size_t k) { return matrix[k * size + i]; }, &x[c])) < rounding);
      }
  }
}

TEST_CASE_TEMPLATE("exponentials of what is below a top", Scalar, float, double) {
  constexpr double rate = 1.7;
  const double digits = static_cast<double>(std::numeric_limits<Scalar>::epsilon());
  for (std::size_t size = 0; size < 40; ++size) {
    CAPTURE(size);
    const Scalar top = Scalar(0.25), behind = Scalar(7);
    std::vector<Scalar> row(size + 1, behind);
    for (std::size_t i = 0; i < size; ++i) row[i] = top - static_cast<Scalar>(i * i) / 32;
    const std::vector<Scalar> before = row;
    exponential_rows<Scalar>().decay(static_cast<Scalar>(rate), top, row.data(), size);
    for (std::size_t i = 0; i < size; ++i) {
      const double exponent =
          static_cast<double>(static_cast<Scalar>(rate)) * static_cast<double>(before[i] - top);
      CHECK(static_cast<double>(row[i]) ==
            doctest::Approx(std::exp(exponent)).epsilon(digits * (4 + 3 * std::abs(exponent))).scale(0));
    }
    CHECK(row[size] == behind);
  }
  const Scalar largest = std::numeric_limits<Scalar>::max();
  std::array<Scalar, 3> extremes{largest, -largest, -std::numeric_limits<Scalar>::infinity()};
  exponential_rows<Scalar>().decay(Scalar{1}, largest, extremes.data(), extremes.size());
  CHECK(extremes[0] == 1);
  CHECK(extremes[1] == 0);
  CHECK(extremes[2] == 0);
  std::array<Scalar, 2> flat{Scalar{3}, Scalar{-5}};
  exponential_rows<Scalar>().decay(Scalar{0}, Scalar{3}, flat.data(), flat.size());
  CHECK(flat[0] == 1);
  CHECK(flat[1] == 1);
}

}  // namespace
}  // namespace widelimit::testing
