#pragma once

#include "gp/folders/array_folder.hpp"
#include "widelimit/kernel/inputs.hpp"

/// Inputs among the arrays of a folder:
///     x.npy               [n, spatial..., C]; of a ragged batch [numbers], one input after the other
///     shapes.npy          [n, axes] integers, of a ragged batch
///     mask.npy            [n, spatial...] integers: 1 where a position counts, else 0; with masks; of a ragged batch
///                         [positions], one input after the other
///     graph_edges.npy     [edges, 2] integers: source and target, positions of their input; with graphs, as the next
///     graph_weights.npy   [edges]
///     graph_sizes.npy     [n] integers: edges of each input, which stand together
/// The document says under "inputs" which of them there are.
namespace widelimit::gp {

template <typename Scalar>
void write_inputs(ArrayFolderWriter& folder, nlohmann::ordered_json& document, const Inputs<Scalar>& x);

/// DataError for arrays that do not fit each other.
template <typename Scalar>
[[nodiscard]] Inputs<Scalar> read_inputs(const ArrayFolderReader& folder);

}  // namespace widelimit::gp
