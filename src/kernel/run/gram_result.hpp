#pragma once

#include <functional>
#include <optional>
#include <string>

#include "kernel/run/pair_worker.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit {

/// A result of this size, whose memory is not initialised. Throws if there is not enough memory.
template <typename Scalar>
[[nodiscard]] GramResult<Scalar> empty_result(const GramOptions& options, Index rows, Index columns);

/// Where the entries of a result are written.
template <typename Scalar>
[[nodiscard]] GramTarget<Scalar> target_of(GramResult<Scalar>& result);

/// The layer where the kernels of pair (i, j) leave the range, such as "layers[3] (erf)", if it can be found.
using LayerOfPair = std::function<std::optional<std::string>(Index i, Index j)>;

/// Throws NumericalError that names the first entry that is not finite and its layer; returns if all are finite.
/// Entry (0, 0) of the result belongs to pair (first_row, first_column).
template <typename Scalar>
void throw_not_finite(const GramResult<Scalar>& result, const LayerOfPair& layer_of, Index first_row = 0,
                      Index first_column = 0);

}  // namespace widelimit
