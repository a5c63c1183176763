#pragma once

#include <string>

#include "widelimit/propagation/exponents.hpp"

/// Closed forms of exponents from statistics of the MLP that a scan has at hand; parameters are not checked.
namespace widelimit::propagation {

/// mlp_statistics() without its checks: infinite where a number leaves the range of double.
[[nodiscard]] MlpStatistics unchecked_mlp_statistics(const Parameters& parameters);

/// "lower sigma_w = 2, ...": what makes the numbers of an MLP smaller.
[[nodiscard]] std::string lower_gains(const Parameters& parameters);

/// `where` stands in the message about a fixed point that is 0.
[[nodiscard]] CollapsedPoint collapsed_point_of(const char* where, const Parameters& parameters, double k_out,
                                                double f);

/// With q_star in the place of q_M in the MLP, as the paper prints it.
[[nodiscard]] CollapsedPoint as_published(CollapsedPoint point, const Parameters& parameters);

[[nodiscard]] double one_block_limit_of(const Parameters& parameters, double k_out, double f, double q0,
                                        AttentionMask mask);

[[nodiscard]] EqualTokenGrowth equal_token_growth_of(const Parameters& parameters, double k_out, double f,
                                                     double q0, Index depth, AttentionMask mask);

[[nodiscard]] double causal_angle_exponent_of(const CollapsedPoint& point, const Parameters& parameters,
                                              Index depth);

[[nodiscard]] double causal_gradient_exponent_of(const CollapsedPoint& point, const Parameters& parameters,
                                                 Index depth);

}  // namespace widelimit::propagation
