#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <span>
#include <utility>

#include "widelimit/network/shape.hpp"

namespace widelimit {

/// Numbers on a cache line boundary, zero at first.
template <typename Scalar>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(Index size)
      : size_{size}, data_{new (std::align_val_t{alignment}) Scalar[static_cast<std::size_t>(size)]()} {}
  AlignedBuffer(AlignedBuffer&& other) noexcept { swap(other); }
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer() { operator delete[](data_, std::align_val_t{alignment}); }

  /// Makes room for `size` numbers, all zero then; does nothing if there is room already.
  void grow(Index size) {
    if (size > size_) *this = AlignedBuffer(size);
  }

  [[nodiscard]] Scalar* data() { return data_; }
  [[nodiscard]] const Scalar* data() const { return data_; }
  [[nodiscard]] Index size() const { return size_; }

 private:
  static constexpr std::size_t alignment = 64;

  void swap(AlignedBuffer& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(data_, other.data_);
  }

  Index size_ = 0;
  Scalar* data_ = nullptr;
};

}  // namespace widelimit
