#include "numerics/rows/homogeneous_row.hpp"

#include <limits>

#include "numerics/rows/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/rows/homogeneous_row.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "numerics/rows/arc-inl.hpp"
#include "numerics/rows/row_loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Scalar>
struct HomogeneousRowLoops {
  using D = hn::ScalableTag<Scalar>;
  using V = hn::Vec<D>;

  static void prepare(const Scalar* variance, Scalar* const* auxiliary, std::size_t size) {
    for_each_vector<Scalar>(size, [&](auto d, auto block) {
      const V p = block.load(d, variance);
      const V one = hn::Set(d, Scalar{1}), root = hn::Div(one, hn::Sqrt(p));
      block.store(d, p, auxiliary[0]);
      // A negative number tells positions without variance from the guards of planes, which have 0.
      block.store(d, hn::IfThenElse(hn::Gt(p, hn::Zero(d)), root, hn::Neg(one)), auxiliary[1]);
    });
  }

  /// What the entries of a row have in common.
  struct Constants {
    D d;
    V zero = hn::Zero(d), one = hn::Set(d, Scalar{1});
    V aligned, opposed, weight;

    explicit HWY_INLINE Constants(const formula::HomogeneousDual& dual)
        : aligned{hn::Set(d, static_cast<Scalar>(dual.aligned))},
          opposed{hn::Set(d, static_cast<Scalar>(dual.opposed))},
          weight{hn::Set(d, static_cast<Scalar>(dual.weight))} {}
  };

  /// Selects by the sign bit alone, which is all that a blend by signs needs. Without one (SSSE3) Highway would first
  /// compare all bits of v.
  static HWY_INLINE V if_negative(V v, V yes, V no) {
#if HWY_TARGET == HWY_SSSE3
    const D d;
    const hn::RebindToSigned<D> integers;
    const V signs = hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(integers, v)));
    return hn::IfThenElse(hn::MaskFromVec(signs), yes, no);
#else
    return hn::IfNegativeThenElse(v, yes, no);
#endif
  }

  struct Mapped {
    V root;           ///< sqrt(pq - c^2)
    V weighted_root;  ///< The root times the weight.
    V distance;       ///< How far the correlation is from the nearer of 1 and -1.
    V derivative;
  };

  /// p, q: variances; left, right: what prepare() makes of them.
  static HWY_INLINE Mapped map(const Constants& k, V c, V p, V q, V left, V right) {
    const V inverse = hn::Mul(left, right);
    const V root = hn::Sqrt(hn::Max(Arc<Scalar>::determinant(k.d, p, q, c), k.zero));
    const V weighted_root = hn::Mul(k.weight, root), distance = hn::NegMulAdd(hn::Abs(c), inverse, k.one);
    // The weight times the sine, 1 without a variance. The angle is exact to the last digits where its sine is.
    const V sine = if_negative(hn::Or(left, right), k.weight, hn::Mul(weighted_root, inverse));
    const V over_sine = Arc<Scalar>::angle_over_sine(k.d, distance);
    const V derivative =
        if_negative(c, hn::MulAdd(sine, over_sine, k.opposed), hn::NegMulAdd(sine, over_sine, k.aligned));
    // The guards of planes have the inverse 0, and stay zero by this.
    const V slope = hn::IfThenElseZero(hn::Ne(inverse, k.zero), derivative);
    return {root, weighted_root, distance, slope};
  }

  template <bool with_ntk>
  static HWY_INLINE void apply_to(const formula::HomogeneousDual& dual, const DualRow<Scalar>& row) {
    const Constants constants(dual);
    // Stores might alias the row's table of pointers, so they are read first.
    const Scalar *p = row.left[0], *p_inverse = row.left[1], *q = row.right[0], *q_inverse = row.right[1];
    Scalar *nngp = row.nngp, *ntk = row.ntk;
    for_each_vector<Scalar>(row.size, [&](auto d, auto block) {
      const V c = block.load(d, nngp);
      const Mapped mapped = map(constants, c, block.load(d, p), block.load(d, q), block.load(d, p_inverse),
                                block.load(d, q_inverse));
      block.store(d, hn::MulAdd(mapped.derivative, c, mapped.weighted_root), nngp);
      if constexpr (with_ntk) block.store(d, hn::Mul(mapped.derivative, block.load(d, ntk)), ntk);
    });
  }

  static void apply(const formula::HomogeneousDual& dual, const DualRow<Scalar>& row) {
    if (row.ntk != nullptr)
      apply_to<true>(dual, row);
    else
      apply_to<false>(dual, row);
  }

  /// weight / sqrt(pq - c^2), the slope of the derivative in c; 0 at perfect correlation and without a variance, where
  /// it is infinite.
  static HWY_INLINE V derivative_in_c(const Constants& k, const Mapped& mapped) {
    const V nearest = hn::Set(k.d, 32 * std::numeric_limits<Scalar>::epsilon());
    const auto finite = hn::And(hn::Gt(mapped.distance, nearest), hn::Gt(mapped.root, k.zero));
    return hn::IfThenElseZero(finite, hn::Div(k.weight, mapped.root));
  }

  /// 2p times the slopes in p are weight sqrt(pq - c^2), of the value, and -c times that in c, of the derivative: what
  /// is added up for p-bar is the same for q-bar but for the last factor.
  template <bool with_ntk>
  static HWY_INLINE void backward_pass(const formula::HomogeneousDual& dual, const AdjointRow<Scalar>& row) {
    const Constants k(dual);
    const Scalar *p = row.left[0], *p_inverse = row.left[1], *q = row.right[0], *q_inverse = row.right[1];
    const Scalar *nngp = row.nngp, *ntk = row.ntk;
    Scalar *nngp_adjoint = row.nngp_adjoint, *ntk_adjoint = row.ntk_adjoint;
    Scalar *left_adjoint = row.left_adjoint, *right_adjoint = row.right_adjoint;
    for_each_vector<Scalar>(row.size, [&](auto d, auto block) {
      const V left = block.load(d, p_inverse), right = block.load(d, q_inverse);
      const V c = block.load(d, nngp), above = block.load(d, nngp_adjoint);
      const Mapped mapped = map(k, c, block.load(d, p), block.load(d, q), left, right);
      // docs/theory/derivatives.md, section 1: K-bar <- K'-bar f_c + T'-bar T g_c, where f_c = g is mapped.derivative.
      V in_c = hn::Mul(above, mapped.derivative), in_variances = hn::Mul(above, mapped.weighted_root);
      if constexpr (with_ntk) {
        const V ntk_above = block.load(d, ntk_adjoint);
        const V product = hn::Mul(hn::Mul(ntk_above, block.load(d, ntk)), derivative_in_c(k, mapped));
        in_c = hn::Add(in_c, product);
        in_variances = hn::NegMulAdd(c, product, in_variances);
        block.store(d, hn::Mul(ntk_above, mapped.derivative), ntk_adjoint);
      }
      // 1 / (2p) comes from the prepared inverse root. Positions without variance have -1 there,
      // but their in_variances is 0.
      const V half = hn::Mul(hn::Set(d, Scalar{0.5}), in_variances);
      block.store(d, in_c, nngp_adjoint);
      block.store(d, hn::Mul(half, hn::Mul(left, left)), left_adjoint);
      block.store(d, hn::Mul(half, hn::Mul(right, right)), right_adjoint);
    });
  }

  static void apply_adjoint(const formula::HomogeneousDual& dual, const AdjointRow<Scalar>& row) {
    if (row.ntk_adjoint != nullptr)
      backward_pass<true>(dual, row);
    else
      backward_pass<false>(dual, row);
  }
};

template <typename Scalar>
constexpr HomogeneousRows<Scalar> homogeneous_table = {HomogeneousRowLoops<Scalar>::prepare,
                                                       HomogeneousRowLoops<Scalar>::apply,
                                                       HomogeneousRowLoops<Scalar>::apply_adjoint};

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
