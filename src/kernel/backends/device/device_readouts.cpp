#include "kernel/backends/device/device_readouts.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "kernel/backends/device/device_plan.hpp"
#include "kernel/backends/gram_plan.hpp"

namespace widelimit {
namespace {

/// A form is timed by the best of some runs of as many pairs as the usual one computes in this time, by the time of the
/// first ones.
constexpr double measured_seconds = 0.02;
constexpr std::size_t first_pairs = 4, most_pairs = 256;
constexpr int measured_runs = 3;

}  // namespace

template <typename Scalar>
DeviceReadouts<Scalar>::DeviceReadouts(const GramPlan& plan, StopRequest stop)
    : plan_{plan},
      device_{plan.device->next_device()},
      launcher_(plan.device->session(device_), plan.device->group(), plan.device->smooth(), stop) {}

template <typename Scalar>
void DeviceReadouts<Scalar>::run(const Tile<Scalar>& tile, const DeviceStates<Scalar>& left,
                                 const DeviceStates<Scalar>& right) {
  if (tile.pairs.empty()) return;
  std::vector<Pair> pairs;
  pairs.reserve(tile.pairs.size());
  for (Index n = 0; n < tile.pair_count(); ++n)
    pairs.push_back(
        {left.place(tile.left_of(n)), right.place(tile.right_of(n)), std::uint64_t{tile.pair(n).same_input}});
  if (plan_.device->chooses_form()) choose_form(tile, pairs, left.buffer(device_), right.buffer(device_));
  const DevicePair& steps = plan_.device->pair(plan_, tile.left[0]->layout(), tile.right[0]->layout());
  for (const DeviceStep& step : steps.steps)
    if (step.sums) entries_[step.sums->readout].assign(pairs.size(), {});
  launcher_.run(
      steps, pairs, left.buffer(device_), right.buffer(device_),
      [&](const DeviceStep& step, Index first, std::span<const Scalar> sums) { add_up(step, first, sums); });
}

template <typename Scalar>
void DeviceReadouts<Scalar>::choose_form(const Tile<Scalar>& tile, std::span<const Pair> pairs,
                                         const opencl::Buffer& left, const opencl::Buffer& right) {
  const auto seconds_of = [&](const DevicePair& steps, std::size_t some) {
    const auto start = std::chrono::steady_clock::now();
    launcher_.run(steps, pairs.first(some), left, right, [](const auto&...) {});
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
           static_cast<double>(some);
  };
  const auto try_pair = [&](const DevicePair& steps) {
    static_cast<void>(seconds_of(steps, 1));  // Compiles.
    return seconds_of(steps, std::min(pairs.size(), first_pairs));
  };
  std::size_t count = 0;  // The same for all forms.
  const auto measure = [&](const DevicePair& steps) {
    if (count == 0) {
      const auto most = static_cast<double>(std::min(pairs.size(), most_pairs));
      count = static_cast<std::size_t>(std::clamp(measured_seconds / try_pair(steps), 1.0, most));
    }
    double least = std::numeric_limits<double>::infinity();
    static_cast<void>(seconds_of(steps, 1));
    for (int n = 0; n < measured_runs; ++n) least = std::min(least, seconds_of(steps, count));
    return least;
  };
  plan_.device->choose_form(plan_, tile.left[0]->layout(), tile.right[0]->layout(), {try_pair, measure});
}

template <typename Scalar>
void DeviceReadouts<Scalar>::add_up(const DeviceStep& step, Index first, std::span<const Scalar> sums) {
  const auto [readout, weight] = *step.sums;
  Entry* entry = entries_.at(readout).data() + first;
  const auto numbers = static_cast<std::size_t>(4 * step.shares);
  for (; !sums.empty(); sums = sums.subspan(numbers), ++entry) {
    for (std::size_t i = 0; i < numbers; i += 4) {
      entry->nngp += static_cast<double>(sums[i]) + static_cast<double>(sums[i + 1]);
      entry->ntk += static_cast<double>(sums[i + 2]) + static_cast<double>(sums[i + 3]);
    }
    *entry = {weight * entry->nngp, weight * entry->ntk};
  }
}

template class DeviceReadouts<float>;
template class DeviceReadouts<double>;

}  // namespace widelimit
