#pragma once

#include <vector>

#include "cli/gp_grams.hpp"
#include "cli/gp_posterior.hpp"

namespace widelimit::cli {

/// predict() by all ranks together, each of which gets all predictions; the Gram matrices are RankGrams.
[[nodiscard]] std::vector<GpPrediction> predict_together(const GpTargets& targets, const GpOptions& options,
                                                         const Interrupt& interrupt, GpGrams grams);

}  // namespace widelimit::cli
