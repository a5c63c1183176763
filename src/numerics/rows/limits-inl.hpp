// Included once for every instruction set: the guard follows Highway's convention.
#if defined(WIDELIMIT_LIMITS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef WIDELIMIT_LIMITS_INL
#undef WIDELIMIT_LIMITS_INL
#else
#define WIDELIMIT_LIMITS_INL
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {

/// The larger of both, or x where it is not a number; Highway's Max leaves that to the instruction set.
template <class V>
HWY_INLINE V at_least(V low, V x) {
  return hwy::HWY_NAMESPACE::IfThenElse(hwy::HWY_NAMESPACE::Lt(x, low), low, x);
}

/// The smaller of both, or x where it is not a number.
template <class V>
HWY_INLINE V at_most(V high, V x) {
  return hwy::HWY_NAMESPACE::IfThenElse(hwy::HWY_NAMESPACE::Gt(x, high), high, x);
}

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
