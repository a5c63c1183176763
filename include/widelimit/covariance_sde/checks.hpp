#pragma once

#include <optional>
#include <string_view>

#include "widelimit/covariance_sde/ensemble.hpp"
#include "widelimit/covariance_sde/finite_network.hpp"
#include "widelimit/covariance_sde/model.hpp"
#include "widelimit/matrix.hpp"

/// What simulations and networks refuse, for programs that read a configuration and want to name its fields before
/// anything is computed. `where` stands before every message; all errors are ArgumentErrors.
namespace widelimit::covariance_sde {

/// Throws unless all coefficients of a model are finite, and drifts and noises at least 0.
void require_model(std::string_view where, const SdeModel& model);

/// Throws unless `v` is a covariance: not empty, square, finite, symmetric to 1e-12 and positive semidefinite to 1e-10
/// of its largest entry or eigenvalue.
void require_covariance(std::string_view where, const Matrix<double>& v);

/// Throws if a token has the variance 0, and so no correlation with any other. `v` is a covariance.
void require_variances(std::string_view where, const Matrix<double>& v);

/// Throws unless paths can start at the covariance v0: inside the bounds, with positive variances, and with a Cholesky
/// factor up to rounding.
void require_start(std::string_view where, const Matrix<double>& v0, const StopBounds& bounds);

/// Why a path in state v would end now, if it would.
[[nodiscard]] std::optional<PathEnd> end_of_path(const Matrix<double>& v, const StopBounds& bounds);

/// Throws unless a half step of the ReLU drift keeps the cone: it mixes V with a kernel of weight
/// step relu_drift (c_+ - c_-)^2 / 8, which must not exceed 1.
void require_step_size(std::string_view where, const SdeModel& model, double step);

/// Throws unless the network is valid for so many tokens.
void require_network(std::string_view where, const NetworkSpec& network, Index tokens);

}  // namespace widelimit::covariance_sde
