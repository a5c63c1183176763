#include "widelimit/propagation/measured_attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "widelimit/error.hpp"

namespace widelimit::propagation {

namespace {

/// One row over the keys that are kept.
struct RowWeights {
  double entropy = 0, first = 0, largest = 0;
};

// Weights in half precision sum to 1 to some 1e-3.
constexpr double largest_error_of_sum = 0.02;

/// What the keys that are left out have of a row: padding may hold anything, and only weights count.
double weight_left_out(std::span<const double> row, const std::vector<Index>& keys) {
  double sum = 0;
  auto next = keys.begin();
  for (Index key = 0; key < std::ssize(row); ++key) {
    if (next != keys.end() && *next == key) {
      ++next;
      continue;
    }
    const double weight = row[static_cast<std::size_t>(key)];
    if (weight >= 0 && weight <= 1 + largest_error_of_sum) sum += weight;
  }
  return sum;
}

/// Sum over the keys that are kept. The row is one of a softmax if that is 1, or comes to 1 with what is left out.
double kept_weight(std::span<const double> row, const std::vector<Index>& keys, LeftOutTokens left_out) {
  double sum = 0;
  for (const Index key : keys) {
    const double weight = row[static_cast<std::size_t>(key)];
    if (!(weight >= 0) || !std::isfinite(weight))
      throw ArgumentError(fmt::format("expected weights of at least 0, got {} for key {}", weight, key));
    sum += weight;
  }
  const auto is_one = [](double total) { return std::abs(total - 1) <= largest_error_of_sum; };
  const double others = left_out == LeftOutTokens::padding ? 0 : weight_left_out(row, keys);
  if (!is_one(sum) && !is_one(sum + others))
    throw ArgumentError(fmt::format(
        "expected weights that sum to 1{}, got {:.4g}: take them after the softmax and without dropout{}",
        left_out == LeftOutTokens::padding ? " over the tokens before the lengths" : "", sum + others,
        others > 0 ? fmt::format(" ({:.4g} of it over the tokens that are kept)", sum) : ""));
  return sum;
}

/// The weights over the sum of those that are kept, which is not 0.
RowWeights row_weights(std::span<const double> row, const std::vector<Index>& keys, double sum) {
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
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  if (values.empty()) return {none, none};
  return values.size() > 1 ? numerics::mean(values) : numerics::Estimate{values.front(), none};
}

/// Means over the rows of every sequence; of the first three, of sequences that have a row with weight on a kept key.
struct HeadValues {
  std::vector<double> entropy, first, largest, uniform, kept_weight;
  Index rows_left_out = 0;
};

/// Adds the means over the rows of one sequence, of weights [tokens, tokens]. `place`: of errors.
void add_sequence(const std::string& place, std::span<const double> weights, const std::vector<Index>& keys,
                  LeftOutTokens left_out, HeadValues& head) {
  const auto tokens = static_cast<Index>(std::lround(std::sqrt(static_cast<double>(weights.size()))));
  const auto rows = static_cast<double>(keys.size());
  RowWeights sum;
  double kept_sum = 0, used = 0;
  for (const Index query : keys) {
    const auto row =
        weights.subspan(static_cast<std::size_t>(query * tokens), static_cast<std::size_t>(tokens));
    double kept = 0;
    try {
      kept = kept_weight(row, keys, left_out);
    } catch (const ArgumentError& error) {
      throw ArgumentError(fmt::format("token {} of {}: {}", query, place, error.what()));
    }
    kept_sum += kept;
    if (kept == 0) {
      ++head.rows_left_out;
      continue;
    }
    const RowWeights one = row_weights(row, keys, kept);
    sum.entropy += one.entropy;
    sum.first += one.first;
    sum.largest += one.largest;
    ++used;
  }
  head.uniform.push_back(std::log(rows));
  head.kept_weight.push_back(kept_sum / rows);
  if (used == 0) return;
  head.entropy.push_back(sum.entropy / used);
  head.first.push_back(sum.first / used);
  head.largest.push_back(sum.largest / used);
}

}  // namespace

std::vector<MeasuredHead> measured_attention(std::span<const double> weights, Index sequences, Index heads,
                                             Index tokens, const std::vector<bool>& kept,
                                             LeftOutTokens left_out) {
  if (sequences < 1 || heads < 1 || tokens < 1 || std::ssize(weights) != sequences * heads * tokens * tokens)
    throw ArgumentError(fmt::format(
        "expected weights [sequences, heads, tokens, tokens], got {} numbers for {} x {} x {} x {}",
        weights.size(), sequences, heads, tokens, tokens));
  if (!kept.empty() && std::ssize(kept) != sequences * tokens)
    throw ArgumentError(
        fmt::format("expected a mask of {} x {} tokens, got {} entries", sequences, tokens, kept.size()));
  std::vector<HeadValues> values(static_cast<std::size_t>(heads));
  const auto size = static_cast<std::size_t>(tokens * tokens);
  for (Index s = 0; s < sequences; ++s) {
    const std::vector<Index> keys = kept_keys(s, tokens, kept);
    for (Index h = 0; h < heads; ++h)
      add_sequence(fmt::format("head {} in sequence {}", h, s),
                   weights.subspan(static_cast<std::size_t>(s * heads + h) * size, size), keys, left_out,
                   values[static_cast<std::size_t>(h)]);
  }
  std::vector<MeasuredHead> result;
  result.reserve(values.size());
  for (const HeadValues& head : values)
    result.push_back({mean_of(head.entropy), mean_of(head.uniform), mean_of(head.first),
                      mean_of(head.largest), mean_of(head.kept_weight), head.rows_left_out});
  return result;
}

}  // namespace widelimit::propagation
