// Maps of rows and columns against plain loops, on any instruction set.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "numerics/rows/mapped_rows.hpp"

namespace widelimit::testing {
namespace {

using namespace numerics;

template <typename Scalar>
std::vector<Scalar> normal_row(std::mt19937& generator, std::size_t size) {
  std::normal_distribution<double> normal;
  std::vector<Scalar> numbers(size);
  for (Scalar& number : numbers) number = static_cast<Scalar>(normal(generator));
  return numbers;
}

template <typename Scalar>
void check_combined(std::size_t size) {
  constexpr std::ptrdiff_t slab_step = 200, row_step = 64, target_step = 64;
  std::mt19937 generator(1);
  const auto source = normal_row<Scalar>(generator, 1000);
  const std::vector<typename RowTerms<Scalar>::Term> terms{
      {0, 1, Scalar(0.5)}, {1, 0, Scalar(-2)}, {2, 2, Scalar(3)}};
  const std::vector<std::size_t> begin{0, 2, 2, 3};
  const std::vector<std::ptrdiff_t> targets{2, 0, 1};
  const std::vector<std::uint8_t> adds{0, 1, 1};
  const auto before = normal_row<Scalar>(generator, 3 * target_step);
  std::vector<Scalar> found = before;
  mapped_rows<Scalar>().combine({begin.data(), terms.data(), targets.data(), adds.data(), 3}, source.data(),
                                slab_step, row_step, size, found.data(), target_step);
  for (std::size_t n = 0; n < 3; ++n)
    for (std::size_t k = 0; k < size; ++k) {
      const auto place = static_cast<std::size_t>(targets[n] * target_step) + k;
      double expected = adds[n] != 0 ? static_cast<double>(before[place]) : 0;
      for (std::size_t i = begin[n]; i < begin[n + 1]; ++i)
        expected +=
            static_cast<double>(terms[i].weight) *
            static_cast<double>(
                source[static_cast<std::size_t>(terms[i].slab * slab_step + terms[i].row * row_step) + k]);
      CHECK(static_cast<double>(found[place]) == doctest::Approx(expected).epsilon(1e-6));
    }
}

template <typename Scalar>
void check_columns(std::size_t columns, std::size_t rows) {
  constexpr std::ptrdiff_t source_step = 40, first = 3, end = 30;
  const auto target_step = static_cast<std::ptrdiff_t>(columns);
  std::mt19937 generator(2);
  const auto source = normal_row<Scalar>(generator, rows * source_step),
             matrix = normal_row<Scalar>(generator, (end - first) * column_chunk);
  const auto before = normal_row<Scalar>(generator, rows * columns + 1);
  std::vector<Scalar> found = before;
  mapped_rows<Scalar>().map_columns({matrix.data(), first, end, columns}, source.data(), source_step, rows,
                                    found.data(), target_step);
  for (std::size_t n = 0; n < rows; ++n)
    for (std::size_t k = 0; k < columns; ++k) {
      double expected = static_cast<double>(before[n * columns + k]);
      for (std::size_t c = first; c < end; ++c)
        expected += static_cast<double>(source[n * source_step + c]) *
                    static_cast<double>(matrix[(c - first) * column_chunk + k]);
      CHECK(static_cast<double>(found[n * columns + k]) == doctest::Approx(expected).epsilon(2e-5).scale(1));
    }
  CHECK(found.back() == before.back());
}

TEST_CASE_TEMPLATE("rows that are sums of others", Scalar, float, double) {
  for (const std::size_t size : {1U, 7U, 16U, 33U, 64U}) check_combined<Scalar>(size);
}

TEST_CASE_TEMPLATE("columns after a map, and nothing beyond them", Scalar, float, double) {
  for (const std::size_t columns : {1U, 5U, 8U, 15U, 16U})
    for (const std::size_t rows : {1U, 4U, 7U, 13U}) check_columns<Scalar>(columns, rows);
}

}  // namespace
}  // namespace widelimit::testing
