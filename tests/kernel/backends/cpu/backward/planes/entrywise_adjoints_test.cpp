// The backward pass through operations on single entries, against differences.
#include "kernel/backends/cpu/backward/planes/entrywise_adjoints.hpp"

#include <doctest/doctest.h>

#include <random>

#include "kernel/backends/cpu/planes/engine_program.hpp"

namespace widelimit::testing::entrywise_adjoints_test {
namespace {

constexpr std::size_t entries = 5;

TEST_CASE("add_factor_adjoint: products of one, two and three factors, with the ntk and without") {
  std::mt19937 generator(4);
  for (const std::size_t count : {1u, 2u, 3u})
    for (const bool with_ntk : {true, false}) {
      CAPTURE(count);
      CAPTURE(with_ntk);
      const ProductNode node{1.3};
      std::vector<std::vector<double>> nngp, ntk;
      for (std::size_t k = 0; k < count; ++k) {
        nngp.push_back(normal_numbers(entries, generator));
        ntk.push_back(normal_numbers(entries, generator));
      }
      const auto source = [&](std::size_t k) {
        return Plane<double>{nngp[k].data(), with_ntk ? ntk[k].data() : nullptr};
      };
      std::vector<double> after_nngp = normal_numbers(entries, generator),
                          after_ntk = normal_numbers(entries, generator);
      const auto loss = [&] {
        std::vector<double> value(entries), of_ntk(entries);
        multiply_planes(source, count, node.factor, entries,
                        Plane<double>{value.data(), with_ntk ? of_ntk.data() : nullptr});
        double sum = 0;
        for (std::size_t n = 0; n < entries; ++n)
          sum += after_nngp[n] * value[n] + (with_ntk ? after_ntk[n] * of_ntk[n] : 0);
        return sum;
      };
      // A product is linear in every factor: its differences are exact.
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
        add_factor_adjoint(node, source, count, k,
                           Plane<double>{after_nngp.data(), with_ntk ? after_ntk.data() : nullptr}, entries,
                           Plane<double>{of_nngp.data(), with_ntk ? of_ntk.data() : nullptr});
        for (std::size_t n = 0; n < entries; ++n) {
          CHECK(of_nngp[n] - 3 == doctest::Approx(slope(nngp[k][n])).epsilon(1e-12).scale(1));
          CHECK(of_ntk[n] - 3 == doctest::Approx(with_ntk ? slope(ntk[k][n]) : 0).epsilon(1e-12).scale(1));
        }
      }
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
}  // namespace widelimit::testing::entrywise_adjoints_test
