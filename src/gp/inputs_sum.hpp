#pragma once

#include <fmt/format.h>
#include <zlib.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "widelimit/kernel/inputs.hpp"
#include "widelimit/matrix.hpp"

/// Checksums (CRC-32) that tell data apart.
namespace widelimit::gp {

/// zlib begins anew for a null pointer, which vectors' shapes and absent masks have: nothing leaves the sum as it is.
inline uLong sum_with(uLong sum, const void* bytes, std::size_t count) {
  return count == 0 ? sum : crc32_z(sum, static_cast<const Bytef*>(bytes), count);
}

inline std::string sum_text(uLong sum) { return fmt::format("{:08x}", sum); }

inline uLong sum_with_graph(uLong sum, const InputGraph& graph) {
  for (Index target = 0; target < graph.nodes(); ++target)
    for (const InputGraph::Incoming& edge : graph.incoming(target)) {
      const double numbers[] = {static_cast<double>(edge.source), static_cast<double>(target), edge.weight};
      sum = sum_with(sum, numbers, sizeof numbers);
    }
  return sum;
}

/// How many inputs of what kind, and the checksum of their shapes, numbers, masks and graphs.
template <typename Scalar>
nlohmann::ordered_json described_inputs(const Inputs<Scalar>& x) {
  uLong sum = 0;
  for (Index i = 0; i < x.size(); ++i) {
    sum = sum_with(sum, x.shape(i).data(), x.shape(i).size() * sizeof(Index));
    sum = sum_with(sum, x[i].data(), x[i].size_bytes());
    sum = sum_with(sum, x.mask(i).data(), x.mask(i).size());
    if (const InputGraph* graph = x.graph(i)) sum = sum_with_graph(sum, *graph);
  }
  return {{"count", x.size()}, {"channels", x.channels()}, {"axes", x.axes()}, {"crc32", sum_text(sum)}};
}

inline std::string targets_sum(const Matrix<double>& y) {
  return sum_text(sum_with(0, y.data(), static_cast<std::size_t>(y.size()) * sizeof(double)));
}

}  // namespace widelimit::gp
