// Windows of 3 x 3 and of 9, whose sums stay in registers. Included once for every instruction set: the guard
// follows Highway's convention.
#if defined(WIDELIMIT_MOVING_WINDOWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef WIDELIMIT_MOVING_WINDOWS_INL
#undef WIDELIMIT_MOVING_WINDOWS_INL
#else
#define WIDELIMIT_MOVING_WINDOWS_INL
#endif

#include <hwy/highway.h>

#include <cstddef>

#include "numerics/rows/lane_moves-inl.hpp"
#include "numerics/rows/linear_rows.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// These windows move entries across the lanes of two vectors (lane_moves-inl.hpp).
#if WIDELIMIT_MOVES_LANES
template <typename Scalar>
constexpr int vector_lanes = 64 / sizeof(Scalar);

/// 3 x 3 windows around an entry: sums along the second axis stay in registers, and those of their
/// neighbours along the first one are moved vectors.
template <typename Scalar>
class Window3x3 {
  using D = hn::ScalableTag<Scalar>;
  using V = hn::Vec<D>;
  static constexpr int lanes = vector_lanes<Scalar>;

 public:
  Window3x3(const Scalar* source, const Convolution& convolution)
      : source_{source + convolution.axes[1].first},
        step_{convolution.axes[1].step},
        before_{at(-lanes)},
        here_{at(0)} {}

  static bool fits(const Convolution& convolution) {
    const Taps& taps = convolution.axes[0];
    return convolution.axis_count == 2 && taps.first == -1 && taps.step == 1 && taps.count == 3 &&
           convolution.axes[1].count == 3;
  }

  /// The sums of entries i, i + 1, ...; i grows by a vector from call to call, which is why
  /// before_ and here_ can be reused.
  HWY_INLINE V next(std::ptrdiff_t i, bool /*is_last*/) {
    const V after = at(i + lanes);
    const V sum = hn::Add(hn::Add(entries_from<lanes - 1>(D(), before_, here_), here_),
                          entries_from<1>(D(), here_, after));
    before_ = here_;
    here_ = after;
    return sum;
  }

 private:
  HWY_INLINE V at(std::ptrdiff_t i) const {
    const D d;
    const Scalar* entry = source_ + i;
    return hn::Add(hn::Add(hn::LoadU(d, entry), hn::LoadU(d, entry + step_)),
                   hn::LoadU(d, entry + 2 * step_));
  }

  const Scalar* source_;
  std::ptrdiff_t step_;
  V before_;
  V here_;
};

/// Windows of 9 along one axis: sums of 3, and sums of 3 of these.
template <typename Scalar>
class Window9 {
  using D = hn::ScalableTag<Scalar>;
  using V = hn::Vec<D>;
  static constexpr int lanes = vector_lanes<Scalar>;

 public:
  Window9(const Scalar* source, const Convolution& convolution)
      : source_{source + convolution.axes[0].first}, next_{at(lanes)}, threes_{three(at(0), next_)} {}

  static bool fits(const Convolution& convolution) {
    return convolution.axis_count == 1 && convolution.axes[0].step == 1 && convolution.axes[0].count == 9;
  }

  /// The sums of entries i, i + 1, ...; i grows by a vector from call to call. What the last vector
  /// does not need is not read.
  HWY_INLINE V next(std::ptrdiff_t i, bool is_last) {
    const V after = is_last ? hn::Zero(D()) : at(i + 2 * lanes);
    const V next_threes = three(next_, after);
    const V sum = hn::Add(hn::Add(threes_, entries_from<3>(D(), threes_, next_threes)),
                          entries_from<6>(D(), threes_, next_threes));
    next_ = after;
    threes_ = next_threes;
    return sum;
  }

 private:
  HWY_INLINE V at(std::ptrdiff_t i) const { return hn::LoadU(D(), source_ + i); }
  static HWY_INLINE V three(V here, V after) {
    return hn::Add(hn::Add(here, entries_from<1>(D(), here, after)), entries_from<2>(D(), here, after));
  }

  const Scalar* source_;
  V next_;
  V threes_;
};
#endif

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#endif  // per target
