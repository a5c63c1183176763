#include "kernel/backends/device/device_support.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "kernel/backends/device/attention_steps.hpp"
#include "kernel/backends/device/dual_attention_steps.hpp"
#include "kernel/backends/device/entry_source.hpp"
#include "kernel/backends/device/map_source.hpp"
#include "kernel/backends/device/scalar_source.hpp"
#include "network/linear_stages.hpp"
#include "widelimit/device_error.hpp"

namespace widelimit {
namespace {

/// Why devices cannot compute a node with positions; empty if they can.
std::string reason_of(const Program& program, NodeId id) {
  const Operation& operation = program.graph.nodes[id].operation;
  if (const RowStage* row = row_stage_of(operation))
    return !has_source(*row) ? "a formula that devices cannot read" : "";
  if (const DualAttentionStage* attention = dual_attention(operation)) return dual_attention_gap(*attention);
  if (pair_stage_of(operation) != nullptr && position_matrices(operation) == nullptr &&
      !is_matrix_stage(operation))
    return "covariances that are needed as a whole";
  const RowStage* local = local_stage_of(operation);
  if (local != nullptr && dynamic_cast<const AffineEntryStage*>(local) == nullptr)
    return "a formula that devices cannot read";
  return "";
}

}  // namespace

std::vector<DeviceGap> device_gaps(const Program& program) {
  std::vector<DeviceGap> gaps;
  const auto& nodes = program.graph.nodes;
  // What comes after the positions is computed on the CPU unless it is all there is.
  if (program.steps.empty()) return scalar_gaps(program);
  for (NodeId id = 0; id < nodes.size(); ++id) {
    if (!program.has_positions[id]) continue;
    std::string reason = reason_of(program, id);
    if (!reason.empty()) gaps.push_back({nodes[id].path, std::move(reason)});
  }
  return gaps;
}

void require_no_gaps(const std::vector<DeviceGap>& gaps, const std::string& device) {
  if (!gaps.empty())
    throw DeviceError(fmt::format("device: {} cannot compute this network: {}; choose the device cpu", device,
                                  to_string(gaps)));
}

void require_precision(const opencl::Device& device, numerics::formula::Precision precision) {
  if (precision == numerics::formula::Precision::wide && !device.has_double)
    throw DeviceError(
        fmt::format("device: {} has no double precision; choose float, or the device cpu", device.name));
}

std::string to_string(const std::vector<DeviceGap>& gaps) {
  constexpr std::size_t most = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(gaps.size(), most); ++i)
    text += fmt::format("{}{} has {}", i == 0 ? "" : "; ", gaps[i].layer, gaps[i].reason);
  if (gaps.size() > most) text += fmt::format("; and {} more", gaps.size() - most);
  return text;
}

}  // namespace widelimit
