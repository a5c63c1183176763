// Operations on single entries: the backward pass against differences of the forward pass.
#include "kernel/backends/cpu/planes/entrywise_operations.hpp"

#include <doctest/doctest.h>

#include <random>

#include "kernel/backends/cpu/planes/engine_program.hpp"

namespace widelimit::testing::entrywise_operations_test {
namespace {

constexpr std::size_t entries = 5;

/// Some planes of both kernels, or of the NNGP alone.
struct Planes {
  std::vector<std::vector<double>> nngp, ntk;
  bool with_ntk;

  Planes(std::size_t count, bool of_both, std::mt19937& generator) : with_ntk{of_both} {
    for (std::size_t k = 0; k < count; ++k) {
      nngp.push_back(normal_numbers(entries, generator));
      ntk.push_back(normal_numbers(entries, generator));
    }
  }
  Plane<double> operator()(std::size_t k) { return {nngp[k].data(), with_ntk ? ntk[k].data() : nullptr}; }
};

double& number_of(SumNode& sum, std::size_t k) { return sum.factors[k]; }
double& number_of(ProductNode& product, std::size_t /*k*/) { return product.factor; }

/// Compares all derivatives of L = <after, the result> with differences, which are exact where L is linear in every
/// single number.
template <EntrywiseOperation Node>
void check_adjoints(Node node, std::size_t numbers, std::size_t count, bool with_ntk) {
  CAPTURE(count);
  CAPTURE(with_ntk);
  std::mt19937 generator(4);
  Planes before(count, with_ntk, generator), after(1, with_ntk, generator), result(1, with_ntk, generator);
  const auto source = [&](std::size_t k) { return before(k); };
  const auto product_with = [&](const Plane<double>& plane) {
    double sum = 0;
    for (std::size_t n = 0; n < entries; ++n)
      sum += after.nngp[0][n] * plane.nngp[n] + (with_ntk ? after.ntk[0][n] * plane.ntk[n] : 0);
    return sum;
  };
  const auto loss = [&] {
    evaluate_entries(node, source, count, entries, result(0));
    return product_with(result(0));
  };
  const auto slope = [&](double& number) {
    const double value = number;
    number = value + 1;
    const double above = loss();
    number = value - 1;
    const double below = loss();
    number = value;
    return (above - below) / 2;
  };
  for (std::size_t k = 0; k < count; ++k) {
    std::vector<double> of_nngp(entries, 3), of_ntk(entries, 3);
    add_entry_adjoint(node, source, count, k, after(0), entries,
                      Plane<double>{of_nngp.data(), with_ntk ? of_ntk.data() : nullptr});
    for (std::size_t n = 0; n < entries; ++n) {
      CHECK(of_nngp[n] - 3 == doctest::Approx(slope(before.nngp[k][n])).epsilon(1e-12).scale(1));
      CHECK(of_ntk[n] - 3 == doctest::Approx(with_ntk ? slope(before.ntk[k][n]) : 0).epsilon(1e-12).scale(1));
    }
  }
  std::size_t found = 0;
  static_cast<void>(loss());
  Planes copy = result;
  for_each_number(node, source, copy(0), [&](std::size_t number, const Plane<double>& of, double divisor) {
    REQUIRE(number == found++);
    CHECK(product_with(of) / divisor ==
          doctest::Approx(slope(number_of(node, number))).epsilon(1e-12).scale(1));
  });
  CHECK(found == numbers);
}

TEST_CASE("entrywise operations: one, two and three planes, with the ntk and without") {
  for (const std::size_t count : {1u, 2u, 3u})
    for (const bool with_ntk : {true, false}) {
      check_adjoints(ProductNode{1.3}, 1, count, with_ntk);
      SumNode sum;
      for (std::size_t k = 0; k < count; ++k) sum.factors.push_back(0.7 - 0.4 * static_cast<double>(k));
      check_adjoints(sum, count, count, with_ntk);
    }
}

TEST_CASE("PackedArrays: auxiliary arrays one after the other, the variances last") {
  const std::vector<double> left{1, 2, 3, 4, 5, 6}, right{7, 8, 9, 10, 11, 12};
  const PackedArrays<double> arrays(left.data(), right.data(), 2, 2);
  CHECK(arrays.left[1][0] == 3);
  CHECK(arrays.right[0][1] == 8);
  CHECK(arrays.left_variance[1] == 6);
  CHECK(arrays.right_variance[0] == 11);
}

}  // namespace
}  // namespace widelimit::testing::entrywise_operations_test
