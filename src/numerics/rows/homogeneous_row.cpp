#include "numerics/rows/homogeneous_row.hpp"

#include "numerics/rows/arcsine_series.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/rows/homogeneous_row.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "numerics/rows/row_loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Scalar>
constexpr int arcsine_degree = sizeof(Scalar) == 4 ? 8 : 20;

template <typename Scalar>
const auto arcsine_coefficients = arcsine_series<Scalar, arcsine_degree<Scalar>>();

template <typename Scalar>
struct HomogeneousRowLoops {
  using D = hn::ScalableTag<Scalar>;
  using V = hn::Vec<D>;

  static void prepare(const Scalar* variance, Scalar* const* auxiliary, std::size_t size) {
    for_each_vector<Scalar>(size, [&](auto d, auto block) {
      const V p = block.load(d, variance);
      const V root = hn::Div(hn::Set(d, Scalar{1}), hn::Sqrt(p));
      block.store(d, p, auxiliary[0]);
      block.store(d, hn::IfThenElseZero(hn::Gt(p, hn::Zero(d)), root), auxiliary[1]);
    });
  }

  static V arcsine(D d, V s) {
    constexpr int degree = arcsine_degree<Scalar>;
    const auto& series = arcsine_coefficients<Scalar>;
    const V t = hn::Mul(s, s);
    V sum = hn::Set(d, series[degree]);
    for (int k = degree; k-- > 0;) sum = hn::MulAdd(sum, t, hn::Set(d, series[static_cast<std::size_t>(k)]));
    return hn::Mul(sum, s);
  }

  static void apply(const HomogeneousDual& dual, const DualRow<Scalar>& row) {
    const D d;
    const V zero = hn::Zero(d), right_angle = hn::Set(d, static_cast<Scalar>(std::numbers::pi / 2));
    const V aligned = hn::Set(d, static_cast<Scalar>(dual.aligned)),
            opposed = hn::Set(d, static_cast<Scalar>(dual.opposed));
    const V weight = hn::Set(d, static_cast<Scalar>(dual.weight));
    for_each_vector<Scalar>(row.size, [&](auto tag, auto block) {
      const V c = block.load(tag, row.nngp);
      const V inverse = hn::Mul(block.load(tag, row.left[1]), block.load(tag, row.right[1]));
      // pq - c^2 after Kahan: the plain difference cancels near correlation 1.
      const V square = hn::Mul(c, c);
      const V determinant =
          hn::Sub(hn::MulSub(block.load(tag, row.left[0]), block.load(tag, row.right[0]), square),
                  hn::MulSub(c, c, square));
      const V root = hn::Sqrt(hn::Max(determinant, zero));
      // Sine and cosine of the angle from the nearer end; the smaller of them has the accurate arcsine.
      const V sine = hn::Mul(root, inverse), cosine = hn::Mul(hn::Abs(c), inverse);
      const V small = arcsine(tag, hn::Min(sine, cosine));
      const V angle = hn::IfThenElse(hn::Lt(sine, cosine), small, hn::Sub(right_angle, small));
      const V derivative = hn::IfThenElse(hn::Lt(c, zero), hn::MulAdd(weight, angle, opposed),
                                          hn::NegMulAdd(weight, angle, aligned));
      block.store(tag, hn::MulAdd(derivative, c, hn::Mul(weight, root)), row.nngp);
      if (row.ntk != nullptr) block.store(tag, hn::Mul(derivative, block.load(tag, row.ntk)), row.ntk);
    });
  }
};

template <typename Scalar>
constexpr HomogeneousRows<Scalar> homogeneous_table = {HomogeneousRowLoops<Scalar>::prepare,
                                                       HomogeneousRowLoops<Scalar>::apply};

const HomogeneousRows<float>* homogeneous_float() { return &homogeneous_table<float>; }
const HomogeneousRows<double>* homogeneous_double() { return &homogeneous_table<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace widelimit::numerics {

HWY_EXPORT(homogeneous_float);
HWY_EXPORT(homogeneous_double);

template <>
const HomogeneousRows<float>& homogeneous_rows() {
  static const HomogeneousRows<float>& rows = *HWY_DYNAMIC_DISPATCH(homogeneous_float)();
  return rows;
}

template <>
const HomogeneousRows<double>& homogeneous_rows() {
  static const HomogeneousRows<double>& rows = *HWY_DYNAMIC_DISPATCH(homogeneous_double)();
  return rows;
}

}  // namespace widelimit::numerics
#endif  // HWY_ONCE
