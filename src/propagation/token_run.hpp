#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "propagation/token_stages.hpp"
#include "widelimit/network/network.hpp"
#include "widelimit/numerics/statistics.hpp"
#include "widelimit/run_control.hpp"

namespace widelimit::propagation {

using Eigen::Index;

/// Tokens and their tangent kernel, [n, n] each.
struct TokenStart {
  const Matrix<double>& gram;
  const Matrix<double>& tangent;
};

/// mantissa times 2^exponent: of deep networks, beyond the range of double.
struct ScaledNumber {
  double mantissa;
  int exponent;
  [[nodiscard]] double value() const { return std::ldexp(mantissa, exponent); }
};

/// What passes after each part of a network that tokens run through; [part][replicate]. Part k stands as "layers[2 k +
/// 1]" in errors. Progress counts parts, times replicates.
[[nodiscard]] std::vector<std::vector<TokenTap::Passed>> run_tokens(const TokenStart& start,
                                                                    const std::vector<Layers>& parts,
                                                                    const RunControl& run,
                                                                    TokenRule rule = TokenRule::as_they_are);

/// Throws unless tokens of this Gram matrix can start (ArgumentError) and n of them can run through the block, `depth`
/// >= 1 times (require_block()).
void require_start(const char* where, const Network& block, const Matrix<double>& gram, Index depth);

/// Throws NetworkError unless n tokens can run through the block and leave it as n tokens.
void require_block(const Layers& block, Index tokens);

/// The same for blocks one after another, of which there must be one at least; errors say which block it is.
void require_blocks(const char* where, const std::vector<Network>& blocks, Index tokens);
void require_start(const char* where, const std::vector<Network>& blocks, const Matrix<double>& gram);

/// The mean of a number a replicate; standard error 0 if there is one replicate.
[[nodiscard]] numerics::Estimate mean_over_replicates(const std::vector<double>& numbers);
/// ln of the mean.
[[nodiscard]] numerics::Estimate log_of_mean(const std::vector<double>& numbers);

/// What is made of a tangent kernel, number(T), once a replicate: numbers that the start's scale has been taken out of.
template <typename Number>
[[nodiscard]] std::vector<ScaledNumber> tangent_numbers(const std::vector<TokenTap::Passed>& passed,
                                                        const Number& number) {
  std::vector<ScaledNumber> numbers;
  for (const TokenTap::Passed& one : passed)
    numbers.push_back({number(one.tangent) / tangent_scale, one.exponent});
  return numbers;
}
[[nodiscard]] numerics::Estimate log_of_mean(const std::vector<ScaledNumber>& numbers);

}  // namespace widelimit::propagation
