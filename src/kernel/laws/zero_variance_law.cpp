#include "kernel/laws/zero_variance_law.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernel/laws/larger.hpp"

namespace widelimit {
namespace {

/// NNGP and NTK after a stage.
using Entry = std::array<double, 2>;

/// The auxiliary numbers of a single position.
template <typename Scalar>
struct Prepared {
  Prepared(const RowStage& stage, double variance) : numbers(stage.auxiliary_count()) {
    std::vector<Scalar*> arrays;
    for (Scalar& number : numbers) {
      arrays.push_back(&number);
      rows.push_back(&number);
    }
    const auto narrow = static_cast<Scalar>(variance);
    stage.prepare(&narrow, 1, arrays.data());
  }
  std::vector<Scalar> numbers;
  std::vector<const Scalar*> rows;
};

/// The kernels of two uncorrelated positions with an NTK of 1, as layers with biases in the standard parametrisation
/// have it, after the stage.
template <typename Scalar>
Entry behind(const RowStage& stage, double p, double q) {
  const Prepared<Scalar> left(stage, p), right(stage, q);
  Scalar nngp = 0, ntk = 1;
  stage.apply(numerics::DualRow<Scalar>{&nngp, &ntk, left.rows.data(), right.rows.data(), 1});
  return {static_cast<double>(nngp), static_cast<double>(ntk)};
}

/// The distance of at(0) from the limit of at(p), the kernels after the stage at a variance p. There is a limit if p
/// = 1e-12 and 1e-9 agree.
template <typename At>
double distance_to_limit(const At& at) {
  constexpr double settled = 1e-3;
  const Entry zero = at(0.0), near = at(1e-12), far = at(1e-9);
  double largest = 0;
  for (std::size_t k = 0; k < zero.size(); ++k) {
    const double scale = std::max({std::abs(near[k]), std::abs(far[k]), 1e-3});
    if (!(std::abs(near[k] - far[k]) <= settled * scale)) continue;
    largest = larger(largest, std::abs(zero[k] - near[k]) / scale);
  }
  return largest;
}

template <typename Scalar>
double deviation(const RowStage& stage) {
  const double one = distance_to_limit([&](double p) { return behind<Scalar>(stage, p, 0.7); }),
               other = distance_to_limit([&](double q) { return behind<Scalar>(stage, 1.6, q); }),
               both = distance_to_limit([&](double p) { return behind<Scalar>(stage, p, p); });
  return larger(one, larger(other, both));
}

}  // namespace

double zero_variance_deviation(const RowStage& stage) {
  return larger(deviation<float>(stage), deviation<double>(stage));
}

double zero_variance_deviation(const Graph& graph) {
  double largest = 0;
  for (const Node& node : graph.nodes)
    if (const RowStage* row = row_stage_of(node.operation))
      largest = larger(largest, zero_variance_deviation(*row));
  return largest;
}

}  // namespace widelimit
