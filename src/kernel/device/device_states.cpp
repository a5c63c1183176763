#include "kernel/device/device_states.hpp"

#include <map>

#include "kernel/run/gram_plan.hpp"

namespace widelimit {

template <typename Scalar>
DeviceStates<Scalar>::DeviceStates(const GramPlan& plan, const StateBlock<Scalar>& block)
    : first_{block[block.begin()].numbers()},
      buffer_{plan.device->session().buffer(static_cast<std::size_t>(block.size()) * sizeof(Scalar))} {
  const DevicePlan& device = *plan.device;
  opencl::Session& session = device.session();
  opencl::Queue queue = session.queue();
  queue.write(buffer_, first_, buffer_.bytes());
  std::map<const StateLayout*, std::vector<std::uint64_t>> places;
  for (Index i = block.begin(); i < block.end(); ++i) places[&block[i].layout()].push_back(place(block[i]));
  for (const auto& [layout, of_layout] : places) {
    const std::size_t bytes = of_layout.size() * sizeof(std::uint64_t);
    const opencl::Buffer numbers = session.buffer(bytes);
    queue.write(numbers, of_layout.data(), bytes);
    for (const std::string& source : device.records(plan, *layout)) {
      opencl::Kernel kernel = session.kernel(source, "run");
      kernel.set(0, buffer_);
      kernel.set(1, numbers);
      queue.run(kernel, of_layout.size(), static_cast<std::size_t>(device.group()));
    }
    // The places must stay until the kernels have read them.
    queue.finish();
  }
}

template class DeviceStates<float>;
template class DeviceStates<double>;

}  // namespace widelimit
