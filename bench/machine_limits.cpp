#include "machine_limits.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

namespace {

template <typename Work>
double best_seconds(const Work& work) {
  double best = 1e9;
  for (int turn = 0; turn < 5; ++turn) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

/// Keeps the compiler from dropping a result.
template <typename T>
void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

}  // namespace

double measure_peak_flops() {
  // Vectors as wide as the machine's, enough of them to hide the latency of the multiply-add.
  using Vector = float __attribute__((vector_size(64)));
  constexpr std::size_t chains = 10, repeats = 2'000'000;
  const double seconds = best_seconds([&] {
    std::array<Vector, chains> sums{};
    Vector factor = {};
    factor += 0.5F;
    keep(factor);
    for (std::size_t i = 0; i < repeats; ++i)
      for (Vector& sum : sums) sum = sum * factor + factor;
    keep(sums);
  });
  return 2 * 16 * static_cast<double>(chains * repeats) / (1e9 * seconds);
}

double measure_bandwidth(std::size_t bytes) {
  const std::size_t size = bytes / 2 / sizeof(float);
  std::vector<float> a(size, 1), b(size, 1);
  const std::size_t repeats = std::max<std::size_t>(1, 200'000'000 / bytes);
  const double seconds = best_seconds([&] {
    for (std::size_t r = 0; r < repeats; ++r) {
      float *to = a.data(), factor = 1e-9F;
      const float* from = b.data();
      keep(factor);
      for (std::size_t i = 0; i < size; ++i) to[i] += factor * from[i];
      keep(a);
    }
  });
  return 3.0 * static_cast<double>(size * sizeof(float) * repeats) / (1e9 * seconds);
}
