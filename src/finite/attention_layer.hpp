#pragma once

#include <memory>

#include "widelimit/finite/finite_layer.hpp"
#include "widelimit/finite/finite_network.hpp"
#include "widelimit/layers/attention.hpp"

namespace widelimit::finite {

/// Widths of a head with the defaults filled in.
struct HeadWidths {
  Index count;
  Index key;
  Index value;
  HeadNorm norm;
};

/// Multi-head self-attention. Throws ArgumentError for inputs without positions or encodings that do not fit.
template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> make_attention(const Site& site, const layers::AttentionOptions& options,
                                                    const HeadWidths& heads);

}  // namespace widelimit::finite
