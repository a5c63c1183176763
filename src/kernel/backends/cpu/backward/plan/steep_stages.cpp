#include "kernel/backends/cpu/backward/plan/steep_stages.hpp"

#include <cmath>

#include "widelimit/error.hpp"

namespace widelimit {
namespace {

/// The adjoint of c at two positions of variance 1 with covariance c and an NTK of 1, given those after the stage.
double adjoint_at(const RowStage& stage, double c, double after_nngp, double after_ntk) {
  const double variance = 1, ntk = 1;
  std::vector<double> auxiliary(stage.auxiliary_count());
  std::vector<double*> written;
  for (double& number : auxiliary) written.push_back(&number);
  stage.prepare(&variance, 1, written.data());
  const std::vector<const double*> read(written.begin(), written.end());
  double of_left = 0, of_right = 0;
  stage.apply_adjoint(numerics::AdjointRow<double>{&c, &ntk, &variance, &variance, read.data(), read.data(),
                                                   &after_nngp, &after_ntk, &of_left, &of_right, 1});
  return std::abs(after_nngp);
}

/// A slope like 1 / sqrt(1 - c) grows by the factor 32 between these correlations; one that is bounded hardly changes.
bool grows(const RowStage& stage, double after_nngp, double after_ntk) {
  constexpr double far = 1e-3, near = 1e-6, least_growth = 8;
  const auto slope = [&](double distance) { return adjoint_at(stage, 1 - distance, after_nngp, after_ntk); };
  return slope(near) > least_growth * slope(far);
}

}  // namespace

Steepness steepness_of(const RowStage& stage) {
  if (!stage.has_adjoint()) return Steepness::bounded;
  try {
    if (grows(stage, 1, 0)) return Steepness::of_both;
    if (grows(stage, 0, 1)) return Steepness::of_ntk;
  } catch (const Error&) {
    // The error of a stage that cannot take such variances, or has no NTK, is that of whoever asks for them.
  }
  return Steepness::bounded;
}

std::vector<bool> steep_nodes(const Graph& graph, bool with_ntk) {
  std::vector<bool> steep;
  for (const Node& node : graph.nodes) {
    const RowStage* row = row_stage_of(node.operation);
    const Steepness steepness = row == nullptr ? Steepness::bounded : steepness_of(*row);
    steep.push_back(steepness == Steepness::of_both || (with_ntk && steepness == Steepness::of_ntk));
  }
  return steep;
}

}  // namespace widelimit
