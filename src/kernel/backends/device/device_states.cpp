#include "kernel/backends/device/device_states.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "kernel/backends/device/device_launcher.hpp"
#include "kernel/backends/device/device_plan.hpp"
#include "kernel/backends/device/dual_attention_steps.hpp"
#include "kernel/backends/gram_plan.hpp"

namespace widelimit {
namespace {

/// The states have the variances that pairs multiply, from the CPU.
template <typename Scalar>
void check_logits(const Program& program, const InputState<Scalar>& state) {
  const bool wide = sizeof(Scalar) == sizeof(double);
  for (NodeId id = 0; id < program.graph.nodes.size(); ++id) {
    const Node& node = program.graph.nodes[id];
    const DualAttentionStage* stage = dual_attention(node.operation);
    if (stage == nullptr || stage->form().is_identity) continue;
    const Index positions = position_count(node_shapes(program.graph, state.layout().shape)[id]);
    const Scalar* first = state.extra(id);
    check_logits(node, static_cast<double>(*std::max_element(first, first + positions)),
                 wide ? numerics::formula::Precision::wide : numerics::formula::Precision::narrow);
  }
}

}  // namespace

template <typename Scalar>
DeviceStates<Scalar>::DeviceStates(const GramPlan& plan, const StateBlock<Scalar>& block, StopRequest stop)
    : first_{block[block.begin()].numbers()}, count_{block.end() - block.begin()} {
  if (!plan.vectors_only)
    for (Index i = block.begin(); i < block.end(); ++i) check_logits(plan.program, block[i]);
  for (Index i = block.begin(); i < block.end(); ++i) plan.device->smooth().require(plan.program, block[i]);
  for (const auto& session : plan.device->sessions()) {
    Place& place = places_.emplace_back(
        Place{session->buffer(static_cast<std::size_t>(block.size()) * sizeof(Scalar)), {}});
    session->queue().write(place.buffer, first_, place.buffer.bytes());
    if (plan.vectors_only)
      session->naming("the inputs", [&] { record_vectors(*plan.device, *session, place); });
    else
      record_positions(plan, *session, place, block, stop);
  }
}

template <typename Scalar>
void DeviceStates<Scalar>::record_vectors(const DevicePlan& plan, opencl::Session& session, Place& place) {
  const VectorSource& source = plan.vectors().source;
  place.numbers = session.buffer(static_cast<std::size_t>(source.numbers() * count_) * sizeof(Scalar));
  opencl::Kernel kernel = session.kernel(source.record(), "record");
  kernel.set(0, place.buffer);
  kernel.set(1, static_cast<std::uint64_t>(count_));
  kernel.set(2, place.numbers);
  const auto smooth = plan.smooth().buffer(session);
  kernel.set(3, *smooth);
  const Index group = plan.group();
  opencl::Queue queue = session.queue();
  queue.run(kernel, static_cast<std::size_t>((count_ + group - 1) / group), static_cast<std::size_t>(group));
  queue.finish();
}

template <typename Scalar>
void DeviceStates<Scalar>::record_positions(const GramPlan& plan, opencl::Session& session,
                                            const Place& place, const StateBlock<Scalar>& block,
                                            StopRequest stop) {
  const DevicePlan& device = *plan.device;
  DeviceLauncher<Scalar> launcher(session, device.group(), device.smooth(), stop);
  using Pair = typename DeviceLauncher<Scalar>::Pair;
  std::map<const StateLayout*, std::vector<Pair>> itself;
  for (Index i = block.begin(); i < block.end(); ++i)
    itself[&block[i].layout()].push_back({this->place(block[i]), this->place(block[i]), 1});
  for (const auto& [layout, inputs] : itself)
    launcher.run(device.records(plan, *layout), inputs, place.buffer, place.buffer, {});
}

template class DeviceStates<float>;
template class DeviceStates<double>;

}  // namespace widelimit
