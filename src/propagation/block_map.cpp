#include "widelimit/propagation/block_map.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <optional>

#include "numerics/finite_result.hpp"
#include "propagation/angle_interpolation.hpp"
#include "propagation/arguments.hpp"
#include "propagation/skips.hpp"
#include "propagation/square.hpp"
#include "propagation/token_gram.hpp"
#include "widelimit/numerics/memory.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit::propagation {

namespace {

constexpr double state_rounding = 1e-12;

/// Exactly 1 on the diagonal, within [-1, 1] elsewhere.
Matrix<double> cosines_of(const Matrix<double>& gram) {
  Matrix<double> cosines(gram.rows(), gram.cols());
  for (Index i = 0; i < gram.rows(); ++i) {
    cosines(i, i) = 1;
    for (Index j = 0; j < i; ++j)
      cosines(i, j) = cosines(j, i) =
          std::clamp(gram(i, j) / (std::sqrt(gram(i, i)) * std::sqrt(gram(j, j))), -1.0, 1.0);
  }
  return cosines;
}

/// Jacobian of a residual block, from the slopes of its branch's norm and gap over e = gap / q: de/dq = -e / q and
/// de/dgap = 1 / q.
StateJacobian residual_jacobian(const TokenState& state, double rest, double branch, double norm_slope,
                                double gap_slope) {
  const double e = state.cosine_gap();
  StateJacobian result = StateJacobian::Identity() * rest;
  result(0, 0) -= branch * norm_slope * e / state.q;
  result(0, 1) += branch * norm_slope / state.q;
  result(1, 0) -= branch * gap_slope * e / state.q;
  result(1, 1) += branch * gap_slope / state.q;
  return result;
}

}  // namespace

BlockMap::BlockMap(Parameters parameters) : parameters_{std::move(parameters)}, mlp_{parameters_} {}

void BlockMap::require_state(const char* where, const TokenState& state) const {
  require_positive(where, "q", state.q);
  const auto n = static_cast<double>(parameters_.tokens);
  if (!(state.cosine_gap() >= 0 && state.cosine_gap() <= n / (n - 1) * (1 + state_rounding)))
    throw ArgumentError(fmt::format("{}: the cosine must lie in [-1 / (n - 1), 1] = [{}, 1], got {}", where,
                                    -1 / (n - 1), state.cosine()));
}

void BlockMap::require_norm_after(Index block, double norm) const {
  numerics::finite_result(
      "BlockMap::trajectory", fmt::format("the squared norm after block {}", block), norm,
      fmt::format("take fewer blocks, or factors of the skip connections below {} and {}",
                  std::sqrt(squared_skip_A(parameters_)), std::sqrt(squared_skip_M(parameters_))));
}

TokenState BlockMap::attention(const TokenState& state) const {
  require_state("BlockMap::attention", state);
  const TokenState core =
      attention_core(static_cast<double>(parameters_.tokens), parameters_.sigma_A, state.cosine_gap());
  const double branch = square(parameters_.alpha_A), rest = squared_skip_A(parameters_);
  return {rest * state.q + branch * core.q, rest * state.gap + branch * core.gap};
}

TokenState BlockMap::mlp(const TokenState& state) const {
  require_state("BlockMap::mlp", state);
  const double branch = square(parameters_.alpha_M), rest = squared_skip_M(parameters_);
  return {rest * state.q + branch * mlp_.statistics().k_out,
          rest * state.gap + branch * mlp_.output_gap(state.cosine_gap())};
}

TokenState BlockMap::block(const TokenState& state) const { return mlp(attention(state)); }

std::vector<TokenState> BlockMap::trajectory(const TokenState& start, Index blocks) const {
  require_at_least("BlockMap::trajectory", "blocks", blocks, 0);
  require_state("BlockMap::trajectory", start);
  std::vector<TokenState> states{start};
  for (Index t = 0; t < blocks; ++t) {
    states.push_back(block(states.back()));
    require_norm_after(t + 1, states.back().q);
  }
  return states;
}

StateJacobian BlockMap::attention_jacobian(const TokenState& state) const {
  require_state("BlockMap::attention_jacobian", state);
  const double n = static_cast<double>(parameters_.tokens), s = square(parameters_.sigma_A);
  const double e = state.cosine_gap();
  // These are the weights of the other tokens for equal and for different queries, w(1) and w(c) of
  // docs/theory/signal-propagation.md, section 2.
  const double equal = (n - 1) * std::exp(-s * e), different = (n - 1) * std::exp(-s * e * (1 - e));
  // These are the shares of the other tokens. For different queries the weight overflows where scores are
  // sharp, its inverse does not.
  const double phi_equal = equal / (1 + equal), phi_different = 1 / (1 + 1 / different);
  const double equal_slope = -s * phi_equal / (1 + equal);
  const double different_slope = -s * (1 - 2 * e) * phi_different / (1 + different);
  const double core_gap = attention_core(n, parameters_.sigma_A, e).gap;
  const double norm_slope = -(phi_equal + e * equal_slope);
  // core_gap / e is phi(c) - phi(1), which vanishes at the collapsed point.
  const double gap_slope = (e > 0 ? core_gap / e : 0) + e * (different_slope - equal_slope);
  return residual_jacobian(state, squared_skip_A(parameters_), square(parameters_.alpha_A), norm_slope,
                           gap_slope);
}

StateJacobian BlockMap::mlp_jacobian(const TokenState& state) const {
  require_state("BlockMap::mlp_jacobian", state);
  return residual_jacobian(state, squared_skip_M(parameters_), square(parameters_.alpha_M), 0,
                           mlp_.slope(state.cosine_gap()));
}

StateJacobian BlockMap::block_jacobian(const TokenState& state) const {
  return mlp_jacobian(attention(state)) * attention_jacobian(state);
}

std::vector<TokenState> mean_trajectory(const BlockMap& map, const TokenState& start, Index blocks,
                                        AttentionMask mask, const RunControl& run) {
  if (mask == AttentionMask::full) return map.trajectory(start, blocks);
  // Checks the start without the Gram matrix, whose eigenvalues would take n^3 operations.
  static_cast<void>(map.trajectory(start, 0));
  require_at_least("BlockMap::trajectory", "blocks", blocks, 0);
  const Index n = map.parameters().tokens;
  const auto entries = static_cast<double>(n) * static_cast<double>(n);
  constexpr double matrices = 10;  // Of a block, its attention and its MLP at once.
  numerics::require_memory("tokens", fmt::format("a trajectory of {} tokens under a causal mask", n),
                           matrices * entries * sizeof(double), "take fewer of them");
  // Under a mask tokens differ, so that the whole Gram matrix is iterated and then averaged.
  Matrix<double> gram = Matrix<double>::Constant(n, n, start.p());
  gram.diagonal().setConstant(start.q);
  const StopRequest stop(run.stop);
  std::vector<TokenState> means;
  for (Index block = 0; block <= blocks; ++block) {
    stop.check();
    if (block > 0) {
      gram = map.attention(gram, mask);
      stop.check();
      gram = map.mlp(gram);
      map.require_norm_after(block, gram.diagonal().sum());
      if (run.progress) run.progress(block, blocks);
    }
    const auto tokens = static_cast<double>(n);
    const double q = gram.trace() / tokens, p = (gram.sum() - gram.trace()) / (tokens * (tokens - 1));
    means.push_back({q, q - p});
  }
  return means;
}

Eigen::Matrix2d in_norm_and_product(const StateJacobian& jacobian) {
  const Eigen::Matrix2d change{{1, 0}, {1, -1}};  // (q, gap) to (q, p), its own inverse
  return change * jacobian * change;
}

Matrix<double> BlockMap::attention(const Matrix<double>& gram, AttentionMask mask) const {
  require_gram("BlockMap::attention", gram);
  const double branch = square(parameters_.alpha_A);
  return squared_skip_A(parameters_) * gram +
         branch * attention_outputs(cosines_of(gram), parameters_.sigma_A, mask);
}

Matrix<double> BlockMap::mlp(const Matrix<double>& gram) const {
  require_gram("BlockMap::mlp", gram);
  const double branch = square(parameters_.alpha_M), k_out = mlp_.statistics().k_out;
  const Matrix<double> cosines = cosines_of(gram);
  const auto output_gap = [this](double gap) { return mlp_.output_gap(gap); };
  // Cosines repeat in Gram matrices of few groups, and the MLP is expensive: it is evaluated once for each.
  constexpr std::size_t most_direct = 1024;
  std::map<double, double> gaps{{1, 0}};  // Of each different cosine.
  std::optional<AngleInterpolation> interpolation;
  bool is_settled = true;
  return squared_skip_M(parameters_) * gram + branch * cosines.unaryExpr([&](double cosine) {
    if (interpolation) return k_out - (*interpolation)(1 - cosine);
    const auto [entry, is_new] = gaps.try_emplace(cosine, 0);
    if (is_new) entry->second = output_gap(1 - cosine);
    // Where they do not repeat, one polynomial serves all; maps that have none are evaluated on.
    if (gaps.size() > most_direct && is_settled) {
      interpolation = AngleInterpolation::of(output_gap);
      is_settled = interpolation.has_value();
    }
    return k_out - entry->second;
  });
}

Matrix<double> BlockMap::block(const Matrix<double>& gram, AttentionMask mask) const {
  return mlp(attention(gram, mask));
}

std::vector<Matrix<double>> BlockMap::trajectory(const Matrix<double>& start, Index blocks,
                                                 AttentionMask mask) const {
  constexpr const char* where = "BlockMap::trajectory";
  require_at_least(where, "blocks", blocks, 0);
  require_gram(where, start);
  require_semidefinite(where, start);
  std::vector<Matrix<double>> grams{start};
  for (Index t = 0; t < blocks; ++t) {
    grams.push_back(block(grams.back(), mask));
    require_norm_after(t + 1, grams.back().diagonal().sum());
  }
  return grams;
}

}  // namespace widelimit::propagation
