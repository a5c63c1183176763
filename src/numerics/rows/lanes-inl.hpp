// Included once for every instruction set: the guard follows Highway's convention.
#if defined(WIDELIMIT_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef WIDELIMIT_LANES_INL
#undef WIDELIMIT_LANES_INL
#else
#define WIDELIMIT_LANES_INL
#endif

#include <hwy/highway.h>

#include <limits>
#include <numbers>

#include "numerics/rows/arc-inl.hpp"
#include "numerics/rows/exponential-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {

/// A vector as a number of formulas (widelimit/numerics/formula/number.hpp): each lane is one.
struct Lanes {
  using Scalar = double;
  using D = hwy::HWY_NAMESPACE::ScalableTag<Scalar>;
  using V = hwy::HWY_NAMESPACE::Vec<D>;
  using Mask = hwy::HWY_NAMESPACE::Mask<D>;
  V vector;

  HWY_INLINE Lanes(double number) : vector{hwy::HWY_NAMESPACE::Set(D(), number)} {}  // NOLINT: a constant
  explicit HWY_INLINE Lanes(V numbers) : vector{numbers} {}
};

HWY_INLINE Lanes operator+(Lanes a, Lanes b) { return Lanes(hwy::HWY_NAMESPACE::Add(a.vector, b.vector)); }
HWY_INLINE Lanes operator-(Lanes a, Lanes b) { return Lanes(hwy::HWY_NAMESPACE::Sub(a.vector, b.vector)); }
HWY_INLINE Lanes operator*(Lanes a, Lanes b) { return Lanes(hwy::HWY_NAMESPACE::Mul(a.vector, b.vector)); }
HWY_INLINE Lanes operator/(Lanes a, Lanes b) { return Lanes(hwy::HWY_NAMESPACE::Div(a.vector, b.vector)); }
HWY_INLINE Lanes operator-(Lanes a) { return Lanes(hwy::HWY_NAMESPACE::Neg(a.vector)); }

HWY_INLINE Lanes::Mask is_less(Lanes a, Lanes b) { return hwy::HWY_NAMESPACE::Lt(a.vector, b.vector); }
HWY_INLINE Lanes::Mask both(Lanes::Mask a, Lanes::Mask b) { return hwy::HWY_NAMESPACE::And(a, b); }
HWY_INLINE Lanes choose(Lanes::Mask condition, Lanes yes, Lanes no) {
  return Lanes(hwy::HWY_NAMESPACE::IfThenElse(condition, yes.vector, no.vector));
}
HWY_INLINE Lanes at_least(Lanes low, Lanes x) { return choose(is_less(x, low), low, x); }
HWY_INLINE double epsilon_of(Lanes /*x*/) { return std::numeric_limits<Lanes::Scalar>::epsilon(); }

/// Rounded once where the instruction set can.
HWY_INLINE Lanes fused(Lanes a, Lanes b, Lanes c) {
  return Lanes(hwy::HWY_NAMESPACE::MulAdd(a.vector, b.vector, c.vector));
}
HWY_INLINE Lanes magnitude(Lanes x) { return Lanes(hwy::HWY_NAMESPACE::Abs(x.vector)); }
HWY_INLINE Lanes root(Lanes x) { return Lanes(hwy::HWY_NAMESPACE::Sqrt(x.vector)); }

HWY_INLINE Lanes exponential(Lanes x) {
  const Lanes power(Exponential<Lanes::Scalar>::weighted(Lanes::D(), x.vector, Lanes(1).vector));
  return choose(is_less(x, Lanes(ExponentialNumbers<Lanes::Scalar>::lowest)), Lanes(0), power);
}
HWY_INLINE Lanes exponential_less_one(Lanes x) {
  const Lanes below(Exponential<Lanes::Scalar>::of_negative_less_one(Lanes::D(), magnitude(x).vector));
  return choose(is_less(Lanes(0), x), -below / (Lanes(1) + below), below);
}
HWY_INLINE Lanes hyperbolic_sine(Lanes x) {
  const Lanes below(Exponential<Lanes::Scalar>::of_negative_less_one(Lanes::D(), magnitude(x).vector));
  const Lanes size = Lanes(-0.5) * (below + below / (Lanes(1) + below));
  return choose(is_less(x, Lanes(0)), -size, size);
}

HWY_INLINE Lanes determinant(Lanes p, Lanes q, Lanes c) {
  return at_least(Lanes(0), Lanes(Arc<Lanes::Scalar>::determinant(Lanes::D(), p.vector, q.vector, c.vector)));
}
HWY_INLINE Lanes angle_over_sine(Lanes distance) {
  return Lanes(Arc<Lanes::Scalar>::angle_over_sine(Lanes::D(), distance.vector));
}
/// 0 for the point (0, 0).
HWY_INLINE Lanes angle(Lanes y, Lanes x) {
  const Lanes square = fused(x, x, y * y);
  const Lanes inverse = choose(is_less(Lanes(0), square), Lanes(1) / root(square), Lanes(0));
  const Lanes acute = y * inverse * angle_over_sine(fused(-magnitude(x), inverse, Lanes(1)));
  const Lanes turn = choose(is_less(y, Lanes(0)), Lanes(-std::numbers::pi), Lanes(std::numbers::pi));
  return choose(is_less(x, Lanes(0)), turn - acute, acute);
}

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
