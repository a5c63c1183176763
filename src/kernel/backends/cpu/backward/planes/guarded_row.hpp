#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace widelimit {

/// Numbers with a margin of zeros on both sides, so that windows may reach over the ends.
template <typename Scalar>
class GuardedRow {
 public:
  /// Sets the size. What the row holds is not defined afterwards, but its margins are zero.
  void resize(std::size_t size, std::size_t margin = 0) {
    size_ = size;
    margin_ = margin;
    numbers_.resize(size + 2 * margin);
    std::fill_n(numbers_.begin(), margin, Scalar{0});
    std::fill_n(numbers_.end() - static_cast<std::ptrdiff_t>(margin), margin, Scalar{0});
  }
  void fill(Scalar value) { std::fill_n(data(), size_, value); }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] Scalar* data() { return numbers_.data() + margin_; }
  [[nodiscard]] const Scalar* data() const { return numbers_.data() + margin_; }
  [[nodiscard]] Scalar& operator[](std::size_t i) { return data()[i]; }
  [[nodiscard]] const Scalar& operator[](std::size_t i) const { return data()[i]; }
  [[nodiscard]] const Scalar* begin() const { return data(); }
  [[nodiscard]] const Scalar* end() const { return data() + size_; }

 private:
  std::vector<Scalar> numbers_;
  std::size_t size_ = 0;
  std::size_t margin_ = 0;
};

}  // namespace widelimit
