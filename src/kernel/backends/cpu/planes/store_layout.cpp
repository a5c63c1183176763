#include "kernel/backends/cpu/planes/store_layout.hpp"

namespace widelimit {

StoreLayout StoreLayout::matrix(const Index3& left, const Index3& right) {
  StoreLayout layout;
  layout.is_matrix_ = true;
  layout.left_ = left;
  layout.right_ = right;
  layout.size_ = product(left) * product(right);
  return layout;
}

StoreLayout StoreLayout::planes(const Index3& left, const Index3& right, const Offsets& offsets) {
  StoreLayout layout;
  layout.left_ = left;
  layout.right_ = right;
  for (std::size_t k = 0; k < 3; ++k) {
    layout.number_[k].assign(static_cast<std::size_t>(left[k] + right[k] - 1), -1);
    for (const Index offset : offsets.axis[k])
      layout.number_[k][static_cast<std::size_t>(offset + left[k] - 1)] = layout.count_[k]++;
  }
  for (const Index x : offsets.axis[0])
    for (const Index y : offsets.axis[1]) {
      // The number of rows of a plane depends on the first two offsets only, the length of its rows on the last one.
      const Index3 extent = Box(left, right, {x, y, 0}).extent;
      layout.first_row_.push_back(layout.rows_);
      layout.rows_ += extent[0] * extent[1];
    }
  for (const Index z : offsets.axis[2]) {
    const Index row_length = Box(left, right, {0, 0, z}).extent[2];
    layout.blocks_.push_back({layout.size_, row_length});
    layout.size_ += layout.rows_ * row_length;
  }
  return layout;
}

Index StoreLayout::entry(const Index3& a, const Index3& b) const {
  if (is_matrix_) return position_number(a, left_) * product(right_) + position_number(b, right_);
  const Box box(left_, right_, {b[0] - a[0], b[1] - a[1], b[2] - a[2]});
  const auto [start, step] = place(box);
  return start + (a[0] - box.origin[0]) * step[0] + (a[1] - box.origin[1]) * step[1] + a[2] - box.origin[2];
}

}  // namespace widelimit
