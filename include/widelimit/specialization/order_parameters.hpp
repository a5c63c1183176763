#pragma once

#include "widelimit/matrix.hpp"

namespace widelimit::specialization {

/// Overlaps of heads k (H x D) and spikes k* (F x D).
struct OrderParameters {
  Matrix<double> m;  ///< H x F: k k*^T.
  Matrix<double> q;  ///< H x H: k k^T.
  Matrix<double> p;  ///< F x F: k* k*^T.
  Matrix<double> S;  ///< H x H: q - m p^(-1) m^T, the Gram matrix of the parts orthogonal to the spikes.
  Matrix<double> r;  ///< H x H: the symmetric root of S.
  Matrix<double> m_whitened;  ///< H x F: m p^(-1/2), which obeys the flow with p = I.
};

/// Errors  ArgumentError for shapes that do not match or non-finite entries; NumericalError where p is singular (always
///         for D < F).
[[nodiscard]] OrderParameters order_parameters(const Matrix<double>& k, const Matrix<double>& k_star);

/// The same from q, m and p alone.
[[nodiscard]] OrderParameters order_parameters(const Matrix<double>& q, const Matrix<double>& m,
                                               const Matrix<double>& p);

/// The symmetric root of S, a difference of overlaps: eigenvalues down to -1e-6 of the largest count as 0. Errors and
/// cost: as numerics::symmetric_root().
[[nodiscard]] Matrix<double> overlap_root(const Matrix<double>& S);

/// q_{h h'} / sqrt(q_{hh} q_{h'h'}) for q = m m^T + S. ArgumentError for a head of length 0.
[[nodiscard]] Matrix<double> cosine_similarity(const Matrix<double>& m, const Matrix<double>& S);

}  // namespace widelimit::specialization
