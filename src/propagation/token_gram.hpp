#pragma once

#include "widelimit/matrix.hpp"

/// Gram matrices of tokens, X X^T / width.
namespace widelimit::propagation {

/// Throws ArgumentError unless it is square, finite, symmetric to 1e-12, of positive diagonal and with cosines in [-1,
/// 1] to 1e-10.
void require_gram(const char* where, const Matrix<double>& gram);

/// Throws ArgumentError unless it is positive semidefinite, to 1e-10 of its largest diagonal entry.
void require_semidefinite(const char* where, const Matrix<double>& gram);

}  // namespace widelimit::propagation
