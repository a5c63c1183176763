#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "widelimit/index.hpp"
#include "widelimit/kernel/inputs.hpp"

namespace widelimit::gp {

/// Whether position p of an input counts, of which each position has `channels` numbers.
inline bool counts_at(std::span<const std::uint8_t> mask, std::size_t number, Index channels) {
  return mask.empty() || mask[number / static_cast<std::size_t>(channels)] != 0;
}

/// Equal inputs have equal hashes: that of their numbers, where a mask leaves none out.
template <typename Scalar>
std::size_t hash_of_input(const Inputs<Scalar>& x, Index i) {
  const auto mask = x.is_masked() ? x.mask(i) : std::span<const std::uint8_t>();
  const std::span<const Scalar> input = x[i];
  std::vector<Scalar> numbers;
  numbers.reserve(input.size());
  for (std::size_t k = 0; k < input.size(); ++k)
    // 0 and -0 are one number.
    if (counts_at(mask, k, x.channels())) numbers.push_back(input[k] + Scalar{0});
  return std::hash<std::string_view>{}(
      {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Scalar)});
}

inline bool are_equal_graphs(const InputGraph& a, const InputGraph& b) {
  if (a.nodes() != b.nodes() || a.edges() != b.edges()) return false;
  for (Index node = 0; node < a.nodes(); ++node)
    if (!std::ranges::equal(a.incoming(node), b.incoming(node), [](const auto& one, const auto& other) {
          return one.source == other.source && one.weight == other.weight;
        }))
      return false;
  return true;
}

/// Input i of `x` and input j of `others`: sizes, numbers that count, masks and graphs.
template <typename Scalar>
bool are_equal_inputs(const Inputs<Scalar>& x, Index i, const Inputs<Scalar>& others, Index j) {
  if (x.shape(i) != others.shape(j)) return false;
  // Without a mask all positions count, as with one that is true everywhere.
  const auto mask_of = [](const Inputs<Scalar>& batch, Index k) {
    return batch.is_masked() ? batch.mask(k) : std::span<const std::uint8_t>();
  };
  const auto mask = mask_of(x, i), other_mask = mask_of(others, j);
  const std::span<const Scalar> one = x[i], other = others[j];
  if (one.size() != other.size()) return false;
  for (std::size_t k = 0; k < one.size(); ++k) {
    const bool counts = counts_at(mask, k, x.channels());
    if (counts != counts_at(other_mask, k, x.channels())) return false;
    if (counts && one[k] != other[k]) return false;
  }
  if (x.graphs().empty() != others.graphs().empty()) return false;
  return x.graphs().empty() || are_equal_graphs(x.graphs()[static_cast<std::size_t>(i)],
                                                others.graphs()[static_cast<std::size_t>(j)]);
}

}  // namespace widelimit::gp
