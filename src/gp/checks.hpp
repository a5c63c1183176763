#pragma once

#include <span>
#include <string_view>

#include "widelimit/matrix.hpp"

/// Checks of what enters the inference functions; each throws ArgumentError with `where` in front.
namespace widelimit::gp {

using ConstMatrixRef = Eigen::Ref<const Matrix<double>>;

/// Square, not empty, finite, symmetric within 1e-6 sqrt(K_ii K_jj) (single-precision kernels made entry by
/// entry differ that much), mean diagonal not negative. One pass over the matrix on `threads` threads.
void require_gram(const Matrix<double>& gram, std::string_view where, std::string_view name, int threads);

/// The matrix has this shape; pass -1 for an extent that is free.
void require_shape(const ConstMatrixRef& matrix, Eigen::Index rows, Eigen::Index columns,
                   std::string_view where, std::string_view name);

/// No NaN and no infinity; the message gives the first in row-major order.
void require_finite(const ConstMatrixRef& matrix, std::string_view where, std::string_view name);

/// Targets [n, at least one output], finite.
void require_targets(const Matrix<double>& targets, Eigen::Index n, std::string_view where);

/// Cross Gram matrix [any number of test inputs, n], finite.
void require_cross_gram(const ConstMatrixRef& cross_gram, Eigen::Index n, std::string_view where,
                        std::string_view name);

/// Numbers of some of n training inputs, at least one.
void require_inputs_of(std::span<const Eigen::Index> inputs, Eigen::Index n, std::string_view where);

/// Variances of `n_test` inputs: finite, not negative.
void require_test_variances(const Vector<double>& variances, Eigen::Index n_test, std::string_view where);

/// Gram matrix of `n_test` inputs, of which there may be none.
void require_test_gram(const Matrix<double>& test_gram, Eigen::Index n_test, std::string_view where,
                       int threads);

/// Finite and not negative.
void require_not_negative(double number, std::string_view where, std::string_view name);

/// Positive and finite.
void require_amplitude(double amplitude, std::string_view where);

/// An amplitude that was fitted: NumericalError for 0, that of targets
/// that are all 0, under which nothing has a density.
void require_fitted_amplitude(double amplitude, std::string_view where);

}  // namespace widelimit::gp
