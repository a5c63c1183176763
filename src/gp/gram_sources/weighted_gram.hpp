#pragma once

#include <memory>

#include "widelimit/gp/gram_source.hpp"

namespace widelimit::gp {

/// The kernels of another source with factors on their columns, those of the training inputs, and on their rows too if
/// these are the training inputs as well: D K D, or K D. Nothing more is held than of the other source.
[[nodiscard]] std::unique_ptr<GramSource> weighted_gram(std::unique_ptr<GramSource> inner,
                                                        const Vector<double>& factors, bool rows_too);

}  // namespace widelimit::gp
