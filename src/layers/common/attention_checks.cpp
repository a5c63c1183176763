#include "layers/common/attention_checks.hpp"

#include <fmt/format.h>

#include <cmath>

#include "layers/common/attention_positions.hpp"
#include "layers/common/checks.hpp"
#include "layers/common/seen_positions.hpp"
#include "widelimit/error.hpp"

namespace widelimit::layers {
namespace {

void check_rotary(const SequenceAttention& sequence) {
  if (!sequence.rotary) return;
  if (sequence.rotary->frequencies.empty())
    throw ArgumentError("attention: rotary positions need at least one frequency, got none");
  // Angles are distances times frequencies. The larger they are, the fewer digits their cosines have, and none beyond
  // 1e16.
  constexpr double largest = 1e6;
  for (std::size_t i = 0; i < sequence.rotary->frequencies.size(); ++i)
    if (!(std::abs(sequence.rotary->frequencies[i]) <= largest))
      throw ArgumentError(fmt::format("attention: rotary.frequencies[{}] must be within -{} .. {}, got {}", i,
                                      largest, largest, sequence.rotary->frequencies[i]));
}

void check_alibi(const AttentionOptions& options) {
  const SequenceAttention& sequence = options.sequence;
  require_not_negative("attention", "alibi", sequence.alibi_slope);
  if (sequence.alibi_slope != 0 && !options.weights.is_softmax())
    throw ArgumentError(fmt::format(
        "attention: alibi needs softmax or softmax1 weights, got {}; leave it out or change the weights",
        options.weights.nonlinearity().kind()));
}

void check_masks(const AttentionOptions& options) {
  const SequenceAttention& sequence = options.sequence;
  if (sequence.window && *sequence.window < 1)
    throw ArgumentError(fmt::format("attention: window must be at least 1, got {}", *sequence.window));
  if (sequence.prefix < 0)
    throw ArgumentError(fmt::format("attention: prefix must not be negative, got {}", sequence.prefix));
  if (sequence.prefix > 0 && options.mask != AttentionMask::causal)
    throw ArgumentError(fmt::format("attention: a prefix needs a causal mask, got the prefix {} without one",
                                    sequence.prefix));
  if (!sequence.mask_matrix) return;
  const auto& mask = *sequence.mask_matrix;
  if (mask.rows() != mask.cols() || mask.rows() == 0)
    throw ArgumentError(
        fmt::format("attention: the mask must be square, got {} x {}", mask.rows(), mask.cols()));
}

/// Softmax over no positions is 0 / 0. Without a mask matrix every position sees itself; softmax1 has a 1 in its
/// denominator, and other weights are not normalised.
bool may_see_nothing(const AttentionOptions& options) {
  return options.sequence.mask_matrix && options.weights.is_softmax() && !options.weights.is_softmax1();
}

void check_rows_see_something(const AttentionOptions& options, Index d) {
  if (!may_see_nothing(options)) return;
  const SeenPositions seen(options, d);
  for (Index a = 0; a < d; ++a)
    if (seen.of(a).empty())
      throw ArgumentError(fmt::format(
          "expected a mask under which every position sees at least one of {}, got none for position {}", d,
          a));
}

}  // namespace

QueryKeyWeights query_key_weights(const AttentionOptions& options) {
  return options.query_key_weights.value_or(
      options.scaling == AttentionScaling::inverse_width ? QueryKeyWeights::tied : QueryKeyWeights::untied);
}

void check_attention(const AttentionOptions& options) {
  require_not_negative("attention", "query_key_std", options.query_key_std);
  require_not_negative("attention", "output_value_variance", options.output_value_variance);
  require_not_negative("attention", "bias_variance", options.bias_variance);
  require_not_negative("attention", "query_bias_variance", options.query_bias_variance);
  require_not_negative("attention", "key_bias_variance", options.key_bias_variance);
  const bool tied = query_key_weights(options) == QueryKeyWeights::tied;
  if (tied && options.query_bias_variance != options.key_bias_variance)
    throw ArgumentError(
        fmt::format("attention: tied query and key weights share their biases; expected equal "
                    "query_bias_variance and key_bias_variance, got {} and {}",
                    options.query_bias_variance, options.key_bias_variance));
  if (options.scaling == AttentionScaling::inverse_width && !tied && !options.weights.is_softmax())
    throw ArgumentError(
        "attention: inverse_width with untied query and key weights needs softmax (the logits vanish, and "
        "other weights with them); tie the weights or use inverse_sqrt_width");
  if (options.scaling == AttentionScaling::inverse_sqrt_width && tied)
    throw ArgumentError("attention: inverse_sqrt_width needs untied query and key weights, got tied");
  constexpr Index most_samples = 10'000'000;
  if (options.samples < 1)
    throw ArgumentError(fmt::format("attention: samples must be at least 1, got {}", options.samples));
  if (options.samples > most_samples)
    throw ArgumentError(
        fmt::format("attention: samples must be at most {}, got {}", most_samples, options.samples));
  if (options.positions) check_positions(*options.positions);
  check_rotary(options.sequence);
  check_alibi(options);
  check_masks(options);
}

void check_attention_fits(const AttentionOptions& options, const Shape& input) {
  if (input.empty())
    throw ArgumentError(
        "expected inputs with positions, got vectors; put attention before flatten or global pooling");
  if (options.positions) check_positions_fit(*options.positions, input);
  const SequenceAttention& sequence = options.sequence;
  const bool needs_sequence = sequence.rotary || sequence.alibi_slope != 0 || sequence.window ||
                              sequence.prefix > 0 || sequence.mask_matrix;
  if (!needs_sequence) return;
  if (input.size() != 1)
    throw ArgumentError(fmt::format(
        "expected sequences for rotary positions, alibi, window, prefix or mask, got inputs of {}",
        to_string(input)));
  if (sequence.mask_matrix && sequence.mask_matrix->rows() < input[0])
    throw ArgumentError(
        fmt::format("expected a mask of at least {0} x {0} for inputs of {0} positions, got {1} x {1}",
                    input[0], sequence.mask_matrix->rows()));
  check_rows_see_something(options, input[0]);
}

void check_attention_sees(const AttentionOptions& options, const PositionMask& mask) {
  if (!may_see_nothing(options)) return;
  // Masked positions see nothing and are allowed to, since their results are set to 0.
  const SeenPositions seen(options, position_count(mask.shape), mask.counts);
  for (Index a = 0; a < seen.size(); ++a)
    if (mask.counts[static_cast<std::size_t>(a)] != 0 && seen.of(a).empty())
      throw ArgumentError(fmt::format(
          "expected a mask that leaves every position one that it sees, got none for position {}", a));
}

}  // namespace widelimit::layers
