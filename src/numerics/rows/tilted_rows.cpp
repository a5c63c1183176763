#include "numerics/rows/tilted_rows.hpp"

#include <numbers>

#include "numerics/rows/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/rows/tilted_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "numerics/rows/arc-inl.hpp"
#include "numerics/rows/limits-inl.hpp"
#include "numerics/rows/row_loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Scalar>
struct TiltedRowLoops {
  using D = hn::ScalableTag<Scalar>;
  using V = hn::Vec<D>;

  static HWY_INLINE V set(D d, double number) { return hn::Set(d, static_cast<Scalar>(number)); }

  static void prepare(double shift, const Scalar* variance, Scalar* const* auxiliary, std::size_t size) {
    for_each_vector<Scalar>(size, [&](auto d, auto block) {
      const V p = block.load(d, variance);
      block.store(d, p, auxiliary[0]);
      block.store(d, hn::Div(set(d, 1), hn::Sqrt(hn::Add(set(d, shift), p))), auxiliary[1]);
    });
  }

  static bool cover(const DualRow<Scalar>& row) {
    const Scalar limit = static_cast<Scalar>(sizeof(Scalar) == 4 ? 1e18 : 1e150);
    const Scalar *p = row.left[0], *q = row.right[0];
    V largest = hn::Zero(D());
    for_each_vector<Scalar>(row.size, [&](auto d, auto block) {
      largest = hn::Max(largest, hn::Max(block.load(d, p), block.load(d, q)));
    });
    return hn::AllTrue(D(), hn::Le(largest, hn::Set(D(), limit)));
  }

  /// Of an entry.
  struct Entry {
    V c, p, q;
    V inverse;  ///< 1 / sqrt((s + p)(s + q))

    [[nodiscard]] HWY_INLINE V det(D d) const {
      return at_least(hn::Zero(d), Arc<Scalar>::determinant(d, p, q, c));
    }
    /// R = sqrt(s^2 + s (p + q) + pq - c^2): no term is negative.
    [[nodiscard]] HWY_INLINE V root(V shift, V determinant) const {
      return hn::Sqrt(hn::Add(hn::Mul(shift, shift), hn::MulAdd(shift, hn::Add(p, q), determinant)));
    }
  };

  struct Mapped {
    V value;
    V derivative;
  };

  /// The sine of the angle is c / sqrt((s + p)(s + q)), its cosine R over the same.
  static HWY_INLINE Mapped erf_entry(D d, const TiltedDual& dual, const Entry& at) {
    const V inverse = at.inverse, weight = set(d, dual.weight);
    const V root = at.root(set(d, dual.shift), at.det(d));
    const V from_one = hn::NegMulAdd(root, inverse, set(d, 1));
    const V angle = hn::Mul(hn::Mul(at.c, inverse), Arc<Scalar>::angle_over_sine(d, from_one));
    return {hn::MulAdd(weight, angle, set(d, dual.offset)), hn::Div(weight, root)};
  }

  /// The formulas of gelu.cpp, with the angle from the nearer end of the arc as in homogeneous_row.cpp.
  static HWY_INLINE Mapped gelu_entry(D d, const Entry& at) {
    const V one = set(d, 1), inverse = at.inverse, over_two_pi = set(d, std::numbers::inv_pi / 2);
    const V det = at.det(d), root = at.root(one, det), over_root = hn::Div(one, root);
    const V from_one = hn::NegMulAdd(hn::Abs(at.c), inverse, one);
    const V angle = hn::Mul(hn::Mul(root, inverse), Arc<Scalar>::angle_over_sine(d, from_one));
    const V both_positive = hn::Mul(over_two_pi, angle);
    const V s = hn::IfThenElse(hn::Lt(at.c, hn::Zero(d)), both_positive, hn::Sub(set(d, 0.5), both_positive));
    // 1 / (1 + p) + 1 / (1 + q), with the same bits for the pair the other way round.
    const V shrinkage = hn::Mul(hn::Add(set(d, 2), hn::Add(at.p, at.q)), hn::Mul(inverse, inverse));
    const V density = hn::Mul(over_two_pi, over_root);
    const V rest = hn::MulAdd(at.c, hn::Mul(at.c, shrinkage), det);
    const V slope = hn::MulAdd(over_root, over_root, shrinkage);
    return {hn::MulAdd(at.c, s, hn::Mul(density, rest)), hn::MulAdd(hn::Mul(at.c, density), slope, s)};
  }

  static HWY_INLINE Mapped gaussian_entry(D d, const TiltedDual& dual, const Entry& at) {
    const V over_root = hn::Div(set(d, 1), at.root(set(d, dual.shift), at.det(d)));
    const V value = hn::Mul(set(d, dual.weight), over_root);
    return {value, hn::Mul(hn::Mul(value, over_root), hn::Mul(at.c, over_root))};
  }

  template <class Map>
  static HWY_INLINE void for_each_entry(const DualRow<Scalar>& row, const Map& map) {
    // Stores might alias the row's table of pointers, so they are read first.
    const Scalar *p = row.left[0], *p_inverse = row.left[1], *q = row.right[0], *q_inverse = row.right[1];
    Scalar *nngp = row.nngp, *ntk = row.ntk;
    for_each_vector<Scalar>(row.size, [&](auto d, auto block) {
      const Entry at{block.load(d, nngp), block.load(d, p), block.load(d, q),
                     hn::Mul(block.load(d, p_inverse), block.load(d, q_inverse))};
      const Mapped mapped = map(d, at);
      block.store(d, mapped.value, nngp);
      if (ntk != nullptr) block.store(d, hn::Mul(mapped.derivative, block.load(d, ntk)), ntk);
    });
  }

  static void erf(const TiltedDual& dual, const DualRow<Scalar>& row) {
    const TiltedDual numbers = dual;
    for_each_entry(row, [&](D d, const Entry& at) { return erf_entry(d, numbers, at); });
  }
  static void gelu(const DualRow<Scalar>& row) {
    for_each_entry(row, [](D d, const Entry& at) { return gelu_entry(d, at); });
  }
  static void gaussian(const TiltedDual& dual, const DualRow<Scalar>& row) {
    const TiltedDual numbers = dual;
    for_each_entry(row, [&](D d, const Entry& at) { return gaussian_entry(d, numbers, at); });
  }
};

template <typename Scalar>
constexpr TiltedRows<Scalar> tilted_table = {TiltedRowLoops<Scalar>::prepare, TiltedRowLoops<Scalar>::cover,
                                             TiltedRowLoops<Scalar>::erf, TiltedRowLoops<Scalar>::gelu,
                                             TiltedRowLoops<Scalar>::gaussian};

const TiltedRows<float>* tilted_float() { return &tilted_table<float>; }
const TiltedRows<double>* tilted_double() { return &tilted_table<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace widelimit::numerics {

HWY_EXPORT(tilted_float);
HWY_EXPORT(tilted_double);

template <>
const TiltedRows<float>& tilted_rows() {
  static const TiltedRows<float>& rows = *HWY_DYNAMIC_DISPATCH(tilted_float)();
  return rows;
}

template <>
const TiltedRows<double>& tilted_rows() {
  static const TiltedRows<double>& rows = *HWY_DYNAMIC_DISPATCH(tilted_double)();
  return rows;
}

}  // namespace widelimit::numerics
#endif  // HWY_ONCE
