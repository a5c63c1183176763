#pragma once

#include <vector>

#include "widelimit/propagation/attention_map.hpp"
#include "widelimit/propagation/mlp_map.hpp"
#include "widelimit/run_control.hpp"

namespace widelimit::propagation {

/// d(q', gap') / d(q, gap).
using StateJacobian = Eigen::Matrix2d;

/// One transformer block acting on norms and dot products of tokens.
///
/// Errors  the constructor as require_parameters; all others ArgumentError for a state with q <= 0 or with a
///         cosine outside [-1 / (n - 1), 1], for a Gram matrix that is not symmetric (1e-12), has a zero on
///         the diagonal or a cosine outside [-1, 1] (1e-10). trajectory() also wants it positive
///         semidefinite (1e-10).
class BlockMap {
 public:
  explicit BlockMap(Parameters parameters);

  [[nodiscard]] const Parameters& parameters() const { return parameters_; }
  [[nodiscard]] const MlpMap& mlp_map() const { return mlp_; }

  /// Permutation-symmetric tokens.
  [[nodiscard]] TokenState attention(const TokenState& state) const;
  [[nodiscard]] TokenState mlp(const TokenState& state) const;
  [[nodiscard]] TokenState block(const TokenState& state) const;

  /// The state at the start and after each block: blocks + 1 states.
  [[nodiscard]] std::vector<TokenState> trajectory(const TokenState& start, Index blocks) const;

  [[nodiscard]] StateJacobian attention_jacobian(const TokenState& state) const;
  [[nodiscard]] StateJacobian mlp_jacobian(const TokenState& state) const;
  [[nodiscard]] StateJacobian block_jacobian(const TokenState& state) const;

  /// Any tokens: [m, m] Gram matrix X X^T / d in and out; m need not be parameters().tokens. For a few tokens
  /// at wide angles, where the annealed average is no longer good, outputs can have negative eigenvalues.
  [[nodiscard]] Matrix<double> attention(const Matrix<double>& gram,
                                         AttentionMask mask = AttentionMask::full) const;
  [[nodiscard]] Matrix<double> mlp(const Matrix<double>& gram) const;
  [[nodiscard]] Matrix<double> block(const Matrix<double>& gram,
                                     AttentionMask mask = AttentionMask::full) const;
  /// At the start and after each block.
  [[nodiscard]] std::vector<Matrix<double>> trajectory(const Matrix<double>& start, Index blocks,
                                                       AttentionMask mask = AttentionMask::full) const;

  /// NumericalError unless the norm after a block is in the range of double.
  void require_norm_after(Index block, double norm) const;

 private:
  void require_state(const char* where, const TokenState& state) const;

  Parameters parameters_;
  MlpMap mlp_;
};

/// Mean squared norm of the tokens and mean dot product of pairs at the start, where all are alike, and
/// after each block. Under a causal mask tokens differ from then on, and whole Gram matrices are carried
/// along: O(n^2) for each block, and memory for ten of them (ArgumentError names the tokens). Errors are those of
/// BlockMap::trajectory. Progress counts blocks, and a stop is noticed within half of one.
[[nodiscard]] std::vector<TokenState> mean_trajectory(const BlockMap& map, const TokenState& start,
                                                      Index blocks, AttentionMask mask,
                                                      const RunControl& run = {});

/// The same derivative in the basis (q, p).
[[nodiscard]] Eigen::Matrix2d in_norm_and_product(const StateJacobian& jacobian);

}  // namespace widelimit::propagation
