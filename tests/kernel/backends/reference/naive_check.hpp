#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "kernel/backends/reference/naive_kernel.hpp"
#include "widelimit/kernel/gram.hpp"

/// Gram matrices against the naive kernel.
namespace widelimit::testing {

/// With its graph or mask.
inline NaiveInput naive_input(const Inputs<double>& inputs, Index i) {
  NaiveInput input{inputs.shape(i), RealMatrix(position_count(inputs.shape(i)), inputs.channels())};
  std::copy(inputs[i].begin(), inputs[i].end(), input.features.data());
  if (const InputGraph* graph = inputs.graph(i); graph != nullptr) {
    input.adjacency = RealMatrix::Zero(graph->nodes(), graph->nodes());
    for (Index source = 0; source < graph->nodes(); ++source)
      for (Index target = 0; target < graph->nodes(); ++target)
        input.adjacency(source, target) = graph->weight(source, target);
  }
  for (const std::uint8_t counts : inputs.mask(i)) input.mask.push_back(counts != 0);
  return input;
}

/// Some eps of a double. Where erf's derivative or cos sees differences of variances, it is multiplied by
/// these; products of branches make them as large as 1e6.
inline constexpr double rounding = 1e-15;

/// Deviations relative to the geometric mean of the two inputs' own kernels: entries near 0 are sums that
/// cancel.
inline void check_against(const NaiveKernel& naive, const Inputs<double>& x1, const Inputs<double>& x2,
                          bool one_batch, const GramResult<double>& computed, double tolerance) {
  for (Index i = 0; i < x1.size(); ++i)
    for (Index j = 0; j < x2.size(); ++j) {
      const NaiveInput left = naive_input(x1, i), right = naive_input(x2, j);
      const NaiveValues expected = naive(left, right, one_batch && i == j);
      const NaiveValues of_left = naive(left, left, true), of_right = naive(right, right, true);
      const Real nngp_scale = std::sqrt(of_left.nngp * of_right.nngp),
                 ntk_scale = std::sqrt(of_left.ntk * of_right.ntk);
      const double allowed = std::max(tolerance, rounding * static_cast<double>(expected.largest_variance));
      CAPTURE(i);
      CAPTURE(j);
      // Kernels that are 0, of masks and pads that leave nothing, are exact.
      CHECK(std::abs(computed.nngp(i, j) - expected.nngp) <= allowed * nngp_scale);
      CHECK(std::abs(computed.ntk(i, j) - expected.ntk) <= allowed * ntk_scale);
    }
}

/// Untied attention makes all positions of an input equal, and positions that read nothing but pads are equal in all
/// inputs. Their correlation of 1 then comes out of sums in
/// different orders, eps too low, and the angle of ReLU's derivative is its root: the NTK is exact to
/// sqrt(eps) only.
inline double tolerance_for(const std::string& network) {
  const bool has_equal_positions =
      network.find("tied=false") != std::string::npos || network.find("pads=") != std::string::npos;
  return has_equal_positions ? 1e-7 : 1e-10;
}

}  // namespace widelimit::testing
