#include "kernel/backends/device/device_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernel/backends/device/device_support.hpp"
#include "kernel/run/gram_plan.hpp"
#include "kernel/run/source_values.hpp"
#include "widelimit/device_error.hpp"

namespace widelimit {
namespace {

/// Work-items of a group: on a GPU enough to hide latencies, on a CPU, which runs them one after the other, a few
/// vectors.
constexpr Index group_of_gpu = 128, group_of_cpu = 64;

/// The form that is forced, or one group for each plane.
DeviceForm form_of(const opencl::Device& device, Index lanes) {
  const DeviceForm usual{.items = lanes};
  const std::string forced = forced_form();
  return forced.empty() || forced == measured_form
             ? usual
             : parse_device_form(forced, usual, lanes, device.largest_group);
}

/// Items along the square work-groups of products.
constexpr Index large_square_side = 16, small_square_side = 8;

/// Of each of two blocks of states: with less, computing on the device makes no sense.
constexpr std::size_t least_state_bytes = std::size_t{1} << 20;

/// Bytes of sums that a tile leaves on the device.
constexpr Index most_sum_bytes = Index{64} << 20, largest_side = 256;

}  // namespace

DevicePlan::DevicePlan(std::vector<std::shared_ptr<opencl::Session>> sessions, const GramPlan& plan,
                       std::size_t scalar_bytes)
    : sessions_{std::move(sessions)},
      precision_{scalar_bytes == sizeof(float) && !plan.in_double ? numerics::formula::Precision::narrow
                                                                  : numerics::formula::Precision::wide} {
  const opencl::Device& device = session().device();
  group_ =
      std::min<Index>(device.is_gpu ? group_of_gpu : group_of_cpu, static_cast<Index>(device.largest_group));
  form_ = form_of(device, group_);
  measures_form_ = !plan.vectors_only && forced_form() == measured_form;
  require_no_gaps(device_gaps(plan.program), device.name);
  require_precision(device, precision_);
  smooth_ = std::make_unique<SmoothTables>(plan.program, precision_, plan.kernel);
  if (plan.vectors_only) make_vectors(plan);
}

void DevicePlan::make_vectors(const GramPlan& plan) {
  const opencl::Device& device = session().device();
  const bool large = device.is_gpu && device.largest_group >= large_square_side * large_square_side;
  const Index side = large ? large_square_side : small_square_side;
  const StateLayout& layout = plan.any_layout();
  std::vector<VectorSource::Source> inputs;
  for (const Instruction& instruction : plan.program.pair_rows.instructions)
    if (is_input(plan, instruction.node))
      inputs.push_back(
          {instruction.node, vector_channels(plan, instruction.node), layout.offset[instruction.node]});
  VectorSource source(plan.program, layout, inputs, precision_, plan.kernel);
  vectors_.emplace(
      DeviceVectorPlan{std::move(source), std::move(inputs), product_source(precision_, side), side});
}

ChainSourceOptions DevicePlan::source_options(Kernel kernel) const {
  const opencl::Device& device = session().device();
  return {.precision = precision_,
          .kernel = kernel,
          .group = group_,
          .form = form_,
          .largest_group = device.largest_group,
          .local_memory = device.local_memory};
}

void DevicePlan::require_memory(const DevicePair& pair) const {
  const opencl::Device& device = session().device();
  for (const DeviceStep& step : pair.steps)
    if (step.local_bytes > device.local_memory)
      throw DeviceError(fmt::format(
          "device: the layers before {} need {} bytes of local memory for each work-group, {} has {}; choose "
          "float, smaller inputs or the device cpu",
          step.path, step.local_bytes, device.name, device.local_memory));
  const std::uint64_t bytes =
      static_cast<std::uint64_t>(pair.kept) *
      (precision_ == numerics::formula::Precision::wide ? sizeof(double) : sizeof(float));
  if (bytes > device.largest_buffer)
    throw DeviceError(
        fmt::format("device: the covariances that the layers before {} keep need {} bytes for each pair, {} "
                    "has {} for a buffer; "
                    "choose float, smaller inputs or the device cpu",
                    pair.steps.back().path, bytes, device.name, device.largest_buffer));
}

const DevicePair& DevicePlan::pair(const GramPlan& plan, const StateLayout& left,
                                   const StateLayout& right) const {
  const std::scoped_lock lock(making_);
  std::tuple key(left.shape, right.shape, to_string(form_));
  if (const auto found = pairs_.find(key); found != pairs_.end()) return found->second;
  // It is kept once it is complete: the next caller must not find what an error left of it.
  return pairs_.emplace(std::move(key), steps_of(plan, left, right)).first->second;
}

DevicePair DevicePlan::steps_of(const GramPlan& plan, const StateLayout& left,
                                const StateLayout& right) const {
  const PairGeometry geometry =
      make_geometry(plan.program, left.shape, right.shape, Purpose::result, plan.demand_everything);
  DevicePair pair = pair_steps(plan.program, geometry, left, right, source_options(plan.kernel));
  require_memory(pair);
  return pair;
}

DeviceForm DevicePlan::form() const {
  const std::scoped_lock lock(making_);
  return form_;
}

void DevicePlan::measure_form(const GramPlan& plan, const StateLayout& left, const StateLayout& right,
                              const std::function<double(const DevicePair&)>& seconds_of) const {
  const std::scoped_lock lock(making_);
  if (!measures_form_) return;
  const DeviceForm usual = form_;
  const opencl::Device& device = session().device();
  // Steps take what fits their planes: forms that do not differ there have the source of one that was timed.
  const FormLimits limits{.lanes = group_,
                          .largest_group = device.largest_group,
                          .local_memory = device.local_memory,
                          .plane_bytes = 0,
                          .shares = most_side_by_side};
  try {
    form_ = search_form(limits, [&](const DeviceForm& form) {
      form_ = form;
      try {
        return seconds_of(steps_of(plan, left, right));
      } catch (const DeviceError&) {
        if (form == usual) throw;
        return std::numeric_limits<double>::infinity();
      }
    });
  } catch (...) {
    form_ = usual;
    throw;
  }
  measures_form_ = false;
}

const DevicePair& DevicePlan::records(const GramPlan& plan, const StateLayout& state) const {
  const std::scoped_lock lock(making_);
  if (const auto found = records_.find(state.shape); found != records_.end()) return found->second;
  const PairGeometry geometry = make_geometry(plan.program, state.shape, state.shape, Purpose::state, false);
  DevicePair pair = record_steps(plan.program, geometry, state, source_options(Kernel::nngp_only));
  require_memory(pair);
  return records_.emplace(state.shape, std::move(pair)).first->second;
}

std::size_t DevicePlan::state_memory(std::size_t wanted) const {
  const opencl::Device& device = session().device();
  const std::scoped_lock lock(asking_);
  if (room_.is_all || wanted / 2 <= room_.bytes / 2)
    return room_.is_all ? std::min(wanted, room_.bytes) : wanted;
  // Half of a device's memory is left to kept states of other plans, to sums, and to other programs.
  const std::uint64_t free = std::min(session().free_memory().value_or(device.memory), device.memory);
  const auto most =
      static_cast<std::size_t>(std::min({std::uint64_t{wanted}, free / 2, 2 * device.largest_buffer}));
  room_.bytes = 2 * session().room_for_two(most / 2, least_state_bytes);
  // What is free changes while others work: all of a run's blocks must have one size.
  room_.is_all = room_.bytes / 2 < wanted / 2;
  return room_.is_all ? room_.bytes : wanted;
}

Index DevicePlan::tile_side(const GramPlan& plan, const Shape& shape) const {
  const StateLayout& layout = plan.state_layouts.at(shape);
  Index bytes = 1;
  for (const DeviceStep& step : pair(plan, layout, layout).steps)
    if (step.sums) bytes += step.shares * 4 * static_cast<Index>(sizeof(double));
  const auto side =
      static_cast<Index>(std::sqrt(static_cast<double>(most_sum_bytes) / static_cast<double>(bytes)));
  return std::clamp<Index>(side, 1, largest_side);
}

}  // namespace widelimit
