#pragma once

#include <filesystem>
#include <functional>

#include "cli/gp/gp_run.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/store/gram_store.hpp"

namespace widelimit::cli {

/// Computes what is missing in the store of the Gram matrix of x1 with x2 (with itself where x2 is null), or in a part
/// of it; with a dealer all processes do so together, and all wait until it is complete. A store of both kernels serves
/// either. Of `gram_options`, kernels, threads and stop are looked at. Damaged files are told on standard error. True
/// if the store is then complete.
template <typename Scalar>
[[nodiscard]] bool compute_store(const std::filesystem::path& folder, const Network& network,
                                 const Inputs<Scalar>& x1, const Inputs<Scalar>* x2,
                                 const GramOptions& gram_options, const GpOptions& options,
                                 const std::function<void(const store::StoreProgress&)>& progress);

}  // namespace widelimit::cli
