// Included once for every instruction set: the guard follows Highway's convention.
#if defined(WIDELIMIT_EXPONENTIAL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef WIDELIMIT_EXPONENTIAL_INL
#undef WIDELIMIT_EXPONENTIAL_INL
#else
#define WIDELIMIT_EXPONENTIAL_INL
#endif

#include <hwy/highway.h>

#include <numbers>

#include "numerics/formula/interpolant.hpp"
#include "numerics/rows/limits-inl.hpp"
#include "numerics/rows/polynomial-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {

/// What differs between float and double.
template <typename Scalar>
struct ExponentialNumbers;

template <>
struct ExponentialNumbers<float> {
  static constexpr int mantissa_bits = 23, bias = 127, degree = 4;
  static constexpr float lowest = -87.0F;   ///< Its exponential is a normal number still.
  static constexpr float overflow = 89.3F;  ///< Its exponential is infinite.
  // The sum is log(2); the first has so few digits that its product with an exponent is exact. (Cody and Waite.)
  static constexpr float log_2_upper = 0.693359375F, log_2_lower = -2.12194440e-4F;
};

template <>
struct ExponentialNumbers<double> {
  static constexpr int mantissa_bits = 52, bias = 1023, degree = 9;
  static constexpr double lowest = -708.0, overflow = 710.4;
  static constexpr double log_2_upper = 6.93147180369123816490e-01, log_2_lower = 1.90821492927058770002e-10;
};

/// (e^r - 1 - r) / r^2 for |r| <= log(2) / 2, to 6e-9 (float) and 2e-17 of e^r.
template <typename Scalar>
const auto exponential_coefficients = interpolant<Scalar, ExponentialNumbers<Scalar>::degree>(
    -std::numbers::ln2_v<long double> / 2, std::numbers::ln2_v<long double> / 2, [](long double r) {
      long double sum = 0;
      for (int k = 25; k > 1; --k) sum = sum * r / (k + 1) + 1;  // 1 + r/3 (1 + r/4 (1 + ...))
      return sum / 2;
    });

template <typename Scalar>
struct Exponential {
  using Numbers = ExponentialNumbers<Scalar>;
  using D = hwy::HWY_NAMESPACE::ScalableTag<Scalar>;
  using V = hwy::HWY_NAMESPACE::Vec<D>;

  /// e^x 2^shift = scale (1 + less_one), scale = 2^(n + shift).
  /// The numbers of bits are those of IEEE 754; degree is that of the polynomial below.
  struct Parts {
    V scale;
    V less_one;
  };

  /// For x from lowest to, with a shift of -1, overflow. e^r - 1 keeps its digits near 0.
  template <int shift = 0>
  static HWY_INLINE Parts parts(D d, V x) {
    namespace hn = hwy::HWY_NAMESPACE;
    const hn::RebindToUnsigned<D> bits;
    // Adding this rounds to an integer and leaves it, biased, in the lowest bits.
    constexpr auto rounder =
        static_cast<Scalar>(3LL << (Numbers::mantissa_bits - 1)) + (Numbers::bias + shift);
    const V shifted = hn::MulAdd(x, hn::Set(d, std::numbers::log2e_v<Scalar>), hn::Set(d, rounder));
    const V n = hn::Sub(shifted, hn::Set(d, rounder));
    // The lowest bits of `shifted` are n + bias + shift; moved to the place of the exponent they are
    // the number 2^(n + shift).
    const V scale = hn::BitCast(d, hn::ShiftLeft<Numbers::mantissa_bits>(hn::BitCast(bits, shifted)));
    // log(2) is subtracted in two parts, so that r keeps its digits although n log(2) may be large.
    const V upper = hn::NegMulAdd(n, hn::Set(d, Numbers::log_2_upper), x);
    const V r = hn::NegMulAdd(n, hn::Set(d, Numbers::log_2_lower), upper);
    const V rest = polynomial_at(d, exponential_coefficients<Scalar>, r);
    return {scale, hn::MulAdd(hn::Mul(r, r), rest, r)};
  }

  /// e^-x for x >= 0; 0 below the normal numbers.
  static HWY_INLINE V of_negative(D d, V x) {
    // The larger argument would leave the normal numbers, where the bits of the exponent mean something else.
    namespace hn = hwy::HWY_NAMESPACE;
    const V most = hn::Set(d, -Numbers::lowest);
    const Parts at = parts(d, hn::Neg(at_most(most, x)));
    return hn::IfThenZeroElse(hn::Gt(x, most), hn::MulAdd(at.scale, at.less_one, at.scale));
  }

  /// e^-x - 1 for x >= 0.
  static HWY_INLINE V of_negative_less_one(D d, V x) {
    namespace hn = hwy::HWY_NAMESPACE;
    const Parts at = parts(d, hn::Neg(at_most(hn::Set(d, -Numbers::lowest), x)));
    return hn::MulAdd(at.scale, at.less_one, hn::Sub(at.scale, hn::Set(d, Scalar{1})));
  }

  /// weight e^x; infinite where it is beyond the range.
  static HWY_INLINE V weighted(D d, V x, V weight) {
    namespace hn = hwy::HWY_NAMESPACE;
    const V within = at_most(hn::Set(d, Numbers::overflow), at_least(hn::Set(d, Numbers::lowest), x));
    // The shift of -1 keeps the scale finite up to the largest exponential; twice the weight makes up for it.
    const Parts at = parts<-1>(d, within);
    const V twice = hn::Add(weight, weight);
    return hn::Mul(hn::MulAdd(twice, at.less_one, twice), at.scale);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
