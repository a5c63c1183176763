#include "kernel/backends/device/device_launcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "widelimit/device_error.hpp"

namespace widelimit {
namespace {

/// Work-groups of one launch: a few hundredths of a second on a GPU, after which a stop may be asked for.
constexpr Index groups_of_launch = 1 << 16;

/// What is kept of the pairs of a launch: enough of them to keep a GPU busy, and less than this share of its memory,
/// because every thread has its own.
constexpr std::uint64_t kept_bytes_wanted = std::uint64_t{512} << 20, kept_share = 128;

}  // namespace

template <typename Scalar>
DeviceLauncher<Scalar>::DeviceLauncher(opencl::Session& session, Index group, SmoothTables& smooth,
                                       StopRequest stop)
    : session_{session}, group_{group}, smooth_{smooth}, stop_{stop}, queue_{session.queue()} {}

template <typename Scalar>
Index DeviceLauncher<Scalar>::pairs_at_once(const DevicePair& steps) const {
  const opencl::Device& device = session_.device();
  Index most = groups_of_launch / steps.most_shares();
  if (steps.kept > 0) {
    const std::uint64_t room =
        std::min({kept_bytes_wanted, device.memory / kept_share, device.largest_buffer});
    most =
        std::min(most, static_cast<Index>(room / (static_cast<std::uint64_t>(steps.kept) * sizeof(Scalar))));
  }
  return std::max<Index>(most, 1);
}

template <typename Scalar>
void DeviceLauncher<Scalar>::run(const DevicePair& steps, std::span<const Pair> pairs,
                                 const opencl::Buffer& left, const opencl::Buffer& right,
                                 const UseSums& use) {
  if (pairs.empty()) return;
  session_.reserve(pairs_, pairs.size_bytes());
  queue_.write(pairs_, pairs.data(), pairs.size_bytes());
  smooth_numbers_ = smooth_.buffer(session_);
  std::vector<std::string> sources;
  for (const DeviceStep& step : steps.steps) sources.push_back(step.source);
  session_.build_together(sources);
  const auto count = static_cast<Index>(pairs.size());
  const Index at_once =
      session_.reserve_most(kept_, std::min(pairs_at_once(steps), count), queue_, [&](Index some) {
        return static_cast<std::size_t>(some * std::max<Index>(steps.kept, 1)) * sizeof(Scalar);
      });
  for (Index first = 0; first < count; first += at_once) {
    stop_.check();
    const Launch launch{left, right, first, std::min(at_once, count - first)};
    for (const DeviceStep& step : steps.steps) session_.naming(step.path, [&] { run(step, launch, use); });
  }
  // The pairs and offsets must stay until the kernels have read them.
  queue_.finish();
}

template <typename Scalar>
void DeviceLauncher<Scalar>::run(const DeviceStep& step, const Launch& launch, const UseSums& use) {
  const std::size_t offset_bytes = step.offsets.size() * sizeof(int);
  session_.reserve(offsets_, offset_bytes);
  queue_.write(offsets_, step.offsets.data(), offset_bytes);
  const auto groups = static_cast<std::size_t>(launch.count * step.shares);
  session_.reserve(sums_, 4 * (step.sums ? groups : 1) * sizeof(Scalar));
  opencl::Kernel kernel = session_.kernel(step.source, "run");
  kernel.set(0, launch.left);
  kernel.set(1, launch.right);
  kernel.set(2, pairs_);
  kernel.set(3, offsets_);
  kernel.set(4, static_cast<std::uint64_t>(launch.first));
  kernel.set(5, static_cast<std::uint64_t>(step.shares));
  kernel.set(6, sums_);
  kernel.set(7, kept_);
  kernel.set(8, table(step));
  kernel.set(9, *smooth_numbers_);
  const DeviceForm form = step.form.value_or(DeviceForm{.items = group_});
  queue_.run(kernel, groups / static_cast<std::size_t>(form.planes),
             static_cast<std::size_t>(form.items * form.planes));
  if (!step.sums) return;
  read_.resize(4 * groups);
  queue_.read(sums_, read_.data(), read_.size() * sizeof(Scalar));
  use(step, launch.first, read_);
}

template <typename Scalar>
const opencl::Buffer& DeviceLauncher<Scalar>::table(const DeviceStep& step) {
  // Kernels without a table get any memory.
  if (step.table == nullptr) return pairs_;
  const auto [found, fresh] = tables_.try_emplace(step.table);
  if (!fresh) return found->second;
  std::vector<Scalar> numbers;
  for (const double number : *step.table) {
    numbers.push_back(static_cast<Scalar>(number));
    if (std::isfinite(number) && !std::isfinite(numbers.back()))
      throw DeviceError(
          fmt::format("device: the number {}, made of its parameters, is beyond the range of float; choose "
                      "double precision, or "
                      "the device cpu, which computes it",
                      number));
  }
  found->second = session_.buffer(numbers.size() * sizeof(Scalar));
  queue_.write(found->second, numbers.data(), numbers.size() * sizeof(Scalar));
  return found->second;
}

template class DeviceLauncher<float>;
template class DeviceLauncher<double>;

}  // namespace widelimit
