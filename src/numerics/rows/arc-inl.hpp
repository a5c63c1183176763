// Included once for every instruction set: the guard follows Highway's convention.
#if defined(WIDELIMIT_ARC_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef WIDELIMIT_ARC_INL
#undef WIDELIMIT_ARC_INL
#else
#define WIDELIMIT_ARC_INL
#endif

#include <hwy/highway.h>

#include "numerics/formula/angle_series.hpp"
#include "numerics/rows/polynomial-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {

template <typename Scalar>
constexpr int angle_degree = sizeof(Scalar) == 4 ? 8 : 19;

template <typename Scalar>
const auto angle_coefficients = angle_series<Scalar, angle_degree<Scalar>>();

/// What the duals of erf, GELU and of ReLU-like functions share: pq - c^2, and angles.
template <typename Scalar>
struct Arc {
  using D = hwy::HWY_NAMESPACE::ScalableTag<Scalar>;
  using V = hwy::HWY_NAMESPACE::Vec<D>;

  /// An angle between 0 and pi / 2 over its sine; `distance` is 1 less its cosine.
  /// The polynomial of angle_series.hpp, of the degree that the precision needs.
  static HWY_INLINE V angle_over_sine(D d, V distance) {
    return polynomial_at(d, angle_coefficients<Scalar>, distance);
  }

  /// pq - c^2, whose plain difference cancels near correlation 1: with the rounding errors of the products.
  static HWY_INLINE V determinant(D d, V p, V q, V c) {
    namespace hn = hwy::HWY_NAMESPACE;
    const V square = hn::Mul(c, c);
#if HWY_NATIVE_FMA  // Fused multiply-add gives them at once (Kahan).
    (void)d;
    return hn::Sub(hn::MulSub(p, q, square), hn::MulSub(c, c, square));
#else
    const V product = hn::Mul(p, q);
    return hn::Add(hn::Sub(product, square),
                   hn::Sub(rounding_error(d, p, q, product), rounding_error(d, c, c, square)));
#endif
  }

  /// a b - product, exactly, from halves of the factors (Dekker).
  static HWY_INLINE V rounding_error(D d, V a, V b, V product) {
    namespace hn = hwy::HWY_NAMESPACE;
    const V splitter = hn::Set(d, static_cast<Scalar>(sizeof(Scalar) == 4 ? (1 << 12) + 1 : (1 << 27) + 1));
    const auto upper_half = [&](V x) {
      const V scaled = hn::Mul(splitter, x);
      return hn::Sub(scaled, hn::Sub(scaled, x));
    };
    const V a_upper = upper_half(a), b_upper = upper_half(b);
    const V a_lower = hn::Sub(a, a_upper), b_lower = hn::Sub(b, b_upper);
    const V middle = hn::Add(hn::Mul(a_upper, b_lower), hn::Mul(a_lower, b_upper));
    const V error = hn::Add(hn::Sub(hn::Mul(a_upper, b_upper), product), middle);
    return hn::Add(error, hn::Mul(a_lower, b_lower));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
