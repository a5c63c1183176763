#pragma once

#include <filesystem>

#include "cli/tile_dealer.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit::cli {

/// Computes what is missing in the store of the Gram matrix of x1 with x2 (with itself where x2 is null); with a dealer
/// all processes do so together, and all wait until it is complete. Of `options`, kernels, threads, stop and progress
/// are looked at. Damaged files are told on standard error.
template <typename Scalar>
void compute_store(const std::filesystem::path& folder, const Network& network, const Inputs<Scalar>& x1,
                   const Inputs<Scalar>* x2, const GramOptions& options, TileDealer* dealer);

}  // namespace widelimit::cli
