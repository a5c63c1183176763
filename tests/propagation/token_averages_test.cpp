#include "propagation/token_averages.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "propagation/parameters_with.hpp"
#include "support/error_message.hpp"
#include "widelimit/error.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/propagation/exponents.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using widelimit::propagation_test::parameters_with;

namespace {

/// The powers themselves, from the whole matrix; centred and scaled after every factor.
AveragePowers dense_powers(Index tokens, Index depth) {
  AveragePowers result;
  for (const bool differences : {false, true}) {
    Matrix<double> power = Matrix<double>::Identity(tokens, tokens);
    double scale = 0;
    for (Index k = 0; k <= depth; ++k) {
      if (k > 0) {
        for (Index i = 1; i < tokens; ++i) power.row(i) += power.row(i - 1);
        for (Index i = 1; i < tokens; ++i) power.row(i) /= static_cast<double>(i + 1);
      }
      if (differences) power.rowwise() -= power.colwise().mean().eval();
      const double norm = power.norm();
      scale += 2 * std::log(norm);
      power /= norm;
      (differences ? result.differences : result.all).push_back(scale);
    }
  }
  return result;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t k = 0; k < a.size(); ++k) largest = std::max(largest, std::abs(a[k] - b[k]));
  return largest;
}

}  // namespace

TEST_CASE("token averages: powers of a sampled matrix are those of the whole one") {
  struct Size {
    Index tokens, depth;
  };
  // On both sides of the sizes from which columns are left out.
  for (const Size& size : {Size{2, 5}, Size{3, 40}, Size{32, 8}, Size{33, 8}, Size{64, 8}, Size{65, 8},
                           Size{96, 16}, Size{97, 16}, Size{128, 700}, Size{333, 60}, Size{1000, 16}}) {
    CAPTURE(size.tokens);
    const AveragePowers expected = dense_powers(size.tokens, size.depth);
    const AveragePowers found = average_powers(size.tokens, size.depth);
    CHECK(largest_difference(found.all, expected.all) < 2e-11);
    CHECK(largest_difference(found.differences, expected.differences) < 2e-11);
  }
}

TEST_CASE("token averages: two factors of a long context, summed token by token") {
  // (M^2)_ij = (H_i - H_{j-1}) / i, whose sums over i and j need one pass.
  for (const Index tokens : {Index{8000}, Index{128'000}, Index{1'000'000}}) {
    const auto n = static_cast<long double>(tokens);
    std::vector<long double> harmonic{0}, tail(static_cast<std::size_t>(tokens) + 2, 0), weighted = tail;
    for (Index i = 1; i <= tokens; ++i) harmonic.push_back(harmonic.back() + 1 / static_cast<long double>(i));
    long double one = 0, two = 0, sum = 0, sum_of_squares = 0;
    for (std::size_t i = 1; i < harmonic.size(); ++i) {
      // Sums over j <= i of H_{j-1} and its square.
      sum += harmonic[i - 1];
      sum_of_squares += harmonic[i - 1] * harmonic[i - 1];
      const auto place = static_cast<long double>(i);
      one += 1 / place;
      two += (place * harmonic[i] * harmonic[i] - 2 * harmonic[i] * sum + sum_of_squares) / (place * place);
    }
    // Means of columns: of one factor (H_n - H_{j-1}) / n, of two the sum over i >= j of (H_i - H_{j-1}) / i, over n.
    long double mean_one = 0, mean_two = 0;
    for (std::size_t j = harmonic.size() - 1; j >= 1; --j) {
      const auto place = static_cast<long double>(j);
      tail[j] = tail[j + 1] + 1 / place;
      weighted[j] = weighted[j + 1] + harmonic[j] / place;
      const long double first = (harmonic.back() - harmonic[j - 1]) / n,
                        second = (weighted[j] - harmonic[j - 1] * tail[j]) / n;
      mean_one += first * first;
      mean_two += second * second;
    }
    const AveragePowers& found = average_powers(tokens, 2);
    CHECK(std::abs(found.all[1] - static_cast<double>(std::log(one))) < 1e-11);
    CHECK(std::abs(found.all[2] - static_cast<double>(std::log(two))) < 1e-11);
    CHECK(std::abs(found.differences[1] - static_cast<double>(std::log(one - n * mean_one))) < 1e-10);
    CHECK(std::abs(found.differences[2] - static_cast<double>(std::log(two - n * mean_two))) < 1e-10);
  }
}

TEST_CASE("token averages: more tokens than anybody waits for are an error") {
  CHECK(testing::error_message<ArgumentError>([] {
          return causal_gradient_exponent(parameters_with(0.5, 0.5, 2, 20'000'000), 4);
        }) == "exponents of a causal mask: expected at most 10000000 tokens, got 20000000");
}
