// Derivatives by the numbers of linear operations, against differences.
#include "kernel/backends/cpu/backward/planes/scalar_adjoints.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "kernel/backends/cpu/planes/engine_program.hpp"

namespace widelimit::testing::scalar_adjoints_test {
namespace {

constexpr std::size_t entries = 1300;  // longer than what is summed up at once

/// Numbers of both kernels.
struct KernelRow {
  std::vector<double> nngp, ntk;

  explicit KernelRow(std::mt19937& generator)
      : nngp{normal_numbers(entries, generator)}, ntk{normal_numbers(entries, generator)} {}
  [[nodiscard]] Plane<double> plane() { return {nngp.data(), ntk.data()}; }
};

/// L = <adjoint, row>
double loss(const KernelRow& adjoint, const KernelRow& row) {
  double sum = 0;
  for (std::size_t n = 0; n < entries; ++n)
    sum += adjoint.nngp[n] * row.nngp[n] + adjoint.ntk[n] * row.ntk[n];
  return sum;
}

/// The losses are linear in every number: any step is exact.
template <typename Loss>
double slope(const Loss& loss_at, double value) {
  return loss_at(value + 0.5) - loss_at(value - 0.5);
}

Graph graph_with(Operation operation) {
  Graph graph;
  graph.nodes = {
      {InputNode{}, {}, "input"}, {InputNode{}, {}, "input"}, {std::move(operation), {0, 1}, "layer"}};
  return graph;
}

TEST_CASE("ScalarAdjoints: variances of weights and biases, with trained weights and without") {
  std::mt19937 generator(1);
  KernelRow source(generator), adjoint(generator), result(generator);
  for (const auto weights : {AffineNode::Weights::trained, AffineNode::Weights::none}) {
    const auto loss_at = [&](double weight, double bias) {
      for (std::size_t n = 0; n < entries; ++n) {
        result.nngp[n] = weight * source.nngp[n] + bias;
        const double fresh = weights == AffineNode::Weights::trained ? result.nngp[n] : 0;
        result.ntk[n] = fresh + weight * source.ntk[n];
      }
      return loss(adjoint, result);
    };
    const AffineNode node{{}, 1.3, 0.4, weights};
    static_cast<void>(loss_at(1.3, 0.4));
    ScalarAdjoints scalars(graph_with(node));
    scalars.add(2, AffineNumbers{1.3, 0.4, weights == AffineNode::Weights::trained}, result.plane(),
                adjoint.plane(), entries);
    REQUIRE(scalars.values().size() == 2);
    const std::vector<double> found = scalars.values();
    CHECK(found[0] == doctest::Approx(slope([&](double w) { return loss_at(w, 0.4); }, 1.3)).epsilon(1e-10));
    CHECK(found[1] == doctest::Approx(slope([&](double b) { return loss_at(1.3, b); }, 0.4)).epsilon(1e-10));
  }
}

TEST_CASE("ScalarAdjoints: factors of sums and products, of both kernels and of the nngp alone") {
  std::mt19937 generator(2);
  KernelRow first(generator), second(generator), adjoint(generator);
  const SumNode sum{{0.3, 2}};
  ScalarAdjoints of_sum(graph_with(sum));
  of_sum.add(2, 1, 1.0, second.plane(), adjoint.plane(), entries);
  CHECK(of_sum.values()[0] == 0);
  CHECK(of_sum.values()[1] == doctest::Approx(loss(adjoint, second)));
  const ProductNode product{1.7};
  ScalarAdjoints of_product(graph_with(product));
  of_product.add(2, 0, product.factor, first.plane(), adjoint.plane(), entries);
  CHECK(of_product.values()[0] == doctest::Approx(loss(adjoint, first) / 1.7));
  // Without the NTK: what stands there is not read.
  ScalarAdjoints nngp_only(graph_with(sum));
  nngp_only.add(2, 0, 1.0, Plane<double>{first.nngp.data(), nullptr},
                Plane<double>{adjoint.nngp.data(), nullptr}, entries);
  std::fill(adjoint.ntk.begin(), adjoint.ntk.end(), 0.0);
  CHECK(nngp_only.values()[0] == doctest::Approx(loss(adjoint, first)));
  nngp_only.add(of_sum);
  CHECK(nngp_only.values()[1] == of_sum.values()[1]);
}

}  // namespace
}  // namespace widelimit::testing::scalar_adjoints_test
