#pragma once

#include "widelimit/network/shape.hpp"

namespace widelimit::finite {

/// Whether the output of each head is normalised over its channels before the heads are joined. The limits
/// of the library's attention are those without this norm.
enum class HeadNorm { none, layer_norm };

/// Attention heads of a finite network.
struct Heads {
  Index count = 8;
  Index key_width = 0;    ///< Channels of queries and keys of a head; 0: hidden / count, at least 1.
  Index value_width = 0;  ///< Channels of the values of a head; 0: the same.
  HeadNorm norm = HeadNorm::none;
};

}  // namespace widelimit::finite
