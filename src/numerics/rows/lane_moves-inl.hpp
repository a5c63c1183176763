// Included once for every instruction set: the guard follows Highway's convention.
#if defined(WIDELIMIT_LANE_MOVES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef WIDELIMIT_LANE_MOVES_INL
#undef WIDELIMIT_LANE_MOVES_INL
#else
#define WIDELIMIT_LANE_MOVES_INL
#endif

#include <hwy/highway.h>

#include <cstdint>

// Highway moves entries between vectors within blocks of them only.
#undef WIDELIMIT_MOVES_LANES
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
#define WIDELIMIT_MOVES_LANES 1
#else
#define WIDELIMIT_MOVES_LANES 0
#endif

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {

#if WIDELIMIT_MOVES_LANES
/// A vector of entries first, first + 1, ... of two neighbouring vectors.
template <int first, class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> entries_from(D d, hwy::HWY_NAMESPACE::Vec<D> before,
                                                   hwy::HWY_NAMESPACE::Vec<D> after) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Repartition<std::int32_t, D> words;
  constexpr int first_word = first * static_cast<int>(sizeof(hn::TFromD<D>)) / 4;
  const auto moved =
      _mm512_alignr_epi32(hn::BitCast(words, after).raw, hn::BitCast(words, before).raw, first_word);
  return hn::BitCast(d, hn::Vec<decltype(words)>{moved});
}
#endif

// Every second entry of two neighbouring vectors: entries 0, 2, 4, ... or 1, 3, 5, ... With vectors of one entry
// (HWY_SCALAR) a vector is the even or the odd entry itself.
#if HWY_TARGET == HWY_SCALAR
template <class D, class V>
V even_entries(D /*d*/, V low, V /*high*/) {
  return low;
}
template <class D, class V>
V odd_entries(D /*d*/, V /*low*/, V high) {
  return high;
}
#else
template <class D, class V>
HWY_INLINE V even_entries(D d, V low, V high) {
  return hwy::HWY_NAMESPACE::ConcatEven(d, high, low);
}
template <class D, class V>
HWY_INLINE V odd_entries(D d, V low, V high) {
  return hwy::HWY_NAMESPACE::ConcatOdd(d, high, low);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#endif  // per target
