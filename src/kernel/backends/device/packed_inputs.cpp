#include "kernel/backends/device/packed_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "widelimit/device_error.hpp"

namespace widelimit {
namespace {

constexpr std::size_t record_group = 64;

}  // namespace

template <typename Scalar>
PackedInputs<Scalar>::PackedInputs(const MatrixFreeSource& source, opencl::Session& session, Index count)
    : source_{source}, session_{session}, count_{count} {
  const auto bytes = static_cast<std::size_t>(blocks() * side * source.size()) * sizeof(Scalar);
  const opencl::Device& device = session.device();
  if (bytes > device.largest_buffer)
    throw DeviceError(fmt::format(
        "device: {} inputs take {} bytes in one piece, {} gives {}; choose float, or fewer inputs", count,
        bytes, device.name, device.largest_buffer));
  blocks_ = session.buffer(bytes);
  numbers_ = session.buffer(static_cast<std::size_t>(blocks() * side) * sizeof(std::uint32_t));
  opencl::Queue queue = session.queue();
  write_numbers({}, MatrixFreeSource::no_number, queue);
}

template <typename Scalar>
PackedInputs<Scalar>::PackedInputs(const MatrixFreeSource& source, opencl::Session& session,
                                   const PackedInputs& all, std::span<const Index> numbers)
    : PackedInputs(source, session, static_cast<Index>(numbers.size())) {
  opencl::Queue queue = session.queue();
  // The last block is filled up with copies that nobody reads.
  write_numbers({numbers.begin(), numbers.end()}, 0, queue);
  opencl::Kernel kernel = session.kernel(source.gather(), "gather");
  const auto places = static_cast<std::uint64_t>(blocks() * side);
  kernel.set(0, all.buffer());
  kernel.set(1, numbers_);
  kernel.set(2, places);
  kernel.set(3, blocks_);
  queue.run(kernel, places / record_group, record_group);
  queue.finish();
}

template <typename Scalar>
void PackedInputs<Scalar>::write_numbers(std::vector<std::uint32_t> numbers, std::uint32_t rest,
                                         opencl::Queue& queue) {
  numbers.resize(static_cast<std::size_t>(blocks() * side), rest);
  queue.write(numbers_, numbers.data(), numbers.size() * sizeof(std::uint32_t));
}

template <typename Scalar>
void PackedInputs<Scalar>::set_numbers_in_order(opencl::Queue& queue) {
  std::vector<std::uint32_t> numbers(static_cast<std::size_t>(blocks() * side));
  std::iota(numbers.begin(), numbers.end(), 0U);
  write_numbers(std::move(numbers), 0, queue);
}

template <typename Scalar>
std::vector<Scalar> PackedInputs<Scalar>::record(const std::vector<Scalar>& numbers,
                                                 const opencl::Buffer& smooth, opencl::Queue& queue) const {
  queue.write(blocks_, numbers.data(), numbers.size() * sizeof(Scalar));
  const auto places = static_cast<std::uint64_t>(blocks() * side);
  std::vector<Scalar> own(2 * places);
  const opencl::Buffer kernels = session_.buffer(own.size() * sizeof(Scalar));
  opencl::Kernel kernel = session_.kernel(source_.record(), "record");
  kernel.set(0, blocks_);
  kernel.set(1, places);
  kernel.set(2, kernels);
  kernel.set(3, smooth);
  queue.run(kernel, places / record_group, record_group);
  queue.read(kernels, own.data(), own.size() * sizeof(Scalar));
  own.resize(static_cast<std::size_t>(2 * count_));
  return own;
}

template class PackedInputs<float>;
template class PackedInputs<double>;

}  // namespace widelimit
