#pragma once

#include "widelimit/matrix.hpp"
#include "widelimit/propagation/parameters.hpp"

/// The attention branch in the annealed approximation: numerator and denominator of the softmax are averaged
/// separately. Good while sigma_A^2 (1 - cosine) is below about half the logarithm of the number of tokens.
namespace widelimit::propagation {

/// Norm and gap of tokens that share one norm and one pairwise dot product: q = |X_i|^2 / d, gap = q - p.
struct TokenState {
  double q = 1;
  double gap = 0;

  [[nodiscard]] static TokenState from_cosine(double q, double cosine) { return {q, q * (1 - cosine)}; }
  [[nodiscard]] double p() const { return q - gap; }
  [[nodiscard]] double cosine_gap() const { return gap / q; }  ///< e = 1 - cosine.
  [[nodiscard]] double cosine() const { return 1 - cosine_gap(); }
};

/// The largest gap 1 - cosine at which no single key dominates the softmax, so that the annealed average is
/// good: ln(tokens) / (2 sigma_A^2), infinite for sigma_A = 0. Beyond it, norms after the branch are too
/// large: by a factor 2.5 at tokens = 256, sigma_A = 2 and a gap of 1. Errors: those of attention_core.
[[nodiscard]] double largest_annealed_gap(double tokens, double sigma_A);

/// Norm and gap of the attention output for normalised tokens of cosine 1 - `cosine_gap` (eqs. 10, 11).
[[nodiscard]] TokenState attention_core(double tokens, double sigma_A, double cosine_gap);

/// E[A_ij A_kl] of attention weights, i and k queries, for tokens with the given cosines (eq. 9). Indices are
/// checked (ArgumentError).
[[nodiscard]] double softmax_second_moment(const Matrix<double>& cosines, double sigma_A, Index query_i,
                                           Index key_j, Index query_k, Index key_l);

/// Attention outputs of tokens with any cosines: [n, n] Gram matrix of the branch, divided by d.
///
/// Method    entry ij depends on cosine ij alone (through the tokens up to i and j under a causal mask), by a
///           smooth function of it that is interpolated in Chebyshev nodes, doubled until two degrees agree
///           to 1e-12. Few different cosines are done directly.
/// Cost      O(n^2) times the number of nodes (32 at sigma_A = 1).
/// Errors    ArgumentError unless `cosines` is square with unit diagonal; NumericalError if the
///           interpolation does not settle, which happens at sigma_A above about 15.
[[nodiscard]] Matrix<double> attention_outputs(const Matrix<double>& cosines, double sigma_A,
                                               AttentionMask mask);

}  // namespace widelimit::propagation
