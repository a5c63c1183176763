#pragma once

#include <vector>

#include "cli/gp_grams.hpp"
#include "cli/gp_posterior.hpp"

namespace widelimit::cli {

/// One kernel's predictions after the other, by the solver of the options. The Gram matrices are used up.
[[nodiscard]] std::vector<GpPrediction> predict(const GpTargets& targets, const GpOptions& options,
                                                const Interrupt& interrupt, GpGrams grams);

}  // namespace widelimit::cli
