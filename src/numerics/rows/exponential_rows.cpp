#include "numerics/rows/exponential_rows.hpp"

#include "numerics/rows/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/rows/exponential_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "numerics/rows/exponential-inl.hpp"
#include "numerics/rows/limits-inl.hpp"
#include "numerics/rows/row_loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Scalar>
struct ExponentialRowLoops {
  using D = hn::ScalableTag<Scalar>;
  using V = hn::Vec<D>;

  struct Mapped {
    V value;
    V derivative;
  };

  /// map(c, p, q) gives the value and the derivative.
  template <class Map>
  static HWY_INLINE void for_each_entry(const DualRow<Scalar>& row, const Map& map) {
    // Stores might alias the row's table of pointers, so they are read first.
    const Scalar *p = row.left[0], *q = row.right[0];
    Scalar *nngp = row.nngp, *ntk = row.ntk;
    for_each_vector<Scalar>(row.size, [&](auto d, auto block) {
      const Mapped mapped = map(block.load(d, nngp), block.load(d, p), block.load(d, q));
      block.store(d, mapped.value, nngp);
      if (ntk != nullptr) block.store(d, hn::Mul(mapped.derivative, block.load(d, ntk)), ntk);
    });
  }

  static HWY_INLINE V set(double number) { return hn::Set(D(), static_cast<Scalar>(number)); }

  /// p + q - 2c, at least 0.
  static HWY_INLINE V distance(V p, V q, V c) {
    return at_least(hn::Zero(D()), hn::Add(hn::Sub(p, c), hn::Sub(q, c)));
  }

  /// The larger exponential and what the smaller lacks of it: with E = exp(-4h |c|) - 1 and c >= 0,
  ///     e1 + k e2 = e1 ((1 + k) + k E);  with c < 0  e1 + k e2 = e2 ((1 + k) + E).
  // The branch for the sign of c is a blend, so that all entries of a vector go the same way.
  static void wave(const WaveDual& dual, const DualRow<Scalar>& row) {
    const V h = set(dual.half_square), four_h = set(4 * dual.half_square);
    const V value = set(dual.value_weight), derivative = set(dual.derivative_weight);
    const V value_k = set(dual.value_weight * dual.k), derivative_k = set(-dual.derivative_weight * dual.k);
    const V value_sum = set(dual.value_weight * dual.one_plus_k);
    const V derivative_sum = set(dual.derivative_weight * dual.one_minus_k);
    for_each_entry(row, [&](V c, V p, V q) {
      const V size = hn::Abs(c);
      const V near = Exponential<Scalar>::of_negative(D(), hn::Mul(h, distance(p, q, size)));
      const V lack = Exponential<Scalar>::of_negative_less_one(D(), hn::Mul(four_h, size));
      const auto opposed = hn::Lt(c, hn::Zero(D()));
      const V value_factor = hn::IfThenElse(opposed, value, value_k);
      const V derivative_factor = hn::IfThenElse(opposed, derivative, derivative_k);
      return Mapped{hn::Mul(near, hn::MulAdd(value_factor, lack, value_sum)),
                    hn::Mul(near, hn::MulAdd(derivative_factor, lack, derivative_sum))};
    });
  }

  static void radial(const ExponentialDual& dual, const DualRow<Scalar>& row) {
    const V rate = set(dual.rate), weight = set(dual.weight), slope = set(dual.slope);
    for_each_entry(row, [&](V c, V p, V q) {
      const V value =
          hn::Mul(weight, Exponential<Scalar>::of_negative(D(), hn::Mul(rate, distance(p, q, c))));
      return Mapped{value, hn::Mul(slope, value)};
    });
  }

  static void exponential(const ExponentialDual& dual, const DualRow<Scalar>& row) {
    const V rate = set(dual.rate), weight = set(dual.weight), slope = set(dual.slope);
    for_each_entry(row, [&](V c, V p, V q) {
      const V exponent = hn::Mul(rate, hn::Add(hn::Add(p, c), hn::Add(q, c)));
      const V value = Exponential<Scalar>::weighted(D(), exponent, weight);
      return Mapped{value, hn::Mul(slope, value)};
    });
  }

  static void decay(Scalar rate, Scalar top, Scalar* row, std::size_t size) {
    for_each_vector<Scalar>(size, [&](auto d, auto block) {
      // Softmax passes the largest logit of a row as `top`, so no exponent is positive.
      const V below = hn::Sub(hn::Set(d, top), block.load(d, row));
      block.store(d, Exponential<Scalar>::of_negative(d, hn::Mul(hn::Set(d, rate), below)), row);
    });
  }
};

template <typename Scalar>
constexpr ExponentialRows<Scalar> exponential_table = {
    ExponentialRowLoops<Scalar>::wave, ExponentialRowLoops<Scalar>::radial,
    ExponentialRowLoops<Scalar>::exponential, ExponentialRowLoops<Scalar>::decay};

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
