#pragma once

#include <array>
#include <cstdint>
#include <limits>

namespace widelimit::numerics {

/// A counter-based random stream (Philox 4x32, 10 rounds, from Random123).
///
/// Equal (seed, stream) give equal numbers on every machine; different streams of one seed are independent. A
/// task that owns its stream therefore gives the same bits whatever thread runs it. Satisfies
/// std::uniform_random_bit_generator.
///
/// Source  Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
class RandomStream {
 public:
  using result_type = std::uint32_t;

  /// Stream number `stream` of a seed, from its beginning.
  explicit RandomStream(std::uint64_t seed, std::uint64_t stream = 0);

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }

  /// 32 random bits.
  result_type operator()();

  /// Uniform in (0, 1), 53 bits, never 0 or 1.
  double uniform();

  /// Standard normal (Box-Muller; two uniforms give two normals).
  double normal();

  /// Uniform integer in [0, bound), without bias. `bound` must be positive (ArgumentError).
  std::uint64_t below(std::uint64_t bound);

 private:
  std::uint64_t bits64();

  std::array<std::uint32_t, 2> key_;
  std::uint64_t stream_;
  std::uint64_t block_ = 0;
  std::array<std::uint32_t, 4> buffer_{};
  unsigned used_ = 4;
  double spare_normal_ = 0;
  bool has_spare_normal_ = false;
};

}  // namespace widelimit::numerics
