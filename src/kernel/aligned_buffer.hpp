#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "numerics/large_pages.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit {

/// Numbers that begin at a cache line, or many at a large page, zero at first. calloc() need not clear what the system
/// hands out as zeros: the pages of large blocks are touched first by the thread that fills them.
template <typename Scalar>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(Index size) : size_{size} {
    const std::size_t wanted = static_cast<std::size_t>(size) * sizeof(Scalar);
    const std::size_t alignment = numerics::serves_large_pages(wanted) ? numerics::large_page : cache_line;
    std::size_t bytes = wanted + alignment;
    block_ = std::calloc(bytes, 1);
    if (block_ == nullptr) throw std::bad_alloc();
    void* place = block_;
    data_ = static_cast<Scalar*>(std::align(alignment, wanted, place, bytes));
    numerics::advise_large_pages(data_, wanted);
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
  static constexpr std::size_t cache_line = 64;

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
