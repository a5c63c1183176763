#include "numerics/rows/exponential_rows.hpp"

#include "numerics/rows/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/rows/exponential_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "numerics/rows/exponential-inl.hpp"
#include "numerics/rows/row_loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Scalar>
struct ExponentialRowLoops {
  static void decay(Scalar rate, Scalar top, Scalar* row, std::size_t size) {
    for_each_vector<Scalar>(size, [&](auto d, auto block) {
      // Softmax passes the largest logit of a row as `top`, so no exponent is positive.
      const auto below = hn::Sub(hn::Set(d, top), block.load(d, row));
      block.store(d, Exponential<Scalar>::of_negative(d, hn::Mul(hn::Set(d, rate), below)), row);
    });
  }
};

template <typename Scalar>
constexpr ExponentialRows<Scalar> exponential_table = {ExponentialRowLoops<Scalar>::decay};

const ExponentialRows<float>* exponential_float() { return &exponential_table<float>; }
const ExponentialRows<double>* exponential_double() { return &exponential_table<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace widelimit::numerics {

HWY_EXPORT(exponential_float);
HWY_EXPORT(exponential_double);

template <>
const ExponentialRows<float>& exponential_rows() {
  static const ExponentialRows<float>& rows = *HWY_DYNAMIC_DISPATCH(exponential_float)();
  return rows;
}

template <>
const ExponentialRows<double>& exponential_rows() {
  static const ExponentialRows<double>& rows = *HWY_DYNAMIC_DISPATCH(exponential_double)();
  return rows;
}

}  // namespace widelimit::numerics
#endif  // HWY_ONCE
