#pragma once

#include <optional>
#include <vector>

#include "widelimit/propagation/phase_diagram.hpp"

/// Critical parameters by bracketed roots (TOMS 748, to the last digits).
namespace widelimit::propagation {

/// Every value of sigma_w in [0.05, 60], or of alpha_A or alpha_M in (0, 1), at which an exponent vanishes,
/// all else as given (sigma_out follows if shared); ascending. Found by a scan of 64 steps: two closer than
/// that are missed. ArgumentError for another coordinate, and as require_parameters.
[[nodiscard]] std::vector<double> critical_values(Exponent which, Coordinate free,
                                                  const Parameters& parameters,
                                                  const ExponentOptions& options = {});

/// The smallest of them; nothing if there is none. Errors: the same.
[[nodiscard]] std::optional<double> critical_value(Exponent which, Coordinate free,
                                                   const Parameters& parameters,
                                                   const ExponentOptions& options = {});

/// The sigma_w to which a boundary goes as both strengths vanish at the given ratio alpha_A / alpha_M: there
/// f - k_out is the squared ratio on lambda_a = 0 and 1 - 1/n of it on lambda_g = 0. This is as close as the
/// two come to a meeting: on lambda_a = 0 always lambda_g > 0, vanishing with the strengths.
/// Errors: NumericalError if there is none in [0.05, 60] (ReLU).
[[nodiscard]] double small_strength_gain(Exponent which, const Parameters& parameters, double strength_ratio);

/// The kink of lambda_g = 0, where contrasts and mean of the tokens carry equal gradients: the parameters with
/// alpha_A = alpha_M and sigma_w moved to it (`strength` alpha), or alpha_A and alpha_M (alpha_A).
/// Errors: ArgumentError for another strength; NumericalError if there is no kink.
[[nodiscard]] Parameters gradient_kink(Coordinate strength, const Parameters& parameters,
                                       const ExponentOptions& options = {});

/// The parameters that the recipe may choose.
enum class FreeParameters {
  strengths_and_gain,  ///< alpha_A, alpha_M at their given ratio, and sigma_w.
  gain,                ///< sigma_w.
  mlp_strength,        ///< alpha_M.
  attention_strength   ///< alpha_A.
};

/// Parameters with their effect on angles and gradients at the given depth and mask.
struct CriticalInitialisation {
  Parameters parameters;
  double lambda_a = 0;
  double lambda_g = 0;
  double log_gradient_growth = 0;  ///< depth * lambda_g: ln of the growth of the squared gradient.
};

/// Parameters on lambda_a = 0 for a network of the given depth and mask. With strengths_and_gain the largest
/// strengths up to which the squared gradient grows by no more than e^tolerance over the whole network:
/// smaller ones on the line are as good. If it grows by no more anywhere on the line (GELU and SiLU in
/// shallow networks), the given strengths are kept. With one free parameter the tolerance is not used, see
/// log_gradient_growth.
/// Errors  ArgumentError unless depth >= 1, tolerance > 0; NumericalError, naming the free parameter, if no
///         value is critical.
[[nodiscard]] CriticalInitialisation critical_initialisation(
    const Parameters& parameters, Index depth, FreeParameters free = FreeParameters::strengths_and_gain,
    double tolerance = 0.1, AttentionMask mask = AttentionMask::full);

/// For strengths too large for both exponents to be small: the sigma_w between the two boundaries at which
/// weight_g lambda_g = -weight_a lambda_a. Expects positive weights. Errors: NumericalError if there is none.
[[nodiscard]] CriticalInitialisation balanced_initialisation(const Parameters& parameters, Index depth,
                                                             double weight_a = 1, double weight_g = 1,
                                                             AttentionMask mask = AttentionMask::full);

}  // namespace widelimit::propagation
