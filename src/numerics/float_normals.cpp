#include "numerics/float_normals.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numbers>

#include "numerics/philox.hpp"

// Highway 1.0.3 forgets this target where the compiler's flags make it the baseline (-march=native).
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS HWY_AVX3_DL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/float_normals.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>
// After foreach_target, which includes this file once for every instruction set.
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Box-Muller: words [2][half] in, normals [2][half] out. Normals i and half + i come from words i and half + i.
void box_muller(const std::int32_t* words, std::size_t half, float* out) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto scale = hn::Set(d, 0x1p-31F);
  for (std::size_t i = 0; i < half; i += hn::Lanes(d)) {
    const auto first = hn::ConvertTo(d, hn::LoadU(di, words + i));
    const auto second = hn::ConvertTo(d, hn::LoadU(di, words + half + i));
    // The half keeps u above 0, where the logarithm is infinite; Min keeps it from exceeding 1,
    // where the root has no value.
    const auto u = hn::Mul(hn::Add(first, hn::Set(d, 0.5F)), scale);
    const auto radius = hn::Sqrt(hn::Mul(hn::Set(d, -2.0F), hn::Log(d, hn::Min(u, hn::Set(d, 1.0F)))));
    // The second word has 31 bits: times 2 pi / 2^31 it is an angle in [0, 2 pi).
    const auto angle = hn::Mul(second, hn::Set(d, 0x1p-30F * std::numbers::pi_v<float>));
    hn::StoreU(hn::Mul(radius, hn::Cos(d, angle)), d, out + i);
    hn::StoreU(hn::Mul(radius, hn::Sin(d, angle)), d, out + half + i);
  }
}

}  // namespace widelimit::numerics::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace widelimit::numerics {

HWY_EXPORT(box_muller);

void fill_normals(std::span<float> out, std::uint64_t seed, std::uint64_t stream) {
  constexpr std::size_t chunk_size = 512;
  std::array<std::int32_t, chunk_size> words{};
  std::array<float, chunk_size> normals{};
  const std::array<std::uint32_t, 2> key = {static_cast<std::uint32_t>(seed),
                                            static_cast<std::uint32_t>(seed >> 32)};
  std::uint64_t block = 0;
  for (std::size_t start = 0; start < out.size(); start += chunk_size) {
    for (std::size_t i = 0; i < chunk_size; i += 4, ++block) {
      const auto random = philox_block(key, stream, block);
      // 31 bits: the conversion to float is signed.
      for (std::size_t j = 0; j < 4; ++j) words[i + j] = static_cast<std::int32_t>(random[j] >> 1);
    }
    // The last chunk is computed in full, so that a normal does not depend on how many are wanted.
    HWY_DYNAMIC_DISPATCH(box_muller)(words.data(), chunk_size / 2, normals.data());
    const std::size_t take = std::min(chunk_size, out.size() - start);
    std::copy_n(normals.begin(), take, out.begin() + static_cast<std::ptrdiff_t>(start));
  }
}

}  // namespace widelimit::numerics
#endif
