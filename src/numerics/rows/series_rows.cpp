#include "numerics/rows/series_rows.hpp"

#include <algorithm>
#include <cstdint>

#include "numerics/rows/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/rows/series_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "numerics/rows/limits-inl.hpp"
#include "numerics/rows/row_loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Scalar>
struct SeriesRowLoops {
  using D = hn::ScalableTag<Scalar>;
  using V = hn::Vec<D>;
  using M = hn::Mask<D>;
  static constexpr std::size_t levels = series_truncations.size();

  struct Sums {
    V value;
    V derivative;
  };

  /// Which truncation serves which entry.
  struct Levels {
    M beyond[levels];   ///< Entries that need more terms than this truncation has.
    std::size_t count;  ///< Truncations that some entry needs; levels + 1 if none serves one.

    HWY_INLINE Levels()
        : count{1} {}  // written out: what is implicit is not compiled for the instruction set
  };

  template <class Block>
  static HWY_INLINE V product(D d, const DualRow<Scalar>& row, const Block& at, std::size_t array) {
    return hn::Mul(at.load(d, row.left[array]), at.load(d, row.right[array]));
  }

  template <class Block>
  static HWY_INLINE Levels levels_of(D d, const DualRow<Scalar>& row, const Block& at, V size) {
    Levels needed;
    // Truncations are tried from the shortest on, until every entry of the vector is served.
    for (; needed.count <= levels; ++needed.count) {
      const std::size_t level = needed.count - 1;
      const M open = hn::Gt(size, product(d, row, at, SeriesArrays::reach + level));
      // An entry that a shorter truncation serves stays served: its bits must not depend on its neighbours.
      needed.beyond[level] = level == 0 ? open : hn::And(needed.beyond[level - 1], open);
      if (hn::AllFalse(d, needed.beyond[level])) break;
    }
    return needed;
  }

  /// One step of Horner's scheme.
  template <bool rises, class Block>
  static HWY_INLINE void add_term(D d, const SeriesDual<Scalar>& dual, const DualRow<Scalar>& row,
                                  const Block& at, std::size_t j, V step, Sums& sums) {
    const V slope = product(d, row, at, SeriesArrays::coefficients + j);
    const V rise =
        rises ? product(d, row, at, SeriesArrays::coefficients + series_truncations.back() + j) : slope;
    sums.derivative = hn::MulAdd(sums.derivative, step, slope);
    sums.value = hn::MulAdd(sums.value, step, hn::Mul(rise, hn::Set(d, dual.inverse_orders[j])));
  }

  /// From the highest order that an entry of the vector needs; the others join where their truncations end.
  template <bool rises, class Block>
  static HWY_INLINE Sums sum(D d, const SeriesDual<Scalar>& dual, const DualRow<Scalar>& row, const Block& at,
                             V rho, const Levels& needed) {
    const V square = hn::Mul(rho, rho), step = dual.others_skip ? square : rho;
    Sums sums{hn::Zero(d), hn::Zero(d)};
    std::size_t level = std::min(needed.count, levels) - 1, j = series_truncations[level];
    for (; level > 0; --level) {
      while (j > series_truncations[level - 1]) add_term<rises>(d, dual, row, at, --j, step, sums);
      // Entries that this truncation serves start here: what longer ones have added up for their neighbours is dropped.
      sums.value = hn::IfThenElseZero(needed.beyond[level - 1], sums.value);
      sums.derivative = hn::IfThenElseZero(needed.beyond[level - 1], sums.derivative);
    }
    while (j > 1) add_term<rises>(d, dual, row, at, --j, step, sums);
    // The step from order k_1 down to k_0 can differ from the others (SeriesDual).
    add_term<rises>(d, dual, row, at, 0, dual.first_skips ? square : rho, sums);
    return sums;
  }

  static HWY_INLINE std::size_t add_places(D d, M open, std::size_t begin, std::size_t* hard) {
    std::uint8_t bits[8] = {};
    hn::StoreMaskBits(d, open, bits);
    std::size_t count = 0;
    for (std::size_t lane = 0; lane < hn::Lanes(d); ++lane)
      if ((bits[lane / 8] >> (lane % 8) & 1) != 0) hard[count++] = begin + lane;
    return count;
  }

  template <bool rises>
  static HWY_INLINE std::size_t apply_part(const SeriesDual<Scalar>& dual, const DualRow<Scalar>& row,
                                           SeriesPart part, std::size_t* hard) {
    std::size_t count = 0;
    for_each_vector<Scalar>(part.size, [&](auto d, auto at) {
      at.begin += part.begin;
      const V c = at.load(d, row.nngp), one = hn::Set(d, Scalar{1});
      // Rounding, or a pair that does not belong together, can put |rho| a little above 1.
      const V raw = hn::Mul(c, product(d, row, at, SeriesArrays::inverse_deviation));
      const V rho = at_least(hn::Neg(one), at_most(one, raw));
      const Levels needed = levels_of(d, row, at, hn::Abs(rho));
      const Sums sums = sum<rises>(d, dual, row, at, rho, needed);
      const V value = hn::MulAdd(c, sums.value, product(d, row, at, SeriesArrays::mean));
      const bool all_served = needed.count <= levels;
      // Entries that no truncation serves keep their covariance, which the caller then maps itself.
      at.store(d, all_served ? value : hn::IfThenElse(needed.beyond[levels - 1], c, value), row.nngp);
      if (row.ntk != nullptr) {
        const V ntk = at.load(d, row.ntk), mapped = hn::Mul(sums.derivative, ntk);
        at.store(d, all_served ? mapped : hn::IfThenElse(needed.beyond[levels - 1], ntk, mapped), row.ntk);
      }
      if (!all_served) count += add_places(d, needed.beyond[levels - 1], at.begin, hard + count);
    });
    return count;
  }

  static std::size_t apply(const SeriesDual<Scalar>& dual, const DualRow<Scalar>& row, SeriesPart part,
                           std::size_t* hard) {
    return dual.rises ? apply_part<true>(dual, row, part, hard) : apply_part<false>(dual, row, part, hard);
  }

  static void add_rows(const Scalar* weights, std::size_t rows, const Scalar* table, std::size_t stride,
                       std::size_t columns, Scalar* out) {
    for_each_vector<Scalar>(columns, [&](auto d, auto at) {
      V sum = hn::Zero(d);
      for (std::size_t m = 0; m < rows; ++m)
        sum = hn::MulAdd(hn::Set(d, weights[m]), at.load(d, table + m * stride), sum);
      at.store(d, sum, out);
    });
  }
};

template <typename Scalar>
constexpr SeriesRows<Scalar> series_table = {SeriesRowLoops<Scalar>::apply, SeriesRowLoops<Scalar>::add_rows};

const SeriesRows<float>* series_float() { return &series_table<float>; }
const SeriesRows<double>* series_double() { return &series_table<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace widelimit::numerics {

HWY_EXPORT(series_float);
HWY_EXPORT(series_double);

template <>
const SeriesRows<float>& series_rows() {
  static const SeriesRows<float>& rows = *HWY_DYNAMIC_DISPATCH(series_float)();
  return rows;
}

template <>
const SeriesRows<double>& series_rows() {
  static const SeriesRows<double>& rows = *HWY_DYNAMIC_DISPATCH(series_double)();
  return rows;
}

}  // namespace widelimit::numerics
#endif  // HWY_ONCE
