#pragma once

#include <memory>
#include <optional>

#include "cli/gp/gp_run.hpp"
#include "widelimit/gp/gram_source.hpp"

namespace widelimit::cli {

/// Computes the kernels of a task, or what is missing of them in stores; nothing where stores are not complete since
/// this process has computed its part (--part) only.
template <typename Scalar>
[[nodiscard]] std::optional<gp::GramSources> compute_grams(const Network& network, const GpTask<Scalar>& task,
                                                           const GpOptions& options,
                                                           const RunContext& context);

}  // namespace widelimit::cli
