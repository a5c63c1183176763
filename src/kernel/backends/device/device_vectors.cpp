#include "kernel/backends/device/device_vectors.hpp"

#include <algorithm>
#include <cstdint>

#include "kernel/backends/device/device_plan.hpp"
#include "kernel/backends/gram_plan.hpp"
#include "kernel/inputs/multiples.hpp"

namespace widelimit {
namespace {

std::size_t groups_of(Index items, Index group) {
  return static_cast<std::size_t>((items + group - 1) / group);
}

}  // namespace

template <typename Scalar>
DeviceVectors<Scalar>::DeviceVectors(const GramPlan& plan, StopRequest stop)
    : plan_{plan},
      device_{*plan.device},
      number_{device_.next_device()},
      queue_{device_.session(number_).queue()},
      stop_{stop} {}

template <typename Scalar>
typename DeviceVectors<Scalar>::Side DeviceVectors<Scalar>::side(const StateRange<Scalar>& range) {
  const Index first = range.block->begin();
  return {*range.block->on_device(), range.begin - first, range.end - first};
}

template <typename Scalar>
void DeviceVectors<Scalar>::begin(const StateRange<Scalar>& left, const StateRange<Scalar>& right,
                                  Batches batches) {
  const bool one_block = left.block->on_device() == right.block->on_device();
  run(side(left), side(right), batches == Batches::one && one_block);
}

template <typename Scalar>
TileRows<Scalar> DeviceVectors<Scalar>::rows(Index first, Index /*end*/) {
  return {row(first), columns_};
}

template <typename Scalar>
void DeviceVectors<Scalar>::diagonal(const StateRange<Scalar>& inputs,
                                     const typename TileBackend<Scalar>::Visit& visit) {
  constexpr Index together = 64;
  for (Index begin = inputs.begin; begin < inputs.end; begin += together) {
    const Index end = std::min(begin + together, inputs.end);
    const Side part = side({inputs.block, begin, end});
    run(part, part, true);
    for (Index i = begin; i < end; ++i) visit(i, row(i - begin) + (i - begin));
  }
}

template <typename Scalar>
void DeviceVectors<Scalar>::run(const Side& left, const Side& right, bool symmetric) {
  rows_ = left.size();
  columns_ = right.size();
  opencl::Session& session = device_.session(number_);
  const auto sources = device_.vectors().inputs.size();
  const auto entries = static_cast<std::size_t>(rows_ * columns_);
  const std::size_t kernels = plan_.kernel == Kernel::with_ntk ? 2 : 1;
  session.reserve(products_, sources * entries * sizeof(Scalar));
  session.reserve(multiples_, entries);
  session.reserve(values_, kernels * entries * sizeof(Scalar));
  if (read_.bytes() < kernels * entries * sizeof(Scalar))
    read_ = session.host_memory(kernels * entries * sizeof(Scalar));
  stop_.check();
  const Graph& graph = plan_.program.graph;
  session.naming(graph.nodes[graph.output].path, [&] {
    for (std::size_t s = 0; s < sources; ++s) multiply(s, left, right, symmetric);
    evaluate(left, right, symmetric);
    queue_.read(values_, read_.data(), kernels * entries * sizeof(Scalar));
  });
}

template <typename Scalar>
void DeviceVectors<Scalar>::multiply(std::size_t source, const Side& left, const Side& right,
                                     bool symmetric) {
  const DeviceVectorPlan& vectors = device_.vectors();
  opencl::Kernel kernel = device_.session(number_).kernel(vectors.products, "products");
  // The variances of a source are two rows of the numbers of inputs.
  const auto set = [&](cl_uint first, const Side& side) {
    kernel.set(first, side.states.buffer(number_));
    kernel.set(first + 1, static_cast<std::uint64_t>(side.begin));
    kernel.set(first + 2, side.states.numbers(number_));
    kernel.set(first + 3, static_cast<std::uint64_t>(side.states.count()));
  };
  set(0, left);
  set(4, right);
  kernel.set(8, static_cast<std::int32_t>(rows_));
  kernel.set(9, static_cast<std::int32_t>(columns_));
  kernel.set(10, std::int32_t{symmetric});
  kernel.set(11, products_);
  kernel.set(12, multiples_);
  const VectorSource::Source& input = vectors.inputs[source];
  kernel.set(13, static_cast<std::int32_t>(input.channels));
  kernel.set(14, static_cast<std::uint64_t>(plan_.any_layout().size));
  kernel.set(15, static_cast<std::uint64_t>(input.first));
  kernel.set(16, static_cast<std::int32_t>(source));
  kernel.set(17, least_correlation_of_multiples<Scalar>(input.channels));
  const Index square = product_square(vectors.group_side);
  queue_.run(kernel, groups_of(rows_, square) * groups_of(columns_, square),
             static_cast<std::size_t>(vectors.group_side * vectors.group_side));
}

template <typename Scalar>
void DeviceVectors<Scalar>::evaluate(const Side& left, const Side& right, bool symmetric) {
  opencl::Kernel kernel = device_.session(number_).kernel(device_.vectors().source.values(), "values");
  const auto set = [&](cl_uint first, const Side& side) {
    kernel.set(first, side.states.numbers(number_));
    kernel.set(first + 1, static_cast<std::uint64_t>(side.begin));
    kernel.set(first + 2, static_cast<std::uint64_t>(side.states.count()));
  };
  set(0, left);
  set(3, right);
  kernel.set(6, static_cast<std::int32_t>(rows_));
  kernel.set(7, static_cast<std::int32_t>(columns_));
  kernel.set(8, std::int32_t{symmetric});
  kernel.set(9, products_);
  kernel.set(10, multiples_);
  kernel.set(11, values_);
  smooth_ = device_.smooth().buffer(device_.session(number_));
  kernel.set(12, *smooth_);
  queue_.run(kernel, groups_of(rows_ * columns_, device_.group()), static_cast<std::size_t>(device_.group()));
}

template <typename Scalar>
Plane<Scalar> DeviceVectors<Scalar>::row(Index left) {
  auto* nngp = static_cast<Scalar*>(read_.data()) + left * columns_;
  return {nngp, plan_.kernel == Kernel::with_ntk ? nngp + rows_ * columns_ : nullptr};
}

template class DeviceVectors<float>;
template class DeviceVectors<double>;

}  // namespace widelimit
