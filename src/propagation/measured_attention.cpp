#include "widelimit/propagation/measured_attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "widelimit/error.hpp"

namespace widelimit::propagation {

namespace {

/// One row over the keys that are kept.
struct RowWeights {
  double entropy = 0, first = 0, largest = 0;
};

// Weights in half precision sum to 1 to some 1e-3.
constexpr double largest_error_of_sum = 0.02;

RowWeights row_weights(std::span<const double> row, const std::vector<Index>& keys) {
  double sum = 0;
  for (const Index key : keys) {
    const double weight = row[static_cast<std::size_t>(key)];
    if (!(weight >= 0) || !std::isfinite(weight))
      throw ArgumentError(fmt::format("expected weights of at least 0, got {} for key {}", weight, key));
    sum += weight;
  }
  if (!(std::abs(sum - 1) <= largest_error_of_sum))
    throw ArgumentError(fmt::format(
        "expected weights that sum to 1 over the tokens that are kept, got {:.4g}: take them after the "
        "softmax and without dropout, and give the mask with which they were made",
        sum));
  RowWeights result;
  for (const Index key : keys) {
    const double weight = row[static_cast<std::size_t>(key)] / sum;
    // 0 ln 0 is 0 here.
    if (weight > 0) result.entropy -= weight * std::log(weight);
    result.largest = std::max(result.largest, weight);
  }
  result.first = row[static_cast<std::size_t>(keys.front())] / sum;
  return result;
}

std::vector<Index> kept_keys(Index sequence, Index tokens, const std::vector<bool>& kept) {
  std::vector<Index> keys;
  for (Index i = 0; i < tokens; ++i)
    if (kept.empty() || kept[static_cast<std::size_t>(sequence * tokens + i)]) keys.push_back(i);
  if (keys.empty())
    throw ArgumentError(
        fmt::format("sequence {} keeps none of its tokens; leave the sequence out", sequence));
  return keys;
}

numerics::Estimate mean_of(const std::vector<double>& values) {
  return values.size() > 1 ? numerics::mean(values)
                           : numerics::Estimate{values.front(), std::numeric_limits<double>::quiet_NaN()};
}

/// Means over the rows of every sequence.
struct HeadValues {
  std::vector<double> entropy, uniform, first, largest;
};

}  // namespace

std::vector<MeasuredHead> measured_attention(std::span<const double> weights, Index sequences, Index heads,
                                             Index tokens, const std::vector<bool>& kept) {
  if (sequences < 1 || heads < 1 || tokens < 1 || std::ssize(weights) != sequences * heads * tokens * tokens)
    throw ArgumentError(fmt::format(
        "expected weights [sequences, heads, tokens, tokens], got {} numbers for {} x {} x {} x {}",
        weights.size(), sequences, heads, tokens, tokens));
  if (!kept.empty() && std::ssize(kept) != sequences * tokens)
    throw ArgumentError(
        fmt::format("expected a mask of {} x {} tokens, got {} entries", sequences, tokens, kept.size()));
  std::vector<HeadValues> values(static_cast<std::size_t>(heads));
  for (Index s = 0; s < sequences; ++s) {
    const std::vector<Index> keys = kept_keys(s, tokens, kept);
    const auto rows = static_cast<double>(keys.size());
    for (Index h = 0; h < heads; ++h) {
      RowWeights mean;
      for (const Index query : keys) {
        const auto begin = static_cast<std::size_t>(((s * heads + h) * tokens + query) * tokens);
        RowWeights row;
        try {
          row = row_weights(weights.subspan(begin, static_cast<std::size_t>(tokens)), keys);
        } catch (const ArgumentError& error) {
          throw ArgumentError(
              fmt::format("token {} of head {} in sequence {}: {}", query, h, s, error.what()));
        }
        mean.entropy += row.entropy / rows;
        mean.first += row.first / rows;
        mean.largest += row.largest / rows;
      }
      HeadValues& head = values[static_cast<std::size_t>(h)];
      head.entropy.push_back(mean.entropy);
      head.uniform.push_back(std::log(rows));
      head.first.push_back(mean.first);
      head.largest.push_back(mean.largest);
    }
  }
  std::vector<MeasuredHead> result;
  result.reserve(values.size());
  for (const HeadValues& head : values)
    result.push_back(
        {mean_of(head.entropy), mean_of(head.uniform), mean_of(head.first), mean_of(head.largest)});
  return result;
}

}  // namespace widelimit::propagation
