#pragma once

#include <functional>
#include <optional>
#include <string>

#include "kernel/run/pair_worker.hpp"
#include "widelimit/kernel/gram.hpp"

namespace widelimit {

/// A result of this size; its memory is not initialised. Throws where there is not enough.
template <typename Scalar>
[[nodiscard]] GramResult<Scalar> empty_result(const GramOptions& options, Index rows, Index columns);

/// Where its entries go.
template <typename Scalar>
[[nodiscard]] GramTarget<Scalar> target_of(GramResult<Scalar>& result);

/// "layers[3] (erf)": where the kernels of pair (i, j) leave the range, if that is known.
using LayerOfPair = std::function<std::optional<std::string>(Index i, Index j)>;

/// Names the first entry that is not finite, if there is one, and its layer. The result is that of the pairs from
/// (first_row, first_column) on.
template <typename Scalar>
void throw_not_finite(const GramResult<Scalar>& result, const LayerOfPair& layer_of, Index first_row = 0,
                      Index first_column = 0);

}  // namespace widelimit
