#pragma once

#include <filesystem>

#include "cli/tile_dealer.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit::cli {

/// The Gram matrix of x1 with x2 (with itself where x2 is null), whole, out of a store into which what is missing is
/// computed first; with a dealer by all processes together, and empty for all but the first. Of `options`, kernels,
/// threads, stop and progress are looked at. Damaged files are told on standard error.
template <typename Scalar>
[[nodiscard]] GramResult<Scalar> gram_from_store(const std::filesystem::path& folder, const Network& network,
                                                 const Inputs<Scalar>& x1, const Inputs<Scalar>* x2,
                                                 const GramOptions& options, TileDealer* dealer);

}  // namespace widelimit::cli
