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

/// A vector as a number of formulas (widelimit/numerics/formula/number.hpp): each lane is one, of type float or double.
template <typename T>
struct Lanes {
  using Scalar = T;
  using D = hwy::HWY_NAMESPACE::ScalableTag<Scalar>;
  using V = hwy::HWY_NAMESPACE::Vec<D>;
  using Mask = hwy::HWY_NAMESPACE::Mask<D>;
  V vector;

  HWY_INLINE Lanes(double number)  // NOLINT: a constant
      : vector{hwy::HWY_NAMESPACE::Set(D(), static_cast<Scalar>(number))} {}
  explicit HWY_INLINE Lanes(V numbers) : vector{numbers} {}
};

template <typename T>
HWY_INLINE Lanes<T> operator+(Lanes<T> a, Lanes<T> b) {
  return Lanes<T>(hwy::HWY_NAMESPACE::Add(a.vector, b.vector));
}
template <typename T>
HWY_INLINE Lanes<T> operator-(Lanes<T> a, Lanes<T> b) {
  return Lanes<T>(hwy::HWY_NAMESPACE::Sub(a.vector, b.vector));
}
template <typename T>
HWY_INLINE Lanes<T> operator*(Lanes<T> a, Lanes<T> b) {
  return Lanes<T>(hwy::HWY_NAMESPACE::Mul(a.vector, b.vector));
}
template <typename T>
HWY_INLINE Lanes<T> operator/(Lanes<T> a, Lanes<T> b) {
  return Lanes<T>(hwy::HWY_NAMESPACE::Div(a.vector, b.vector));
}
template <typename T>
HWY_INLINE Lanes<T> operator-(Lanes<T> a) {
  return Lanes<T>(hwy::HWY_NAMESPACE::Neg(a.vector));
}

/// What a comparison of lanes gives. A type of its own, because masks of both precisions can be of one type.
template <typename T>
struct LanesMask {
  typename Lanes<T>::Mask mask;
};
template <typename T>
HWY_INLINE LanesMask<T> is_less(Lanes<T> a, Lanes<T> b) {
  return {hwy::HWY_NAMESPACE::Lt(a.vector, b.vector)};
}
template <typename T>
HWY_INLINE LanesMask<T> both(LanesMask<T> a, LanesMask<T> b) {
  return {hwy::HWY_NAMESPACE::And(a.mask, b.mask)};
}
template <typename T>
HWY_INLINE Lanes<T> choose(LanesMask<T> condition, Lanes<T> yes, Lanes<T> no) {
  return Lanes<T>(hwy::HWY_NAMESPACE::IfThenElse(condition.mask, yes.vector, no.vector));
}
template <typename T>
HWY_INLINE Lanes<T> at_least(Lanes<T> low, Lanes<T> x) {
  return choose(is_less(x, low), low, x);
}
template <typename T>
HWY_INLINE double epsilon_of(Lanes<T> /*x*/) {
  return static_cast<double>(std::numeric_limits<T>::epsilon());
}

/// Rounded once where the instruction set can.
template <typename T>
HWY_INLINE Lanes<T> fused(Lanes<T> a, Lanes<T> b, Lanes<T> c) {
  return Lanes<T>(hwy::HWY_NAMESPACE::MulAdd(a.vector, b.vector, c.vector));
}
template <typename T>
HWY_INLINE Lanes<T> magnitude(Lanes<T> x) {
  return Lanes<T>(hwy::HWY_NAMESPACE::Abs(x.vector));
}
template <typename T>
HWY_INLINE Lanes<T> root(Lanes<T> x) {
  return Lanes<T>(hwy::HWY_NAMESPACE::Sqrt(x.vector));
}

/// The least normal number where e^x is below it.
template <typename T>
HWY_INLINE Lanes<T> exponential(Lanes<T> x) {
  return Lanes<T>(Exponential<T>::weighted(typename Lanes<T>::D(), x.vector, Lanes<T>(1).vector));
}
/// e^-x and e^-x - 1 for x >= 0.
template <typename T>
HWY_INLINE Lanes<T> decay(Lanes<T> x) {
  return Lanes<T>(Exponential<T>::of_negative(typename Lanes<T>::D(), x.vector));
}
template <typename T>
HWY_INLINE Lanes<T> decay_less_one(Lanes<T> x) {
  return Lanes<T>(Exponential<T>::of_negative_less_one(typename Lanes<T>::D(), x.vector));
}
template <typename T>
HWY_INLINE Lanes<T> exponential_less_one(Lanes<T> x) {
  const Lanes<T> below(Exponential<T>::of_negative_less_one(typename Lanes<T>::D(), magnitude(x).vector));
  return choose(is_less(Lanes<T>(0), x), -below / (Lanes<T>(1) + below), below);
}
template <typename T>
HWY_INLINE Lanes<T> hyperbolic_sine(Lanes<T> x) {
  const Lanes<T> below(Exponential<T>::of_negative_less_one(typename Lanes<T>::D(), magnitude(x).vector));
  const Lanes<T> size = Lanes<T>(-0.5) * (below + below / (Lanes<T>(1) + below));
  return choose(is_less(x, Lanes<T>(0)), -size, size);
}

template <typename T>
HWY_INLINE Lanes<T> determinant(Lanes<T> p, Lanes<T> q, Lanes<T> c) {
  return at_least(Lanes<T>(0),
                  Lanes<T>(Arc<T>::determinant(typename Lanes<T>::D(), p.vector, q.vector, c.vector)));
}
template <typename T>
HWY_INLINE Lanes<T> angle_over_sine(Lanes<T> distance) {
  return Lanes<T>(Arc<T>::angle_over_sine(typename Lanes<T>::D(), distance.vector));
}
/// 0 for the point (0, 0).
template <typename T>
HWY_INLINE Lanes<T> angle(Lanes<T> y, Lanes<T> x) {
  const Lanes<T> square = fused(x, x, y * y);
  const Lanes<T> inverse = choose(is_less(Lanes<T>(0), square), Lanes<T>(1) / root(square), Lanes<T>(0));
  const Lanes<T> acute = y * inverse * angle_over_sine(fused(-magnitude(x), inverse, Lanes<T>(1)));
  const Lanes<T> turn =
      choose(is_less(y, Lanes<T>(0)), Lanes<T>(-std::numbers::pi), Lanes<T>(std::numbers::pi));
  return choose(is_less(x, Lanes<T>(0)), turn - acute, acute);
}

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
