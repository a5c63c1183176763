#include "layers/finite/patches.hpp"

#include "network/window.hpp"

namespace widelimit::finite {
namespace {

/// The coordinates of number `index` in a row-major box of these sizes.
std::vector<Index> coordinates(Index index, const std::vector<Index>& sizes) {
  std::vector<Index> place(sizes.size());
  for (std::size_t axis = sizes.size(); axis-- > 0;) {
    place[axis] = index % sizes[axis];
    index /= sizes[axis];
  }
  return place;
}

}  // namespace

Patches::Patches(const Window& window, const Shape& input)
    : output_shape_{window_output_shape(input, window)}, input_positions_{position_count(input)} {
  window_size_ = position_count(window.sizes);
  const Index outputs = output_positions();
  positions_.reserve(static_cast<std::size_t>(outputs * window_size_));
  for (Index output = 0; output < outputs; ++output) {
    const auto place = coordinates(output, output_shape_);
    for (Index tap = 0; tap < window_size_; ++tap) {
      const auto offset = coordinates(tap, window.sizes);
      Index position = 0;
      for (std::size_t axis = 0; axis < input.size() && position != outside; ++axis) {
        const Index size = input[axis];
        Index at = place[axis] * window.strides[axis] + offset[axis] -
                   padding_front(size, window.sizes[axis], window.strides[axis], window.padding);
        if (window.padding == Padding::circular) at = (at % size + size) % size;
        position = at < 0 || at >= size ? outside : position * size + at;
      }
      positions_.push_back(position);
    }
  }
}

template <typename Body>
void Patches::for_each_seen(Index inputs, const Body& body) const {
  const Index outputs = output_positions();
  for (Index input = 0; input < inputs; ++input)
    for (Index output = 0; output < outputs; ++output)
      for (Index tap = 0; tap < window_size_; ++tap)
        if (const Index position = seen(output, tap); position != outside)
          body(input * outputs + output, tap, input * input_positions_ + position);
}

template <typename Scalar>
Matrix<Scalar> Patches::gather(const Matrix<Scalar>& values, Index inputs) const {
  const Index channels = values.cols();
  Matrix<Scalar> patches = Matrix<Scalar>::Zero(inputs * output_positions(), window_size_ * channels);
  for_each_seen(inputs, [&](Index row, Index tap, Index from) {
    patches.row(row).segment(tap * channels, channels) = values.row(from);
  });
  return patches;
}

template <typename Scalar>
Matrix<Scalar> Patches::scatter(const Matrix<Scalar>& patches, Index inputs) const {
  const Index channels = patches.cols() / window_size_;
  Matrix<Scalar> values = Matrix<Scalar>::Zero(inputs * input_positions_, channels);
  for_each_seen(inputs, [&](Index row, Index tap, Index to) {
    values.row(to) += patches.row(row).segment(tap * channels, channels);
  });
  return values;
}

template <typename Scalar>
Matrix<Scalar> Patches::window_sums(const Matrix<Scalar>& values, Index inputs) const {
  Matrix<Scalar> sums = Matrix<Scalar>::Zero(inputs * output_positions(), values.cols());
  for_each_seen(inputs, [&](Index row, Index, Index from) { sums.row(row) += values.row(from); });
  return sums;
}

template <typename Scalar>
Matrix<Scalar> Patches::spread_sums(const Matrix<Scalar>& sums, Index inputs) const {
  Matrix<Scalar> values = Matrix<Scalar>::Zero(inputs * input_positions_, sums.cols());
  for_each_seen(inputs, [&](Index row, Index, Index to) { values.row(to) += sums.row(row); });
  return values;
}

template Matrix<float> Patches::gather(const Matrix<float>&, Index) const;
template Matrix<double> Patches::gather(const Matrix<double>&, Index) const;
template Matrix<float> Patches::scatter(const Matrix<float>&, Index) const;
template Matrix<double> Patches::scatter(const Matrix<double>&, Index) const;
template Matrix<float> Patches::window_sums(const Matrix<float>&, Index) const;
template Matrix<double> Patches::window_sums(const Matrix<double>&, Index) const;
template Matrix<float> Patches::spread_sums(const Matrix<float>&, Index) const;
template Matrix<double> Patches::spread_sums(const Matrix<double>&, Index) const;

}  // namespace widelimit::finite
