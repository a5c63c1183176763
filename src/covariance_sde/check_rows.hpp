#pragma once

#include <string>

#include "check/reference_file.hpp"
#include "widelimit/covariance_sde/check_reference.hpp"
#include "widelimit/covariance_sde/model.hpp"
#include "widelimit/matrix.hpp"

/// Rows of a reference check, and reading of the fields its cases share.
namespace widelimit::covariance_sde {

using check::Rows;

inline constexpr double formula_tolerance = 1e-10;

void add_row(Rows& rows, std::string name, double expected, double computed, double tolerance);

/// Every entry to 1e-10 of max(1, largest expected entry).
void add_array_row(Rows& rows, std::string name, const Matrix<double>& expected,
                   const Matrix<double>& computed);

/// Frequencies of an event per path in two samples; the variance of a count is at least the count's
/// (Poisson).
void add_count_row(Rows& rows, std::string name, double expected_count, Index expected_paths,
                   double computed_count, Index computed_paths, double dispersion = 1);

ShapedSlopes read_slopes(const JsonValue& entry);
/// "T_fraction" [a, b] if there, or "T".
double read_horizon(const JsonValue& entry);
/// The SDE of "model" with "gamma_squared", "tau0", "c_plus", "c_minus".
SdeModel read_model(const JsonValue& entry);

/// The sections of the file.
void check_coefficients(const JsonValue& reference, Rows& rows);
void check_given_noise(const JsonValue& reference, Rows& rows);
void check_exact_distributions(const JsonValue& reference, Rows& rows);
void check_sde_quantiles(const JsonValue& reference, const CheckOptions& options, Rows& rows);
void check_networks(const JsonValue& reference, const CheckOptions& options, Rows& rows);

}  // namespace widelimit::covariance_sde
