#include "kernel/backends/device/device_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernel/backends/device/device_support.hpp"
#include "kernel/backends/gram_plan.hpp"
#include "kernel/backends/source_values.hpp"
#include "widelimit/device_error.hpp"

namespace widelimit {
namespace {

/// Work-items of a group: on a GPU enough to hide latencies, on a CPU, which runs them one after the other, a few
/// vectors.
constexpr Index group_of_gpu = 128, group_of_cpu = 64;

Index group_of(const opencl::Device& device) {
  return std::min<Index>(device.is_gpu ? group_of_gpu : group_of_cpu,
                         static_cast<Index>(device.largest_group));
}

const StateLayout& largest_layout(const GramPlan& plan) {
  return std::max_element(
             plan.state_layouts.begin(), plan.state_layouts.end(),
             [](const auto& one, const auto& other) { return one.second.size < other.second.size; })
      ->second;
}

/// Items along the square work-groups of products.
constexpr Index large_square_side = 16, small_square_side = 8;

/// Of each of two blocks of states: with less, computing on the device makes no sense.
constexpr std::size_t least_state_bytes = std::size_t{1} << 20;

/// Bytes of sums that a tile leaves on the device.
constexpr Index most_sum_bytes = Index{64} << 20, largest_side = 256;

}  // namespace

DevicePlan::DevicePlan(std::vector<std::shared_ptr<opencl::Session>> sessions, const GramPlan& plan,
                       std::size_t scalar_bytes, Index pairs)
    : sessions_{std::move(sessions)},
      precision_{scalar_bytes == sizeof(float) && !plan.in_double ? numerics::formula::Precision::narrow
                                                                  : numerics::formula::Precision::wide},
      group_{group_of(session().device())},
      choice_(session().device(), group_, pairs) {
  const opencl::Device& device = session().device();
  if (plan.vectors_only) choice_.take_usual();
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

ChainSourceOptions DevicePlan::source_options(Kernel kernel, const DeviceForm& form) const {
  const opencl::Device& device = session().device();
  return {.precision = precision_,
          .kernel = kernel,
          .group = group_,
          .form = form,
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
  std::tuple key(left.shape, right.shape, to_string(choice_.form()));
  if (const auto found = pairs_.find(key); found != pairs_.end()) return found->second;
  // It is kept once it is complete: the next caller must not find what an error left of it.
  return pairs_.emplace(std::move(key), steps_of(plan, left, right, choice_.form())).first->second;
}

DevicePair DevicePlan::steps_of(const GramPlan& plan, const StateLayout& left, const StateLayout& right,
                                const DeviceForm& form) const {
  const PairGeometry geometry =
      make_geometry(plan.program, left.shape, right.shape, Purpose::result, plan.demand_everything);
  DevicePair pair = pair_steps(plan.program, geometry, left, right, source_options(plan.kernel, form));
  require_memory(pair);
  return pair;
}

DeviceForm DevicePlan::form() const {
  const std::scoped_lock lock(making_);
  return choice_.form();
}

std::optional<FormKey> DevicePlan::form_key(const GramPlan& plan) const {
  const StateLayout& largest = largest_layout(plan);
  std::vector<std::string> sources;
  bool has_forms = false;
  for (DeviceStep& step : steps_of(plan, largest, largest, choice_.usual()).steps) {
    has_forms = has_forms || step.form;
    sources.push_back(std::move(step.source));
  }
  if (!has_forms) return {};
  const opencl::Device& device = session().device();
  return FormKey{device.name, device.platform, device.driver, chain_digest(sources)};
}

std::string DevicePlan::form_text(const GramPlan& plan) const {
  const std::scoped_lock lock(making_);
  const auto key = form_key(plan);
  return key ? choice_.text(*key) : "the only form that their steps have";
}

void DevicePlan::choose_form(const GramPlan& plan, const StateLayout& left, const StateLayout& right,
                             const StepTrials& trials) const {
  const std::scoped_lock lock(making_);
  if (!choice_.is_open()) return;
  const auto key = form_key(plan);
  if (!key) return choice_.take_usual();
  const Shape& largest = largest_layout(plan).shape;
  const auto in_form = [&](const auto& trial) {
    return [&](const DeviceForm& form) { return trial(steps_of(plan, left, right, form)); };
  };
  choice_.settle(*key, left.shape == largest && right.shape == largest,
                 {in_form(trials.try_pair), in_form(trials.measure)});
}

void DevicePlan::measure_anew() const {
  const std::scoped_lock lock(making_);
  if (!vectors_) choice_.measure_anew();
}

const DevicePair& DevicePlan::records(const GramPlan& plan, const StateLayout& state) const {
  const std::scoped_lock lock(making_);
  if (const auto found = records_.find(state.shape); found != records_.end()) return found->second;
  const PairGeometry geometry = make_geometry(plan.program, state.shape, state.shape, Purpose::state, false);
  DevicePair pair =
      record_steps(plan.program, geometry, state, source_options(Kernel::nngp_only, choice_.form()));
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
