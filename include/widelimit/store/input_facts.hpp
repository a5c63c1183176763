#pragma once

#include <nlohmann/json_fwd.hpp>

#include "widelimit/kernel/gram_tiles.hpp"
#include "widelimit/kernel/inputs.hpp"

namespace widelimit::store {

/// What a store says of the inputs [begin, end) of a batch, as they are computed with:
///   count           how many
///   values_sha256   of their numbers, little endian, one input after the other: the bytes of an array without padding
///   shapes_sha256   of their spatial sizes, 64-bit integers, if they differ
///   mask_sha256     of one byte a position, 1 where it counts, if there is a mask
///   graphs_sha256   of source, target and weight of every edge, doubles, by their targets, if there are graphs
template <typename Scalar>
[[nodiscard]] nlohmann::json input_facts(const Inputs<Scalar>& x, InputRange range);

/// Of a batch: {channels, shape (null if the inputs may differ), steps}, a step being the input_facts() of a part.
template <typename Scalar>
[[nodiscard]] nlohmann::json batch_facts(const Inputs<Scalar>& x, nlohmann::json steps);

/// Of a batch in one step: what tells it from all others.
template <typename Scalar>
[[nodiscard]] nlohmann::json batch_facts(const Inputs<Scalar>& x);

}  // namespace widelimit::store
