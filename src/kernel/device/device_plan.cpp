#include "kernel/device/device_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernel/device/device_support.hpp"
#include "kernel/run/gram_plan.hpp"
#include "widelimit/device_error.hpp"

namespace widelimit {
namespace {

/// Work-items of a group: on a GPU enough to hide latencies, on a CPU, which runs them one after the other, a few
/// vectors.
constexpr Index group_of_gpu = 128, group_of_cpu = 64;

/// Planes that one work-group takes before another one takes the next of the same pair. The number of groups of a pair
/// must not depend on the tile, or sums would have another order.
constexpr Index planes_of_group = 16, most_shares = 64;

/// Bytes of sums that a tile leaves on the device.
constexpr Index most_sum_bytes = Index{64} << 20, largest_side = 256;

std::vector<int> flat(const RunPlaces& places) {
  std::vector<int> numbers;
  for (const auto& axis : places.offsets)
    for (const RunPlaces::Offset& offset : axis) {
      numbers.push_back(offset.first);
      numbers.push_back(offset.second);
    }
  return numbers;
}

Index shares_of(Index planes) {
  return std::clamp<Index>((planes + planes_of_group - 1) / planes_of_group, 1, most_shares);
}

}  // namespace

DevicePlan::DevicePlan(std::shared_ptr<opencl::Session> session, const GramPlan& plan,
                       std::size_t scalar_bytes)
    : session_{std::move(session)},
      precision_{scalar_bytes == sizeof(float) && !plan.in_double ? numerics::formula::Precision::narrow
                                                                  : numerics::formula::Precision::wide} {
  const opencl::Device& device = session_->device();
  group_ =
      std::min<Index>(device.is_gpu ? group_of_gpu : group_of_cpu, static_cast<Index>(device.largest_group));
  require_no_gaps(device_gaps(plan.program), device.name);
  if (precision_ == numerics::formula::Precision::wide && !device.has_double)
    throw DeviceError(
        fmt::format("device: {} has no double precision; choose float, or the device cpu", device.name));
}

RunSourceOptions DevicePlan::source_options(const GramPlan& plan, bool records) const {
  return {.precision = precision_,
          .kernel = records ? Kernel::nngp_only : plan.kernel,
          .group = group_,
          .records = records};
}

void DevicePlan::require_local_memory(const GramPlan& plan, const RunSource& source, const Run& run) const {
  const opencl::Device& device = session_->device();
  if (source.local_bytes() <= device.local_memory) return;
  throw DeviceError(fmt::format(
      "device: the layers before {} need {} bytes of local memory for each work-group, {} has {}; choose "
      "float, smaller inputs or the device cpu",
      plan.program.graph.nodes[run.root].path, source.local_bytes(), device.name, device.local_memory));
}

const DevicePair& DevicePlan::pair(const GramPlan& plan, const StateLayout& left,
                                   const StateLayout& right) const {
  const std::scoped_lock lock(making_);
  if (const auto found = pairs_.find({left.shape, right.shape}); found != pairs_.end()) return found->second;
  // It is kept once it is complete: the next caller must not find what an error left of it.
  DevicePair pair;
  const Program& program = plan.program;
  const PairGeometry geometry =
      make_geometry(program, left.shape, right.shape, Purpose::result, plan.demand_everything);
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const auto& step = std::get<PlaneStep>(program.steps[s]);
    const RunPlaces places = make_run_places(program, step, geometry, geometry.runs[s]);
    const RunSource source(program, step.run, geometry, geometry.runs[s], places, left, right,
                           source_options(plan, false));
    require_local_memory(plan, source, step.run);
    pair.steps.push_back({step.target, source.text(), flat(places), shares_of(places.planes()),
                          readout_weight(program.graph, geometry, step.target)});
  }
  return pairs_.emplace(std::pair(left.shape, right.shape), std::move(pair)).first->second;
}

const std::vector<std::string>& DevicePlan::records(const GramPlan& plan, const StateLayout& state) const {
  const std::scoped_lock lock(making_);
  if (const auto found = records_.find(state.shape); found != records_.end()) return found->second;
  std::vector<std::string> sources;
  const Program& program = plan.program;
  const PairGeometry geometry = make_geometry(program, state.shape, state.shape, Purpose::state, false);
  for (std::size_t s = 0; s < program.steps.size(); ++s) {
    const auto& step = std::get<PlaneStep>(program.steps[s]);
    RunPlaces zero;
    for (std::size_t k = 0; k < 3; ++k) {
      zero.offsets[k] = {{0, 0}};
      zero.whole[k] = true;
    }
    const RunSource source(program, step.run, geometry, geometry.runs[s], zero, state, state,
                           source_options(plan, true));
    require_local_memory(plan, source, step.run);
    sources.push_back(source.text());
  }
  return records_.emplace(state.shape, std::move(sources)).first->second;
}

std::size_t DevicePlan::state_memory(std::size_t wanted) const {
  const opencl::Device& device = session_->device();
  // Half of a device's memory is left to kept states of other plans, to sums, and to other programs.
  return static_cast<std::size_t>(
      std::min({std::uint64_t{wanted}, device.memory / 2, 2 * device.largest_buffer}));
}

Index DevicePlan::tile_side(const GramPlan& plan, const Shape& shape) const {
  const StateLayout& layout = plan.state_layouts.at(shape);
  Index bytes = 1;
  for (const DevicePair::Step& step : pair(plan, layout, layout).steps)
    bytes += step.shares * 4 * static_cast<Index>(sizeof(double));
  const auto side =
      static_cast<Index>(std::sqrt(static_cast<double>(most_sum_bytes) / static_cast<double>(bytes)));
  return std::clamp<Index>(side, 1, largest_side);
}

}  // namespace widelimit
