#pragma once

#include <string>
#include <vector>

#include "propagation/token_stages.hpp"
#include "widelimit/network/network.hpp"
#include "widelimit/numerics/statistics.hpp"
#include "widelimit/run_control.hpp"

namespace widelimit::propagation {

using Eigen::Index;

/// A start T of the tangent recursion is multiplied by it, and results are divided by it: T' is linear in T but for
/// what parameters add on the way, which so vanishes in rounding, a factor of 1e-60 away.
inline constexpr double tangent_scale = 0x1p200;

/// Tokens and their tangent kernel, [n, n] each.
struct TokenStart {
  const Matrix<double>& gram;
  const Matrix<double>& tangent;
};

/// What passes behind each part of a network that tokens run through; [part][replicate]. Part k stands as "layers[2 k +
/// 1]" in errors. Progress counts parts, times replicates.
[[nodiscard]] std::vector<std::vector<TokenTap::Passed>> run_tokens(const TokenStart& start,
                                                                    const std::vector<Layers>& parts,
                                                                    const RunControl& run);

/// Throws NetworkError unless n tokens can run through the block and leave it as n tokens.
void require_block(const Layers& block, Index tokens);

/// The mean of a number a replicate; standard error 0 if there is one replicate.
[[nodiscard]] numerics::Estimate mean_over_replicates(const std::vector<double>& numbers);
/// ln of the mean.
[[nodiscard]] numerics::Estimate log_of_mean(const std::vector<double>& numbers);

}  // namespace widelimit::propagation
