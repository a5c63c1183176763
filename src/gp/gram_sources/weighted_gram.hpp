#pragma once

#include <memory>
#include <vector>

#include "widelimit/gp/gram_source.hpp"

namespace widelimit::gp {

/// The kernels of another source with factors on their columns, those of the training inputs, and on their rows too if
/// these are the training inputs as well: D K D, or K D. Nothing more is held than of the other source.
[[nodiscard]] std::unique_ptr<GramSource> weighted_gram(std::unique_ptr<GramSource> inner,
                                                        const Vector<double>& factors, bool rows_too);

/// The kernels of another source for some of the training inputs, given by their numbers: their rows and columns, or
/// their columns only. Matrices are read as a whole first.
[[nodiscard]] std::unique_ptr<GramSource> chosen_gram(std::unique_ptr<GramSource> inner,
                                                      std::vector<Index> inputs, bool rows_too);

}  // namespace widelimit::gp
