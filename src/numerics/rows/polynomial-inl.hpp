// Included once for every instruction set: the guard follows Highway's convention.
#if defined(WIDELIMIT_POLYNOMIAL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef WIDELIMIT_POLYNOMIAL_INL
#undef WIDELIMIT_POLYNOMIAL_INL
#else
#define WIDELIMIT_POLYNOMIAL_INL
#endif

#include <hwy/highway.h>

#include <array>
#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {

/// A polynomial at t, lowest order first, its odd and even terms side by side: one chain of twenty multiplications
/// would wait for itself. At least two coefficients.
template <class D, std::size_t count>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> polynomial_at(
    D d, const std::array<hwy::HWY_NAMESPACE::TFromD<D>, count>& coefficients, hwy::HWY_NAMESPACE::Vec<D> t) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr int degree = static_cast<int>(count) - 1;
  const auto term = [&](int k) { return hn::Set(d, coefficients[static_cast<std::size_t>(k)]); };
  const auto square = hn::Mul(t, t);
  auto upper = term(degree), lower = term(degree - 1);
  for (int k = degree - 2; k > 0; k -= 2) {
    upper = hn::MulAdd(upper, square, term(k));
    lower = hn::MulAdd(lower, square, term(k - 1));
  }
  return degree % 2 == 1 ? hn::MulAdd(upper, t, lower)
                         : hn::MulAdd(upper, square, hn::MulAdd(lower, t, term(0)));
}

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
