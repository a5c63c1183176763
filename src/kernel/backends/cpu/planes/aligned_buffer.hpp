#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "widelimit/network/shape.hpp"

namespace widelimit {

/// Numbers that begin at a cache line, zero at first. The system hands out large blocks of memory zeroed, so calloc()
/// need not write them once more.
template <typename Scalar>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(Index size) : size_{size} {
    std::size_t bytes = static_cast<std::size_t>(size) * sizeof(Scalar) + alignment;
    block_ = std::calloc(bytes, 1);
    if (block_ == nullptr) throw std::bad_alloc();
    void* place = block_;
    data_ = static_cast<Scalar*>(std::align(alignment, bytes - alignment, place, bytes));
  }
  AlignedBuffer(AlignedBuffer&& other) noexcept { swap(other); }
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer() { std::free(block_); }

  /// Makes room for `size` numbers, all of them zero, unless there already is room; then it does nothing.
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
    std::swap(block_, other.block_);
    std::swap(data_, other.data_);
  }

  Index size_ = 0;
  void* block_ = nullptr;
  Scalar* data_ = nullptr;
};

}  // namespace widelimit
