#include "widelimit/numerics/random_stream.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "numerics/philox.hpp"
#include "widelimit/error.hpp"

namespace widelimit::numerics {

RandomStream::RandomStream(std::uint64_t seed, std::uint64_t stream)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}, stream_{stream} {}

RandomStream::result_type RandomStream::operator()() {
  // Philox makes four words at a time.
  if (used_ == buffer_.size()) {
    const auto random = philox_block(key_, stream_, block_);
    for (std::size_t i = 0; i < buffer_.size(); ++i) buffer_[i] = random[i];
    ++block_;
    used_ = 0;
  }
  return buffer_[used_++];
}

std::uint64_t RandomStream::bits64() {
  const std::uint64_t low = (*this)();
  return (static_cast<std::uint64_t>((*this)()) << 32) | low;
}

// The half keeps the result above 0, so that its logarithm is finite.
double RandomStream::uniform() {
  // From 2^52 on the half has no bit of its own, and the largest of all sums is rounded up to 2^53.
  constexpr double below_one = 1 - 0x1p-53;
  return std::min((static_cast<double>(bits64() >> 11) + 0.5) * 0x1p-53, below_one);
}

double RandomStream::normal() {
  if (has_spare_normal_) {
    has_spare_normal_ = false;
    return spare_normal_;
  }
  // Box-Muller makes two normals at a time; the second is kept for the next call.
  const double radius = std::sqrt(-2 * std::log(uniform()));
  const double angle = 2 * std::numbers::pi * uniform();
  spare_normal_ = radius * std::sin(angle);
  has_spare_normal_ = true;
  return radius * std::cos(angle);
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  if (bound == 0) throw ArgumentError("RandomStream::below: bound must be positive, got 0");
  // Values past the largest multiple of bound would make small results likelier: draw again.
  const std::uint64_t limit = std::numeric_limits<std::uint64_t>::max() / bound * bound;
  std::uint64_t bits = bits64();
  while (bits >= limit) bits = bits64();
  return bits % bound;
}

}  // namespace widelimit::numerics
