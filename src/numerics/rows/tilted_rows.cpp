#include "numerics/rows/tilted_rows.hpp"

#include <numbers>
#include <type_traits>

#include "numerics/formula/smooth_formulas.hpp"
#include "numerics/rows/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/rows/tilted_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "numerics/rows/arc-inl.hpp"
#include "numerics/rows/limits-inl.hpp"
#include "numerics/rows/row_loop-inl.hpp"

// The text of this file is read once for each instruction set.
#ifndef WIDELIMIT_TILTED_TABLES
#define WIDELIMIT_TILTED_TABLES
namespace widelimit::numerics {

template <typename Scalar>
struct TiltedTables {
  TiltedRows<Scalar> of_erf, of_gelu, of_gaussian;
};

}  // namespace widelimit::numerics
#endif

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

  /// The numbers from which the dual of an entry and its slopes are made.
  struct Entry {
    V c, p, q;
    V inverse;  ///< 1 / sqrt((s + p)(s + q))

    [[nodiscard]] HWY_INLINE V det(D d) const {
      return at_least(hn::Zero(d), Arc<Scalar>::determinant(d, p, q, c));
    }
    /// det is pq - c^2; R^2 = s^2 + s (p + q) + det, of which no term is negative, so that nothing cancels.
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
    // For c < 0 s tends to 0, and 1/2 minus the other angle would lose it.
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

  /// What the backward pass reads of a dual whose slope in c is its derivative.
  struct Slopes {
    V derivative;
    V derivative_in_c;
    V value_in_p, derivative_in_p;
    V value_in_q, derivative_in_q;
  };

  /// dR/dp = (s + q) / 2R and dR/dc = -c / R. Quotients are taken one after the other, because
  /// powers of R leave the range.
  static HWY_INLINE Slopes erf_slopes(D d, const TiltedDual& dual, const Entry& at, V p_inverse,
                                      V q_inverse) {
    const V shift = set(d, dual.shift), half = set(d, -0.5);
    const V over_root = hn::Div(set(d, 1), at.root(shift, at.det(d)));
    const V slope = hn::Mul(set(d, dual.weight), over_root), relative = hn::Mul(at.c, over_root);
    const auto in_variance = [&](V inverse) {
      return hn::Mul(hn::Mul(half, slope), hn::Mul(hn::Mul(at.c, inverse), inverse));
    };
    const auto of_derivative = [&](V other) {
      return hn::Mul(hn::Mul(half, slope), hn::Mul(hn::Mul(hn::Add(shift, other), over_root), over_root));
    };
    return {slope,
            hn::Mul(slope, hn::Mul(relative, over_root)),
            in_variance(p_inverse),
            of_derivative(at.q),
            in_variance(q_inverse),
            of_derivative(at.p)};
  }

  static HWY_INLINE Slopes gaussian_slopes(D d, const TiltedDual& dual, const Entry& at) {
    const V shift = set(d, dual.shift);
    const V over_root = hn::Div(set(d, 1), at.root(shift, at.det(d)));
    const V value = hn::Mul(set(d, dual.weight), over_root), relative = hn::Mul(at.c, over_root);
    // derivative = value c / R^2, hence d log(derivative) / dp = 3 d log(value) / dp.
    const V slope = hn::Mul(hn::Mul(value, over_root), relative);
    const auto log_slope = [&](V other) {
      return hn::Mul(hn::Mul(set(d, -0.5), hn::Mul(hn::Add(shift, other), over_root)), over_root);
    };
    const V in_p = log_slope(at.q), in_q = log_slope(at.p), thrice = hn::Mul(set(d, 3), slope);
    const V bend = hn::MulAdd(thrice, relative, hn::Mul(value, over_root));
    return {slope,
            hn::Mul(bend, over_root),
            hn::Mul(value, in_p),
            hn::Mul(thrice, in_p),
            hn::Mul(value, in_q),
            hn::Mul(thrice, in_q)};
  }

  /// The formulas of gelu.cpp.
  static HWY_INLINE Slopes gelu_slopes(D d, const Entry& at, V p_inverse, V q_inverse) {
    const V one = set(d, 1), det = at.det(d), over_root = hn::Div(one, at.root(one, det));
    const V square = hn::Mul(over_root, over_root), relative = hn::Mul(at.c, over_root);
    const V of_p = hn::Mul(p_inverse, p_inverse), of_q = hn::Mul(q_inverse, q_inverse);
    const V shrinkage = hn::Add(of_p, of_q), weight = hn::Mul(set(d, std::numbers::inv_pi / 2), over_root);
    const V thrice = hn::MulAdd(set(d, 3), square, shrinkage);
    const auto in_value = [&](V own, V other) {
      const V y = hn::Mul(hn::Add(other, det), own);
      const V inner = hn::MulSub(y, hn::MulAdd(set(d, 2), y, set(d, 3)), other);
      const V all = hn::MulAdd(hn::Mul(det, over_root), hn::Add(one, y), hn::Mul(inner, over_root));
      return hn::Mul(hn::Mul(set(d, 0.5), weight), hn::Mul(all, over_root));
    };
    const auto in_derivative = [&](V own, V other) {
      const V stretch = hn::Mul(hn::Add(one, other), square);
      const V all = hn::MulAdd(own, hn::MulAdd(set(d, 2), own, one), hn::Mul(thrice, stretch));
      return hn::Mul(hn::Mul(set(d, -0.5), hn::Mul(weight, at.c)), all);
    };
    const V bend = hn::MulAdd(hn::Mul(relative, relative), thrice, hn::Add(hn::Add(one, shrinkage), square));
    return {gelu_entry(d, at).derivative, hn::Mul(weight, bend), in_value(of_p, at.q),
            in_derivative(of_p, at.q),    in_value(of_q, at.p),  in_derivative(of_q, at.p)};
  }

  /// slopes_of(d, entry, 1 / sqrt(s + p), 1 / sqrt(s + q)).
  template <class SlopesOf>
  static HWY_INLINE void backward_pass(const AdjointRow<Scalar>& row, const SlopesOf& slopes_of) {
    const Scalar *p = row.left[0], *left = row.left[1], *q = row.right[0], *right = row.right[1];
    const Scalar *nngp = row.nngp, *ntk = row.ntk;
    Scalar *nngp_adjoint = row.nngp_adjoint, *ntk_adjoint = row.ntk_adjoint;
    Scalar *left_adjoint = row.left_adjoint, *right_adjoint = row.right_adjoint;
    for_each_vector<Scalar>(row.size, [&](auto d, auto block) {
      const V p_inverse = block.load(d, left), q_inverse = block.load(d, right);
      const Entry at{block.load(d, nngp), block.load(d, p), block.load(d, q), hn::Mul(p_inverse, q_inverse)};
      const Slopes slopes = slopes_of(d, at, p_inverse, q_inverse);
      const V above = block.load(d, nngp_adjoint);
      V product = hn::Zero(d);
      if (ntk_adjoint != nullptr) {
        const V ntk_above = block.load(d, ntk_adjoint);
        // The product T'-bar T multiplies the slopes of the derivative (docs/theory/derivatives.md, section 1).
        product = hn::Mul(ntk_above, block.load(d, ntk));
        block.store(d, hn::Mul(ntk_above, slopes.derivative), ntk_adjoint);
      }
      const auto through = [&](V value, V derivative) {
        return hn::MulAdd(above, value, hn::Mul(product, derivative));
      };
      block.store(d, through(slopes.derivative, slopes.derivative_in_c), nngp_adjoint);
      block.store(d, through(slopes.value_in_p, slopes.derivative_in_p), left_adjoint);
      block.store(d, through(slopes.value_in_q, slopes.derivative_in_q), right_adjoint);
    });
  }

  static void erf_adjoint(const TiltedDual& dual, const AdjointRow<Scalar>& row) {
    // A copy on the stack: stores to the row might alias the caller's numbers, which would then
    // be loaded again and again.
    const TiltedDual numbers = dual;
    backward_pass(row, [&](D d, const Entry& at, V p_inverse, V q_inverse) {
      return erf_slopes(d, numbers, at, p_inverse, q_inverse);
    });
  }
  static void gelu_adjoint(const TiltedDual& /*dual*/, const AdjointRow<Scalar>& row) {
    backward_pass(row, [](D d, const Entry& at, V p_inverse, V q_inverse) {
      return gelu_slopes(d, at, p_inverse, q_inverse);
    });
  }
  static void gaussian_adjoint(const TiltedDual& dual, const AdjointRow<Scalar>& row) {
    const TiltedDual numbers = dual;
    backward_pass(row, [&](D d, const Entry& at, V, V) { return gaussian_slopes(d, numbers, at); });
  }

  static void erf(const TiltedDual& dual, const DualRow<Scalar>& row) {
    const TiltedDual numbers = dual;
    for_each_entry(row, [&](D d, const Entry& at) { return erf_entry(d, numbers, at); });
  }
  static void gelu(const TiltedDual& /*dual*/, const DualRow<Scalar>& row) {
    for_each_entry(row, [](D d, const Entry& at) { return gelu_entry(d, at); });
  }
  static void gaussian(const TiltedDual& dual, const DualRow<Scalar>& row) {
    const TiltedDual numbers = dual;
    for_each_entry(row, [&](D d, const Entry& at) { return gaussian_entry(d, numbers, at); });
  }
};

template <typename Scalar>
constexpr TiltedTables<Scalar> tilted_tables = {
    .of_erf = {TiltedRowLoops<Scalar>::prepare, TiltedRowLoops<Scalar>::cover, TiltedRowLoops<Scalar>::erf,
               TiltedRowLoops<Scalar>::erf_adjoint},
    .of_gelu = {TiltedRowLoops<Scalar>::prepare, TiltedRowLoops<Scalar>::cover, TiltedRowLoops<Scalar>::gelu,
                TiltedRowLoops<Scalar>::gelu_adjoint},
    .of_gaussian = {TiltedRowLoops<Scalar>::prepare, TiltedRowLoops<Scalar>::cover,
                    TiltedRowLoops<Scalar>::gaussian, TiltedRowLoops<Scalar>::gaussian_adjoint}};

const TiltedTables<float>* tilted_float() { return &tilted_tables<float>; }
const TiltedTables<double>* tilted_double() { return &tilted_tables<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace widelimit::numerics {

HWY_EXPORT(tilted_float);
HWY_EXPORT(tilted_double);

namespace {

template <typename Scalar>
const TiltedTables<Scalar>& tables() {
  if constexpr (std::is_same_v<Scalar, float>) {
    static const TiltedTables<float>& best = *HWY_DYNAMIC_DISPATCH(tilted_float)();
    return best;
  } else {
    static const TiltedTables<double>& best = *HWY_DYNAMIC_DISPATCH(tilted_double)();
    return best;
  }
}

}  // namespace

template <>
const TiltedRows<float>& tilted_rows<float, formula::ErfFormula>() {
  return tables<float>().of_erf;
}
template <>
const TiltedRows<double>& tilted_rows<double, formula::ErfFormula>() {
  return tables<double>().of_erf;
}
template <>
const TiltedRows<float>& tilted_rows<float, formula::GeluFormula>() {
  return tables<float>().of_gelu;
}
template <>
const TiltedRows<double>& tilted_rows<double, formula::GeluFormula>() {
  return tables<double>().of_gelu;
}
template <>
const TiltedRows<float>& tilted_rows<float, formula::GaussianFormula>() {
  return tables<float>().of_gaussian;
}
template <>
const TiltedRows<double>& tilted_rows<double, formula::GaussianFormula>() {
  return tables<double>().of_gaussian;
}

}  // namespace widelimit::numerics
#endif  // HWY_ONCE
