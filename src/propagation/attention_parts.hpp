#pragma once

#include <optional>
#include <string>
#include <vector>

#include "widelimit/network/finite_heads.hpp"
#include "widelimit/network/layer.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::propagation {

/// The matrices of an attention layer, with their biases.
struct AttentionParts {
  bool tied = false;         ///< Queries and keys share their matrix.
  double bias_variance = 0;  ///< That of the output.
  double query_bias_variance = 0, key_bias_variance = 0;

  /// "query", "key", "value", "output"; "query and key" for the first two if tied.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Parameters of each in a finite network of `width` channels before and after, in the order of names().
  [[nodiscard]] std::vector<Index> counts(Index width, const finite::Heads& heads) const;
};

/// Nothing for other layers, and for attention whose positional encodings have parameters of their own.
[[nodiscard]] std::optional<AttentionParts> attention_parts(const Layer& layer);

}  // namespace widelimit::propagation
