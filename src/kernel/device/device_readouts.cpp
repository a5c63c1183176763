#include "kernel/device/device_readouts.hpp"

#include <algorithm>
#include <cstdint>

#include "kernel/run/gram_plan.hpp"

namespace widelimit {
namespace {

/// Work-groups of one launch: a few hundredths of a second on a GPU, after which a stop may be asked for.
constexpr Index groups_of_launch = 1 << 16;

}  // namespace

template <typename Scalar>
DeviceReadouts<Scalar>::DeviceReadouts(const GramPlan& plan, StopRequest stop)
    : plan_{plan}, device_{*plan.device}, queue_{device_.session().queue()}, stop_{stop} {}

template <typename Scalar>
void DeviceReadouts<Scalar>::reserve(opencl::Buffer& buffer, std::size_t bytes) const {
  if (buffer.bytes() < bytes) buffer = device_.session().buffer(bytes);
}

template <typename Scalar>
void DeviceReadouts<Scalar>::run(const Tile<Scalar>& tile, const DeviceStates<Scalar>& left,
                                 const DeviceStates<Scalar>& right) {
  if (tile.pairs.empty()) return;
  std::vector<std::uint64_t> numbers;
  numbers.reserve(3 * tile.pairs.size());
  for (Index n = 0; n < tile.pair_count(); ++n) {
    numbers.push_back(left.place(tile.left_of(n)));
    numbers.push_back(right.place(tile.right_of(n)));
    numbers.push_back(tile.pair(n).same_input ? 1 : 0);
  }
  const std::size_t bytes = numbers.size() * sizeof(std::uint64_t);
  reserve(pairs_, bytes);
  queue_.write(pairs_, numbers.data(), bytes);
  const DevicePair& pair = device_.pair(plan_, tile.left[0]->layout(), tile.right[0]->layout());
  for (const DevicePair::Step& step : pair.steps) run(step, tile.pair_count(), left, right);
}

template <typename Scalar>
void DeviceReadouts<Scalar>::run(const DevicePair::Step& step, Index pairs, const DeviceStates<Scalar>& left,
                                 const DeviceStates<Scalar>& right) {
  opencl::Session& session = device_.session();
  const std::size_t offset_bytes = step.offsets.size() * sizeof(int);
  reserve(offsets_, offset_bytes);
  queue_.write(offsets_, step.offsets.data(), offset_bytes);
  const Index at_once = std::clamp<Index>(groups_of_launch / step.shares, 1, pairs);
  // The sums of one launch, however many pairs a tile has.
  read_.resize(static_cast<std::size_t>(4 * at_once * step.shares));
  reserve(sums_, read_.size() * sizeof(Scalar));
  std::vector<Entry>& entries = entries_[step.readout];
  entries.assign(static_cast<std::size_t>(pairs), {});
  opencl::Kernel kernel = session.kernel(step.source, "run");
  kernel.set(0, left.buffer());
  kernel.set(1, right.buffer());
  kernel.set(2, pairs_);
  kernel.set(3, offsets_);
  kernel.set(5, static_cast<std::uint64_t>(step.shares));
  kernel.set(6, sums_);
  for (Index first = 0; first < pairs; first += at_once) {
    stop_.check();
    const Index count = std::min(at_once, pairs - first);
    kernel.set(4, static_cast<std::uint64_t>(first));
    queue_.run(kernel, static_cast<std::size_t>(count * step.shares),
               static_cast<std::size_t>(device_.group()));
    queue_.read(sums_, read_.data(), static_cast<std::size_t>(4 * count * step.shares) * sizeof(Scalar));
    add_up(step,
           std::span(entries).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
  }
}

template <typename Scalar>
void DeviceReadouts<Scalar>::add_up(const DevicePair::Step& step, std::span<Entry> entries) const {
  const Scalar* next = read_.data();
  for (Entry& entry : entries) {
    for (Index share = 0; share < step.shares; ++share, next += 4) {
      entry.nngp += static_cast<double>(next[0]) + static_cast<double>(next[1]);
      entry.ntk += static_cast<double>(next[2]) + static_cast<double>(next[3]);
    }
    entry = {step.weight * entry.nngp, step.weight * entry.ntk};
  }
}

template class DeviceReadouts<float>;
template class DeviceReadouts<double>;

}  // namespace widelimit
