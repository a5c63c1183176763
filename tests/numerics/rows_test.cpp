// The vectorised rows against plain loops, on whatever instruction set main() chose.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "numerics/row_numbers.hpp"
#include "numerics/rows/linear_rows.hpp"
#include "numerics/rows/precise_products.hpp"
#include "widelimit/numerics/random_stream.hpp"

using namespace widelimit::numerics;
using namespace widelimit::testing;

namespace {

/// An image with zeros around it: rows one after the other, each followed by `guard` zeros, and zero rows in
/// front and behind.
template <typename Scalar>
struct GuardedImage {
  std::ptrdiff_t height, width, guard;
  std::vector<Scalar> numbers;

  GuardedImage(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t zeros, std::uint64_t seed)
      : height{rows},
        width{columns},
        guard{zeros},
        numbers(static_cast<std::size_t>(front() + length() + front())) {
    RandomStream stream(seed);
    for (std::ptrdiff_t y = 0; y < height; ++y)
      for (std::ptrdiff_t x = 0; x < width; ++x) row(y)[x] = static_cast<Scalar>(stream.normal());
  }
  std::ptrdiff_t stride() const { return width + guard; }
  std::ptrdiff_t length() const { return height * stride(); }
  std::ptrdiff_t front() const { return (guard + 1) * (stride() + 1) + 16; }
  Scalar* row(std::ptrdiff_t y) { return numbers.data() + front() + y * stride(); }
  double at(std::ptrdiff_t y, std::ptrdiff_t x) const {
    if (y < 0 || x < 0 || y >= height || x >= width) return 0;
    return static_cast<double>(numbers[static_cast<std::size_t>(front() + y * stride() + x)]);
  }
  double window_sum(std::ptrdiff_t y, std::ptrdiff_t x, std::ptrdiff_t size) const {
    double sum = 0;
    for (std::ptrdiff_t i = 0; i < size; ++i)
      for (std::ptrdiff_t j = 0; j < size; ++j) sum += at(y + i - (size - 1) / 2, x + j - (size - 1) / 2);
    return sum;
  }
};

}  // namespace

TEST_CASE_TEMPLATE("rows: convolutions agree with plain window sums", Scalar, float, double) {
  for (const std::ptrdiff_t width : {1, 3, 15, 16, 33})
    for (const std::ptrdiff_t taps : {2, 3, 5}) {
      CAPTURE(width);
      CAPTURE(taps);
      GuardedImage<Scalar> nngp(7, width, taps / 2, 1), ntk(7, width, taps / 2, 2);
      GuardedImage<Scalar> sums(7, width, taps / 2, 3), mapped(7, width, taps / 2, 3),
          mapped_ntk(7, width, taps / 2, 3);
      std::fill(sums.numbers.begin(), sums.numbers.end(), Scalar{0});
      const auto first = -(taps - 1) / 2;
      const auto count = static_cast<std::size_t>(taps);
      const Convolution convolution{
          .axes = {Taps{first, 1, count}, Taps{first * nngp.stride(), nngp.stride(), count}},
          .axis_count = 2,
          .scale = 0.3,
          .bias = 0.7};
      const std::array<Scalar*, 2> scratch{sums.row(0), nullptr};
      linear_rows<Scalar>().convolve(convolution, nngp.row(0), ntk.row(0), scratch.data(), mapped.row(0),
                                     mapped_ntk.row(0), static_cast<std::size_t>(nngp.length()));
      // The last row reads a row of partial sums that was never written: leave it out.
      for (std::ptrdiff_t y = 0; y < 7 - taps / 2; ++y)
        for (std::ptrdiff_t x = 0; x < width; ++x) {
          const double expected = 0.3 * nngp.window_sum(y, x, taps) + 0.7;
          CHECK(std::abs(mapped.at(y, x) - expected) < 40 * epsilon<Scalar>);
          CHECK(std::abs(mapped_ntk.at(y, x) - expected - 0.3 * ntk.window_sum(y, x, taps)) <
                60 * epsilon<Scalar>);
        }
    }
}

TEST_CASE_TEMPLATE("rows: convolutions along one axis agree with plain sums", Scalar, float, double) {
  constexpr std::ptrdiff_t margin = 48;
  for (const std::ptrdiff_t size : {1, 16, 48, 53, 240})
    for (const std::ptrdiff_t taps : {1, 3, 5, 9, 11}) {
      CAPTURE(size);
      CAPTURE(taps);
      const auto nngp = normal_numbers<Scalar>(static_cast<std::size_t>(size + 2 * margin), 8);
      const auto ntk = normal_numbers<Scalar>(nngp.size(), 9);
      std::vector<Scalar> mapped(nngp.size(), Scalar{-1}), mapped_ntk(nngp.size(), Scalar{-1});
      const std::ptrdiff_t first = -(taps - 1) / 2;
      const Convolution convolution{.axes = {Taps{first, 1, static_cast<std::size_t>(taps)}},
                                    .axis_count = 1,
                                    .scale = 0.3,
                                    .bias = 0.7};
      linear_rows<Scalar>().convolve(convolution, nngp.data() + margin, ntk.data() + margin, nullptr,
                                     mapped.data() + margin, mapped_ntk.data() + margin,
                                     static_cast<std::size_t>(size));
      const auto sum = [&](const std::vector<Scalar>& numbers, std::ptrdiff_t i) {
        double total = 0;
        for (std::ptrdiff_t t = 0; t < taps; ++t)
          total += static_cast<double>(numbers[static_cast<std::size_t>(margin + i + first + t)]);
        return total;
      };
      for (std::ptrdiff_t i = 0; i < size; ++i) {
        const auto place = static_cast<std::size_t>(margin + i);
        const double expected = 0.3 * sum(nngp, i) + 0.7;
        CHECK(std::abs(static_cast<double>(mapped[place]) - expected) < 40 * epsilon<Scalar>);
        CHECK(std::abs(static_cast<double>(mapped_ntk[place]) - expected - 0.3 * sum(ntk, i)) <
              60 * epsilon<Scalar>);
      }
      CHECK(mapped[static_cast<std::size_t>(margin - 1)] == -1);
      CHECK(mapped[static_cast<std::size_t>(margin + size)] == -1);
      // Without an ntk, as with one of zeros.
      const std::vector<Scalar> zeros(nngp.size());
      std::vector<Scalar> same(mapped), without(mapped);
      linear_rows<Scalar>().convolve(convolution, nngp.data() + margin, zeros.data() + margin, nullptr,
                                     mapped.data() + margin, same.data() + margin,
                                     static_cast<std::size_t>(size));
      linear_rows<Scalar>().convolve(convolution, nngp.data() + margin, nullptr, nullptr,
                                     mapped.data() + margin, without.data() + margin,
                                     static_cast<std::size_t>(size));
      CHECK(same == without);
    }
}

TEST_CASE_TEMPLATE("rows: packing copies rows and puts zeros between them", Scalar, float, double) {
  constexpr std::size_t rows = 4, source_step = 40, padding = 16;
  const auto source = normal_numbers<Scalar>(rows * source_step + padding, 4);
  for (const std::size_t size : {1u, 7u, 8u, 16u, 31u, 32u})
    for (const std::size_t gap : {0u, 1u, 20u}) {
      CAPTURE(size);
      CAPTURE(gap);
      const std::size_t step = size + gap;
      std::vector<Scalar> packed(rows * step + padding, Scalar{-1});
      linear_rows<Scalar>().pack(source.data(), source_step, rows, size, packed.data(), step);
      for (std::size_t y = 0; y < rows; ++y)
        for (std::size_t x = 0; x < step; ++x)
          CHECK(packed[y * step + x] == (x < size ? source[y * source_step + x] : Scalar{0}));
    }
}

TEST_CASE_TEMPLATE("rows: packing pieces puts zeros after both", Scalar, float, double) {
  constexpr std::size_t rows = 4, first_step = 40, second_step = 50, padding = 16;
  const auto first = normal_numbers<Scalar>(rows * first_step + padding, 4);
  const auto second = normal_numbers<Scalar>(rows * second_step + padding, 5);
  for (const std::size_t first_size : {1u, 16u, 31u})
    for (const std::size_t second_size : {1u, 7u, 32u})
      for (const std::size_t gap : {0u, 1u, 20u}) {
        CAPTURE(first_size);
        CAPTURE(second_size);
        CAPTURE(gap);
        const std::size_t second_start = first_size + gap, step = second_start + second_size + gap;
        std::vector<Scalar> packed(rows * step + padding, Scalar{-1});
        linear_rows<Scalar>().pack_pieces({first.data(), first_step, first_size},
                                          {second.data(), second_step, second_size}, second_start, rows,
                                          packed.data(), step);
        for (std::size_t y = 0; y < rows; ++y)
          for (std::size_t x = 0; x < step; ++x) {
            const bool in_second = x >= second_start && x < second_start + second_size;
            const Scalar expected = x < first_size ? first[y * first_step + x]
                                    : in_second    ? second[y * second_step + x - second_start]
                                                   : Scalar{0};
            CHECK(packed[y * step + x] == expected);
          }
      }
}

TEST_CASE_TEMPLATE("rows: products of a block are those of its pairs", Scalar, float, double) {
  constexpr std::size_t most = 6;
  for (const std::size_t size : {1u, 16u, 70u, 600u})
    for (const std::size_t count : {1u, 3u, 5u}) {
      const auto a = normal_numbers<Scalar>(most * count * size, 9),
                 b = normal_numbers<Scalar>(most * count * size, 10);
      std::vector<const Scalar*> left, right;
      for (std::size_t k = 0; k < most * count; ++k) {
        left.push_back(a.data() + k * size);
        right.push_back(b.data() + k * size);
      }
      for (std::size_t lefts = 1; lefts <= most; ++lefts)
        for (std::size_t rights = 1; rights <= most; ++rights) {
          CAPTURE(size);
          CAPTURE(count);
          CAPTURE(lefts);
          CAPTURE(rights);
          std::vector<Scalar> products(lefts * rights * size), alone(size);
          std::vector<Scalar*> targets;
          for (std::size_t n = 0; n < lefts * rights; ++n) targets.push_back(products.data() + n * size);
          linear_rows<Scalar>().product_sums(left.data(), lefts, right.data(), rights, count, Scalar(0.5),
                                             targets.data(), size);
          for (std::size_t n = 0; n < lefts * rights; ++n) {
            linear_rows<Scalar>().product_sum(left.data() + n / rights * count,
                                              right.data() + n % rights * count, count, Scalar(0.5),
                                              alone.data(), size);
            CHECK(std::equal(alone.begin(), alone.end(), targets[n]));
          }
        }
    }
}

TEST_CASE_TEMPLATE("rows: weighted sums", Scalar, float, double) {
  for (const std::size_t size : {1u, 16u, 70u}) {
    const auto a = normal_numbers<Scalar>(size, 11), b = normal_numbers<Scalar>(size, 12);
    std::vector<Scalar> sum(size);
    linear_rows<Scalar>().weighted_sum(a.data(), b.data(), {Scalar(0.5), Scalar(-3)}, sum.data(), size);
    for (std::size_t i = 0; i < size; ++i) {
      const double expected = 0.5 * static_cast<double>(a[i]) - 3 * static_cast<double>(b[i]);
      CHECK(std::abs(static_cast<double>(sum[i]) - expected) <= 20 * epsilon<Scalar>);
    }
  }
}

TEST_CASE_TEMPLATE("rows: products of a sparse matrix with one of rows of every length", Scalar, float,
                   double) {
  // Three rows, the second empty, of a matrix with four columns.
  const std::vector<std::ptrdiff_t> begin{0, 2, 2, 5}, columns{3, 0, 1, 1, 2};
  const auto weights = normal_numbers<Scalar>(5, 21);
  for (const std::size_t size : {1u, 3u, 8u, 16u, 30u, 32u, 71u}) {
    CAPTURE(size);
    const auto source = normal_numbers<Scalar>(4 * size, 22);
    std::vector<Scalar> product(3 * size + 1, Scalar(7));
    linear_rows<Scalar>().sparse_product({begin.data(), columns.data(), weights.data(), 3}, source.data(),
                                         size, product.data());
    for (std::size_t a = 0; a < 3; ++a)
      for (std::size_t i = 0; i < size; ++i) {
        double expected = 0;
        for (auto k = static_cast<std::size_t>(begin[a]); k < static_cast<std::size_t>(begin[a + 1]); ++k)
          expected += static_cast<double>(weights[k]) *
                      static_cast<double>(source[static_cast<std::size_t>(columns[k]) * size + i]);
        CHECK(std::abs(static_cast<double>(product[a * size + i]) - expected) <= 20 * epsilon<Scalar>);
      }
    CHECK(product.back() == 7);
  }
}

TEST_CASE_TEMPLATE("rows: sums and products of every length", Scalar, float, double) {
  for (const std::size_t size : {1u, 5u, 16u, 63u, 64u, 200u}) {
    CAPTURE(size);
    const auto a = normal_numbers<Scalar>(3 * size, 5), b = normal_numbers<Scalar>(3 * size, 6);
    double sum = 0, dot = 0, magnitude = 0;
    for (std::size_t i = 0; i < size; ++i) {
      sum += static_cast<double>(a[i]);
      dot += static_cast<double>(a[i]) * static_cast<double>(b[i]);
      magnitude += std::abs(static_cast<double>(a[i])) + std::abs(static_cast<double>(a[i] * b[i]));
    }
    const double bound = 40 * epsilon<Scalar> * magnitude;
    CHECK(std::abs(linear_rows<Scalar>().sum(a.data(), size) - sum) <= bound);
    CHECK(std::abs(linear_rows<Scalar>().dot(a.data(), b.data(), size) - dot) <= bound);
    for (const std::size_t channels : {1u, 2u, 3u}) {
      std::array<const Scalar*, 3> left{}, right{};
      for (std::size_t k = 0; k < channels; ++k) {
        left[k] = a.data() + k * size;
        right[k] = b.data() + k * size;
      }
      std::vector<Scalar> products(size);
      linear_rows<Scalar>().product_sum(left.data(), right.data(), channels, Scalar(0.5), products.data(),
                                        size);
      for (std::size_t i = 0; i < size; ++i) {
        double expected = 0;
        for (std::size_t k = 0; k < channels; ++k)
          expected += 0.5 * static_cast<double>(left[k][i]) * static_cast<double>(right[k][i]);
        CHECK(std::abs(static_cast<double>(products[i]) - expected) <= 40 * epsilon<Scalar>);
      }
    }
  }
}

TEST_CASE_TEMPLATE("rows: precise products keep their digits however long and lopsided the rows", Scalar,
                   float, double) {
  for (const std::size_t size : {1u, 3u, 17u, 400u, 5001u}) {
    CAPTURE(size);
    auto a = normal_numbers<Scalar>(size, 15), b = normal_numbers<Scalar>(size, 16);
    // Equal numbers round the same way each time; large ones hide small ones.
    for (std::size_t i = 0; i < size; i += 2) a[i] = b[i] = Scalar(0.1);
    for (std::size_t i = 0; i < size; i += 50) a[i] = b[i] = Scalar(3e4);
    long double dot = 0, magnitude = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const long double product = static_cast<long double>(a[i]) * b[i];
      dot += product;
      magnitude += std::abs(product);
    }
    const double precise = precise_products<Scalar>().dot(a.data(), b.data(), size);
    CHECK(std::abs(static_cast<double>(precise - dot)) <=
          4 * epsilon<double> * static_cast<double>(magnitude));
    CHECK(precise_products<Scalar>().dot(b.data(), a.data(), size) == precise);
  }
}

TEST_CASE_TEMPLATE("rows: one row times some, added up in double", Scalar, float, double) {
  for (const std::size_t size : {1u, 5u, 64u, 201u})
    for (const std::size_t count : {1u, 3u, 4u, 11u}) {
      CAPTURE(size);
      CAPTURE(count);
      const std::size_t step = size + 3;
      const auto left = normal_numbers<Scalar>(size, 17), right = normal_numbers<Scalar>(count * step, 18);
      std::vector<Scalar> products(count + 1, Scalar(-7));
      precise_products<Scalar>().multiply_rows(left.data(), right.data(), step, count, size, 0.25,
                                               products.data());
      for (std::size_t j = 0; j < count; ++j) {
        double sum = 0, magnitude = 0;
        for (std::size_t i = 0; i < size; ++i) {
          const double product = static_cast<double>(left[i]) * static_cast<double>(right[j * step + i]);
          sum += product;
          magnitude += std::abs(product);
        }
        CHECK(std::abs(static_cast<double>(products[j]) - 0.25 * sum) <=
              epsilon<double> * static_cast<double>(size) * magnitude +
                  static_cast<double>(epsilon<Scalar>) * std::abs(sum));
      }
      CHECK(products[count] == Scalar(-7));
    }
}

TEST_CASE_TEMPLATE("rows: bounds are exceeded by either sign, at every place, and not by equality", Scalar,
                   float, double) {
  for (const std::size_t size : {1u, 7u, 16u, 37u}) {
    const std::vector<Scalar> bounds(size, Scalar(2));
    for (std::size_t i = 0; i < size; ++i)
      for (const double value : {-6.5, 6.5, 6.0, -1.0}) {
        std::vector<Scalar> values(size, Scalar(1));
        values[i] = static_cast<Scalar>(value);
        CAPTURE(i);
        CAPTURE(value);
        CHECK(precise_products<Scalar>().any_exceeds(values.data(), bounds.data(), Scalar(3), size) ==
              (std::abs(value) > 6));
      }
  }
  const std::vector<Scalar> zeros(5);
  CHECK_FALSE(precise_products<Scalar>().any_exceeds(zeros.data(), zeros.data(), Scalar(1), zeros.size()));
}
