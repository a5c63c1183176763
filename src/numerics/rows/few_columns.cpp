#include "numerics/rows/few_columns.hpp"

#include <algorithm>
#include <type_traits>

#include "numerics/rows/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/rows/few_columns.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Scalar>
struct FewColumnLoops {
  static constexpr std::size_t columns = FewColumns<Scalar>::columns, terms = FewColumns<Scalar>::terms;

  using D = hn::CappedTag<Scalar, columns>;
  using V = hn::Vec<D>;
  static constexpr std::size_t lanes = hn::MaxLanes(D()), at_once = std::min<std::size_t>(2, columns / lanes);
  /// As many sums as hide the latency of their additions and fit into the registers of AVX2.
  static constexpr std::size_t rows_together = 12 / at_once;

  static void add(const Scalar* matrix, std::size_t size, const Scalar* x, double* sums) {
    for_each_rows(size, [&](auto rows, std::size_t i) HWY_ATTR {
      for (std::size_t k = 0; k < size; k += terms)
        add_block<rows>({matrix + i * size + k, size, 1}, x + k * columns, std::min(terms, size - k),
                        sums + i * columns);
    });
  }

  /// The columns of M are copied, some rows of a few at a time, as these rows lie multiples of the size apart, often of
  /// a page: the first-level cache would not hold them together.
  static void add_transposed(const Scalar* matrix, std::size_t size, const Scalar* x, double* sums) {
    constexpr std::size_t width = 48;
    static_assert(width % rows_together == 0);
    Scalar tile[terms * width];
    for (std::size_t k = 0; k < size; k += terms) {
      const std::size_t count = std::min(terms, size - k);
      for (std::size_t first = 0; first < size; first += width) {
        const std::size_t wide = std::min(width, size - first);
        for (std::size_t term = 0; term < count; ++term)
          std::copy_n(matrix + (k + term) * size + first, wide, tile + term * width);
        for_each_rows(wide, [&](auto rows, std::size_t i) HWY_ATTR {
          add_block<rows>({tile + i, 1, width}, x + k * columns, count, sums + (first + i) * columns);
        });
      }
    }
  }

 private:
  /// Entry (i, k) stands at matrix[i row_step + k term_step].
  struct Steps {
    const Scalar* matrix;
    std::size_t row_step;
    std::size_t term_step;
  };

  template <class Body>
  static HWY_INLINE void for_each_rows(std::size_t count, const Body& body) {
    std::size_t i = 0;
    for (; i + rows_together <= count; i += rows_together)
      body(std::integral_constant<std::size_t, rows_together>(), i);
    for (; i < count; ++i) body(std::integral_constant<std::size_t, 1>(), i);
  }

  template <std::size_t rows>
  static HWY_INLINE void add_block(const Steps& m, const Scalar* x, std::size_t count, double* sums) {
    const D d;
    HWY_ALIGN Scalar block[rows * columns];
    for (std::size_t column = 0; column < columns; column += at_once * lanes) {
      // The second vector is not used where one holds all columns.
      V first[rows], second[rows];
      for (std::size_t row = 0; row < rows; ++row) first[row] = second[row] = hn::Zero(d);
      const Scalar* factors = x + column;
      const Scalar* entries = m.matrix;
      for (std::size_t k = 0; k < count; ++k, factors += columns, entries += m.term_step) {
        const V factor = hn::LoadU(d, factors), other = at_once == 2 ? hn::LoadU(d, factors + lanes) : factor;
        for (std::size_t row = 0; row < rows; ++row) {
          const V entry = hn::Set(d, entries[row * m.row_step]);
          first[row] = hn::MulAdd(entry, factor, first[row]);
          if constexpr (at_once == 2) second[row] = hn::MulAdd(entry, other, second[row]);
        }
      }
      for (std::size_t row = 0; row < rows; ++row) {
        hn::StoreU(first[row], d, block + row * columns + column);
        if constexpr (at_once == 2) hn::StoreU(second[row], d, block + row * columns + column + lanes);
      }
    }
    for (std::size_t i = 0; i < rows * columns; ++i) sums[i] += static_cast<double>(block[i]);
  }
};

template <typename Scalar>
constexpr FewColumns<Scalar> few_column_table = {FewColumnLoops<Scalar>::add,
                                                 FewColumnLoops<Scalar>::add_transposed};

const FewColumns<float>* few_columns_float() { return &few_column_table<float>; }
const FewColumns<double>* few_columns_double() { return &few_column_table<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace widelimit::numerics {

HWY_EXPORT(few_columns_float);
HWY_EXPORT(few_columns_double);

template <>
const FewColumns<float>& few_columns() {
  static const FewColumns<float>& products = *HWY_DYNAMIC_DISPATCH(few_columns_float)();
  return products;
}

template <>
const FewColumns<double>& few_columns() {
  static const FewColumns<double>& products = *HWY_DYNAMIC_DISPATCH(few_columns_double)();
  return products;
}

}  // namespace widelimit::numerics
#endif  // HWY_ONCE
