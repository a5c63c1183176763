#include "kernel/plan/geometry.hpp"

#include <algorithm>

#include "network/window.hpp"

namespace widelimit {

Index3 three_axes(const Shape& shape) {
  Index3 sizes{1, 1, 1};
  std::copy(shape.begin(), shape.end(), sizes.end() - static_cast<Index>(shape.size()));
  return sizes;
}

Index product(const Index3& sizes) { return sizes[0] * sizes[1] * sizes[2]; }

/// A position's number depends on the sizes of the later axes as soon as it is not the first one along an earlier
/// axis.
bool numbers_agree(const Index3& left, const Index3& right) {
  // Only positions that both inputs have are compared.
  const auto has_several = [&](std::size_t axis) { return std::min(left[axis], right[axis]) > 1; };
  const bool rows_agree = left[2] == right[2] || !has_several(1);
  const bool slabs_agree = left[1] * left[2] == right[1] * right[2] || !has_several(0);
  return rows_agree && slabs_agree;
}

Window3::Window3(const Window& window)
    : size{three_axes(window.sizes)}, stride{three_axes(window.strides)}, padding{window.padding} {
  std::copy(window.begin.begin(), window.begin.end(), begin.end() - static_cast<Index>(window.begin.size()));
  std::copy(window.end.begin(), window.end.end(), end.end() - static_cast<Index>(window.end.size()));
}

Index3 Window3::front(const Index3& input) const {
  Index3 result;
  for (std::size_t k = 0; k < 3; ++k)
    result[k] = padding_front(input[k], size[k], stride[k], padding) - begin[k];
  return result;
}

Index3 Window3::output(const Index3& input) const {
  Index3 result;
  for (std::size_t k = 0; k < 3; ++k) {
    const Index last = end[k] == -1 ? input[k] : std::min(end[k], input[k]);
    result[k] = window_output_size(last - begin[k], size[k], stride[k], padding);
  }
  return result;
}

bool Window3::is_single_position() const {
  return size == Index3{1, 1, 1} && stride == Index3{1, 1, 1} && begin == Index3{0, 0, 0} &&
         end == Index3{-1, -1, -1};
}

}  // namespace widelimit
