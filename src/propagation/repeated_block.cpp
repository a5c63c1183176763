#include "widelimit/propagation/repeated_block.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "numerics/roots.hpp"
#include "propagation/arguments.hpp"
#include "propagation/block_sequence.hpp"
#include "propagation/exchangeable_tokens.hpp"
#include "propagation/ratio_of_means.hpp"
#include "propagation/token_run.hpp"
#include "widelimit/error.hpp"

namespace widelimit::propagation {
namespace {

using Passed = std::vector<TokenTap::Passed>;  // One a replicate.

double mean_product(const Matrix<double>& gram) {
  const auto n = static_cast<double>(gram.rows());
  return (gram.sum() - gram.trace()) / (n * (n - 1));
}

double mean_cosine(const Matrix<double>& gram) {
  const Vector<double> inverse_norms = gram.diagonal().cwiseSqrt().cwiseInverse();
  return mean_product(inverse_norms.asDiagonal() * gram * inverse_norms.asDiagonal());
}

numerics::Estimate log_gradient(const Passed& passed) {
  return log_of_mean(tangent_numbers(passed, [](const auto& tangent) { return tangent.diagonal().mean(); }));
}

PropagatedTokens tokens_of(const Passed& passed) {
  const auto replicates = static_cast<double>(passed.size());
  PropagatedTokens tokens;
  tokens.gram.setZero(passed.front().gram.rows(), passed.front().gram.cols());
  std::vector<double> norms, cosines, products;
  for (const TokenTap::Passed& one : passed) {
    tokens.gram += one.gram / replicates;
    norms.push_back(one.gram.diagonal().mean());
    cosines.push_back(mean_cosine(one.gram));
    products.push_back(mean_product(one.gram));
  }
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  tokens.squared_norm = mean_over_replicates(norms);
  const bool pairs = tokens.gram.rows() > 1;
  tokens.cosine = pairs ? mean_over_replicates(cosines) : numerics::Estimate{none, 0};
  tokens.product_ratio = pairs ? ratio_of_means(products, norms, 0) : numerics::Estimate{none, 0};
  tokens.log_gradient = log_gradient(passed);
  return tokens;
}

Matrix<double> identity(Index n) { return Matrix<double>::Identity(n, n); }

/// Takes the mean over tokens away: what is left are differences between tokens.
// Traces with this start are sums over contrasts (docs/theory/signal-propagation.md, section 11).
Matrix<double> contrasts(Index n) { return identity(n).array() - 1 / static_cast<double>(n); }

/// ln of the mean squared difference of tokens' tangents.
numerics::Estimate log_contrast(const Passed& passed) {
  return log_of_mean(tangent_numbers(passed, [](const auto& tangent) {
    const auto n = static_cast<double>(tangent.rows());
    return (tangent.trace() - tangent.sum() / n) / (n - 1);
  }));
}

std::vector<double> norms_of(const Passed& passed) {
  std::vector<double> result;
  for (const TokenTap::Passed& one : passed) result.push_back(one.gram.diagonal().mean());
  return result;
}

numerics::Estimate a_block(numerics::Estimate logarithm, Index depth) {
  const auto blocks = static_cast<double>(depth);
  // Of something that vanishes there is no error.
  return {logarithm.value / blocks, std::isinf(logarithm.value) ? 0 : logarithm.standard_error / blocks};
}

numerics::Estimate difference(const numerics::Estimate& first, const numerics::Estimate& second) {
  return {first.value - second.value, std::hypot(first.standard_error, second.standard_error)};
}

/// Whether all tokens are equal, in all replicates.
bool are_equal(const Passed& passed) {
  return std::all_of(passed.begin(), passed.end(),
                     [](const TokenTap::Passed& one) { return is_of_equal_tokens(one.gram); });
}

/// What one block makes of tokens that are equal.
struct EqualTokensStep {
  double log_growth;  ///< ln of the squared norm over that before.
  bool equal;         ///< Whether they still are.
};

EqualTokensStep equal_tokens_step(const Network& block, Index tokens, double norm, const RunControl& run) {
  const Matrix<double> gram = Matrix<double>::Constant(tokens, tokens, norm);
  const Matrix<double> nothing = Matrix<double>::Zero(tokens, tokens);
  const auto passed = run_tokens({gram, nothing}, {block.layers()}, run);
  return {log_of_mean(norms_of(passed.front())).value - std::log(norm), are_equal(passed.front())};
}

/// The run as the part `k` of `of` parts that take equally long.
RunControl part_of(const RunControl& run, std::ptrdiff_t k, std::ptrdiff_t of) {
  RunControl part = run;
  if (run.progress)
    part.progress = [k, of, &progress = run.progress](std::ptrdiff_t done, std::ptrdiff_t all) {
      progress(k * all + done, of * all);
    };
  return part;
}

RunControl without_progress(RunControl run) {
  run.progress = {};
  return run;
}

/// collapsed_norm(), unchecked.
std::optional<double> norm_that_stays(const Network& block, Index tokens, const RunControl& run) {
  // Factors of `step` take the search out to norms far beyond those of any network.
  constexpr double rounding = 1e-13, step = 16, farthest = 1e30;
  const auto growth = [&](double logarithm) {
    return equal_tokens_step(block, tokens, std::exp(logarithm), run).log_growth;
  };
  const auto [at_one, equal] = equal_tokens_step(block, tokens, 1, run);
  if (!equal) return std::nullopt;
  if (std::abs(at_one) < rounding) return 1;
  const double direction = std::copysign(std::log(step), at_one);
  // Growth within rounding of 0 has no sign: norms to which a block adds a constant seem to stand still far out.
  double near = 0;
  for (double far = direction; std::abs(far) < std::log(farthest); far += direction) {
    const double at_far = growth(far);
    if (std::abs(at_far) < rounding) continue;
    if (std::signbit(at_far) == std::signbit(at_one)) {
      near = far;
      continue;
    }
    const auto root = numerics::bracketed_root(growth, std::min(near, far), std::max(near, far));
    if (!root) continue;
    // What parts tokens may vanish beside a norm of 1, and not beside a smaller one.
    if (!equal_tokens_step(block, tokens, std::exp(*root), run).equal) return std::nullopt;
    return std::exp(*root);
  }
  return std::nullopt;
}

/// Why there are no angles to grow: the first block that parts equal tokens is `after`, counted from 1.
std::string parting_note(const Passed& parted, std::size_t after) {
  std::vector<double> distances;
  for (const TokenTap::Passed& one : parted)
    distances.push_back(2 * (1 - mean_product(one.gram) / one.gram.diagonal().mean()));
  return fmt::format(
      "equal tokens do not stay equal, as dropout, zero padding and positions in the values part them: after "
      "{} "
      "their mean squared distance is {:.3g} of their squared norm. There is no collapsed point, near which "
      "angles "
      "would be small",
      after == 1 ? "one block" : fmt::format("{} blocks", after), mean_over_replicates(distances).value);
}

/// Whether a block leaves a distance between nearly equal tokens where its slope says that it leaves none: kernels
/// that jump there (sign), and layers that are a kernel alone (matern).
bool parts_near_tokens(const Network& block, Index tokens, double norm, const RunControl& run) {
  constexpr double gap = 1e-6, least = 1e-3;
  Matrix<double> gram = Matrix<double>::Constant(tokens, tokens, norm * (1 - gap));
  gram.diagonal().setConstant(norm);
  const Matrix<double> nothing = Matrix<double>::Zero(tokens, tokens);
  const auto passed = run_tokens({gram, nothing}, {block.layers()}, run);
  return std::any_of(passed.front().begin(), passed.front().end(), [&](const TokenTap::Passed& one) {
    return 1 - mean_product(one.gram) / one.gram.diagonal().mean() > least * gap;
  });
}

/// Exponents of which those of angles are none, and why.
BlockExponents without_angles(BlockExponents exponents, std::string reason) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  exponents.angle = exponents.last_angle = {none, none};
  exponents.no_angles = std::move(reason);
  return exponents;
}

/// block_exponents(), unchecked; without `start_norm` the blocks are one that is repeated.
BlockExponents exponents_of(const BlockSequence& blocks, Index tokens, std::optional<double> start_norm,
                            const RunControl& run) {
  const Index depth = blocks.depth();
  const std::optional<double> fixed =
      start_norm ? std::nullopt : norm_that_stays(blocks[0], tokens, without_progress(run));
  BlockExponents exponents;
  exponents.start_norm = start_norm.value_or(fixed.value_or(1));
  exponents.at_fixed_point = fixed.has_value();
  const Matrix<double> start = Matrix<double>::Constant(tokens, tokens, exponents.start_norm);
  // There are two equally long runs, one for gradients and one for angles; `part` is the number of this one.
  const auto through = [&](const Matrix<double>& tangent, TokenRule rule, std::ptrdiff_t part) {
    return run_tokens({start, tangent_scale * tangent}, blocks.layers(), part_of(run, part, 2), rule);
  };
  const auto gradients = through(identity(tokens), TokenRule::equal_tokens, 0);
  exponents.gradient = a_block(log_gradient(gradients.back()), depth);
  const auto passed = through(contrasts(tokens), TokenRule::contrasts, 1);
  // This is the logarithm of the contrast relative to the norm after so many blocks; it starts with that
  // of P over the start's norm.
  const auto relative = [&](std::size_t count) {
    if (count == 0) return numerics::Estimate{-std::log(exponents.start_norm), 0};
    return difference(log_contrast(passed[count - 1]), log_of_mean(norms_of(passed[count - 1])));
  };
  const auto last = static_cast<std::size_t>(depth);
  const numerics::Estimate norm_at_end = log_of_mean(norms_of(passed.back()));
  exponents.norm =
      a_block({norm_at_end.value - std::log(exponents.start_norm), norm_at_end.standard_error}, depth);
  const auto parted = std::find_if_not(passed.begin(), passed.end(), are_equal);
  if (parted != passed.end()) {
    return without_angles(exponents,
                          parting_note(*parted, static_cast<std::size_t>(parted - passed.begin()) + 1));
  }
  // Even averages leave nothing of differences but the rounding of what they are made of.
  constexpr double rounding = 1e-15;
  if (!(log_contrast(passed.front()).value > log_gradient(gradients.front()).value + std::log(rounding))) {
    if (parts_near_tokens(blocks[0], tokens, exponents.start_norm, without_progress(run))) {
      return without_angles(exponents,
                            "a layer has no slope at equal tokens, and yet parts nearly equal ones: sign and "
                            "its like jump there, and "
                            "matern has a kernel alone. Small angles do not grow by a known factor");
    }
    exponents.angle = exponents.last_angle = {-std::numeric_limits<double>::infinity(), 0};
    return exponents;
  }
  exponents.angle = a_block(difference(relative(last), relative(0)), depth);
  exponents.last_angle = difference(relative(last), relative(last - 1));
  return exponents;
}

/// propagate(), unchecked.
std::vector<PropagatedTokens> tokens_through(const BlockSequence& blocks, const Matrix<double>& start,
                                             const RunControl& run) {
  return on_fewest_tokens(blocks, start, [&](const BlockSequence& used, const Matrix<double>& gram) {
    const Matrix<double> tangent = tangent_scale * identity(gram.rows());
    std::vector<PropagatedTokens> tokens{tokens_of({{gram, tangent, 0}})};
    for (const Passed& passed : run_tokens({gram, tangent}, used.layers(), run, TokenRule::scaled))
      tokens.push_back(tokens_of(passed));
    if (gram.rows() != start.rows())
      for (PropagatedTokens& one : tokens) one.gram = exchangeable_gram(one.gram, start.rows());
    return tokens;
  });
}

/// block_exponents() of what has been checked but for its numbers.
BlockExponents exponents_through(const BlockSequence& blocks, Index tokens, std::optional<double> start_norm,
                                 const RunControl& run) {
  return on_fewest_equal_tokens(blocks, tokens, [&](const BlockSequence& used, Index count) {
    return exponents_of(used, count, start_norm, run);
  });
}

}  // namespace

std::vector<PropagatedTokens> propagate(const Network& block, const Matrix<double>& start, Index depth,
                                        const RunControl& run) {
  require_start("propagate", block, start, depth);
  return tokens_through(BlockSequence::repeated(block, depth), start, run);
}

std::vector<PropagatedTokens> propagate(const std::vector<Network>& blocks, const Matrix<double>& start,
                                        const RunControl& run) {
  require_start("propagate", blocks, start);
  return tokens_through(BlockSequence::of(blocks), start, run);
}

std::optional<double> collapsed_norm(const Network& block, Index tokens, const RunControl& run) {
  require_at_least("collapsed_norm", "tokens", tokens, 1);
  require_block(block.layers(), tokens);
  return on_fewest_equal_tokens(
      BlockSequence::repeated(block, 1), tokens,
      [&](const BlockSequence& used, Index count) { return norm_that_stays(used[0], count, run); });
}

BlockExponents block_exponents(const Network& block, Index tokens, Index depth,
                               std::optional<double> start_norm, const RunControl& run) {
  constexpr const char* where = "block_exponents";
  require_at_least(where, "tokens", tokens, 2);
  require_at_least(where, "depth", depth, 1);
  if (start_norm) require_positive(where, "start_norm", *start_norm);
  require_block(block.layers(), tokens);
  return exponents_through(BlockSequence::repeated(block, depth), tokens, start_norm, run);
}

BlockExponents block_exponents(const std::vector<Network>& blocks, Index tokens, double start_norm,
                               const RunControl& run) {
  constexpr const char* where = "block_exponents";
  require_at_least(where, "tokens", tokens, 2);
  require_positive(where, "start_norm", start_norm);
  require_blocks(where, blocks, tokens);
  return exponents_through(BlockSequence::of(blocks), tokens, start_norm, run);
}

}  // namespace widelimit::propagation
