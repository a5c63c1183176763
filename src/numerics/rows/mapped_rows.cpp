#include "numerics/rows/mapped_rows.hpp"

#include <algorithm>

#include "numerics/rows/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/rows/mapped_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "numerics/rows/row_loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Scalar>
struct MappedRowLoops {
  using D = hn::CappedTag<Scalar, column_chunk>;
  using V = hn::Vec<D>;
  using Terms = RowTerms<Scalar>;
  using Index = std::ptrdiff_t;

  /// `vectors` of a row, from `source` on, which is in the first row of the plane.
  template <int vectors>
  static HWY_INLINE void combine_row(const Terms& terms, std::size_t n, const Scalar* source, Index slab_step,
                                     Index row_step, Scalar* target) {
    const D d;
    const auto lanes = static_cast<Index>(hn::Lanes(d));
    // Up to three vectors of sums stay in registers while all terms of the row are added.
    V sums[vectors];
    for (int v = 0; v < vectors; ++v)
      sums[v] = terms.adds[n] != 0 ? hn::LoadU(d, target + v * lanes) : hn::Zero(d);
    for (std::size_t i = terms.begin[n]; i < terms.begin[n + 1]; ++i) {
      const auto& term = terms.terms[i];
      const Scalar* row = source + term.slab * slab_step + term.row * row_step;
      const V weight = hn::Set(d, term.weight);
      for (int v = 0; v < vectors; ++v) sums[v] = hn::MulAdd(weight, hn::LoadU(d, row + v * lanes), sums[v]);
    }
    for (int v = 0; v < vectors; ++v) hn::StoreU(sums[v], d, target + v * lanes);
  }

  static void combine(const Terms& terms, const Scalar* source, Index slab_step, Index row_step,
                      std::size_t size, Scalar* target, Index target_step) {
    const auto lanes = static_cast<Index>(hn::Lanes(D()));
    const Index vectors = (static_cast<Index>(size) + lanes - 1) / lanes;
    for (std::size_t n = 0; n < terms.rows; ++n) {
      Scalar* row = target + terms.target[n] * target_step;
      Index v = 0;
      for (; v + 3 <= vectors; v += 3)
        combine_row<3>(terms, n, source + v * lanes, slab_step, row_step, row + v * lanes);
      if (v + 2 == vectors)
        combine_row<2>(terms, n, source + v * lanes, slab_step, row_step, row + v * lanes);
      else if (v < vectors)
        combine_row<1>(terms, n, source + v * lanes, slab_step, row_step, row + v * lanes);
    }
  }

  /// Maps `count` rows for the columns of one vector. A number of the matrix that is loaded serves all of these rows.
  template <int count, class Block>
  static HWY_INLINE void map_rows(const ColumnMap<Scalar>& map, const Block& block, const Scalar* source,
                                  Index source_step, Scalar* target, Index target_step) {
    const D d;
    V sums[count];
    for (int r = 0; r < count; ++r) sums[r] = block.load(d, target + r * target_step);
    const Scalar* matrix = map.matrix + block.begin;
    for (Index c = map.first; c < map.end; ++c, matrix += column_chunk) {
      const V weights = hn::LoadU(d, matrix);
      for (int r = 0; r < count; ++r)
        sums[r] = hn::MulAdd(hn::Set(d, source[r * source_step + c]), weights, sums[r]);
    }
    for (int r = 0; r < count; ++r) block.store(d, sums[r], target + r * target_step);
  }

  template <class Block>
  static HWY_INLINE void map_block(const ColumnMap<Scalar>& map, const Block& block, const Scalar* source,
                                   Index source_step, std::size_t rows, Scalar* target, Index target_step) {
    std::size_t n = 0;
    // Eight independent sums hide the latency of a multiply-add.
    for (; n + 8 <= rows; n += 8, source += 8 * source_step, target += 8 * target_step)
      map_rows<8>(map, block, source, source_step, target, target_step);
    for (; n + 4 <= rows; n += 4, source += 4 * source_step, target += 4 * target_step)
      map_rows<4>(map, block, source, source_step, target, target_step);
    for (; n < rows; ++n, source += source_step, target += target_step)
      map_rows<1>(map, block, source, source_step, target, target_step);
  }

  static void map_columns(const ColumnMap<Scalar>& map, const Scalar* source, Index source_step,
                          std::size_t rows, Scalar* target, Index target_step) {
    const std::size_t lanes = hn::Lanes(D());
    for (std::size_t k = 0; k < map.columns; k += lanes) {
      if (k + lanes <= map.columns)
        map_block(map, WholeBlock{k}, source, source_step, rows, target, target_step);
      else
        map_block(map, TailBlock{k, map.columns - k}, source, source_step, rows, target, target_step);
    }
  }
};

template <typename Scalar>
constexpr MappedRows<Scalar> mapped_table = {MappedRowLoops<Scalar>::combine,
                                             MappedRowLoops<Scalar>::map_columns};

const MappedRows<float>* float_mapped_table() { return &mapped_table<float>; }
const MappedRows<double>* double_mapped_table() { return &mapped_table<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace widelimit::numerics {

HWY_EXPORT(float_mapped_table);
HWY_EXPORT(double_mapped_table);

// The choice is made once, as for linear_rows().
template <>
const MappedRows<float>& mapped_rows() {
  static const MappedRows<float>& rows = *HWY_DYNAMIC_DISPATCH(float_mapped_table)();
  return rows;
}

template <>
const MappedRows<double>& mapped_rows() {
  static const MappedRows<double>& rows = *HWY_DYNAMIC_DISPATCH(double_mapped_table)();
  return rows;
}

}  // namespace widelimit::numerics
#endif  // HWY_ONCE
