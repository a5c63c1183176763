// Sums of products of rows. Included once for every instruction set: the guard follows Highway's convention.
#if defined(WIDELIMIT_ROW_PRODUCTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef WIDELIMIT_ROW_PRODUCTS_INL
#undef WIDELIMIT_ROW_PRODUCTS_INL
#else
#define WIDELIMIT_ROW_PRODUCTS_INL
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "numerics/rows/row_loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// See LinearRows::product_sum() and product_sums().
template <typename Scalar>
struct RowProducts {
  using D = hn::ScalableTag<Scalar>;
  using V = hn::Vec<D>;

  /// `known`: count, if it is known when compiling, else 0. The tables of pointers are copied, because stores
  /// might alias them.
  template <std::size_t known>
  static void product_sum_of(const Scalar* const* left, const Scalar* const* right, std::size_t count,
                             Scalar factor, Scalar* target, std::size_t size) {
    // With a known count the compiler unrolls the loop over the terms.
    if constexpr (known > 0) {
      std::array<const Scalar*, known> left_rows, right_rows;
      std::copy_n(left, known, left_rows.begin());
      std::copy_n(right, known, right_rows.begin());
      add_products(left_rows, right_rows, known, factor, target, size);
    } else {
      add_products(left, right, count, factor, target, size);
    }
  }

  template <class Rows>
  static HWY_INLINE void add_products(const Rows& left, const Rows& right, std::size_t count, Scalar factor,
                                      Scalar* target, std::size_t size) {
    const std::size_t begin = add_products_by_four(left, right, count, factor, target, size);
    // The rest of fewer than four vectors goes vector by vector, with the same operations for each entry.
    for_each_vector<Scalar>(size - begin, [&](auto d, auto block) {
      auto sum = hn::Zero(d);
      for (std::size_t k = 0; k < count; ++k)
        sum = hn::MulAdd(block.load(d, left[k] + begin), block.load(d, right[k] + begin), sum);
      block.store(d, hn::Mul(sum, hn::Set(d, factor)), target + begin);
    });
  }

  /// Four vectors at a time share the loads of pointers; returns where the rest begins.
  template <class Rows>
  static HWY_INLINE std::size_t add_products_by_four(const Rows& left, const Rows& right, std::size_t count,
                                                     Scalar factor, Scalar* target, std::size_t size) {
    const D d;
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + 4 * lanes <= size; i += 4 * lanes) {
      V first = hn::Zero(d), second = first, third = first, fourth = first;
      for (std::size_t k = 0; k < count; ++k) {
        const Scalar *x = left[k] + i, *y = right[k] + i;
        first = hn::MulAdd(hn::LoadU(d, x), hn::LoadU(d, y), first);
        second = hn::MulAdd(hn::LoadU(d, x + lanes), hn::LoadU(d, y + lanes), second);
        third = hn::MulAdd(hn::LoadU(d, x + 2 * lanes), hn::LoadU(d, y + 2 * lanes), third);
        fourth = hn::MulAdd(hn::LoadU(d, x + 3 * lanes), hn::LoadU(d, y + 3 * lanes), fourth);
      }
      const V scale = hn::Set(d, factor);
      hn::StoreU(hn::Mul(first, scale), d, target + i);
      hn::StoreU(hn::Mul(second, scale), d, target + i + lanes);
      hn::StoreU(hn::Mul(third, scale), d, target + i + 2 * lanes);
      hn::StoreU(hn::Mul(fourth, scale), d, target + i + 3 * lanes);
    }
    return i;
  }

  static void product_sum(const Scalar* const* left, const Scalar* const* right, std::size_t count,
                          Scalar factor, Scalar* target, std::size_t size) {
    const auto sum = count == 1 ? product_sum_of<1> : count == 3 ? product_sum_of<3> : product_sum_of<0>;
    sum(left, right, count, factor, target, size);
  }

  /// The products of some left and right inputs with each other: `vectors` vectors of entries.
  template <std::size_t lefts, std::size_t rights, std::size_t vectors, class Load, class Store>
  static HWY_INLINE void multiply_vectors(const Scalar* const* left, const Scalar* const* right,
                                          std::size_t count, Scalar factor, Scalar* const* targets,
                                          std::size_t target_step, const Load& load, const Store& store) {
    const D d;
    // The sums of all pairs stay in registers: at most 3 x 3 vectors, or 2 x 2 pairs of two vectors.
    V sums[lefts][rights][vectors];
    for (auto& row : sums)
      for (auto& sum : row)
        for (V& vector : sum) vector = hn::Zero(d);
    for (std::size_t k = 0; k < count; ++k)
      for (std::size_t a = 0; a < lefts; ++a)
        for (std::size_t v = 0; v < vectors; ++v) {
          const V number = load(left[a * count + k], v);
          for (std::size_t b = 0; b < rights; ++b)
            sums[a][b][v] = hn::MulAdd(number, load(right[b * count + k], v), sums[a][b][v]);
        }
    const V scale = hn::Set(d, factor);
    for (std::size_t a = 0; a < lefts; ++a)
      for (std::size_t b = 0; b < rights; ++b)
        for (std::size_t v = 0; v < vectors; ++v)
          store(hn::Mul(sums[a][b][v], scale), targets[a * target_step + b], v);
  }

  /// Entries from `begin` to `end`.
  template <std::size_t lefts, std::size_t rights>
  static void multiply_some(const Scalar* const* left, const Scalar* const* right, std::size_t count,
                            Scalar factor, Scalar* const* targets, std::size_t target_step, std::size_t begin,
                            std::size_t end) {
    const D d;
    const std::size_t lanes = hn::Lanes(d);
    // Two vectors share the loads of pointers, if there are registers for their sums.
    constexpr std::size_t vectors = lefts * rights > 4 ? 1 : 2;
    std::size_t i = begin;
    for (; i + vectors * lanes <= end; i += vectors * lanes)
      multiply_vectors<lefts, rights, vectors>(
          left, right, count, factor, targets, target_step,
          [&](const Scalar* row, std::size_t v) HWY_ATTR { return hn::LoadU(d, row + i + v * lanes); },
          [&](V value, Scalar* row, std::size_t v) HWY_ATTR { hn::StoreU(value, d, row + i + v * lanes); });
    for_each_vector<Scalar>(end - i, [&](auto tag, auto block) HWY_ATTR {
      multiply_vectors<lefts, rights, 1>(
          left, right, count, factor, targets, target_step,
          [&](const Scalar* row, std::size_t) HWY_ATTR { return block.load(tag, row + i); },
          [&](V value, Scalar* row, std::size_t) HWY_ATTR { block.store(tag, value, row + i); });
    });
  }

  using Multiply = void (*)(const Scalar* const*, const Scalar* const*, std::size_t, Scalar, Scalar* const*,
                            std::size_t, std::size_t, std::size_t);
  static constexpr std::array<std::array<Multiply, 3>, 3> multiply_by_inputs{
      {{multiply_some<1, 1>, multiply_some<1, 2>, multiply_some<1, 3>},
       {multiply_some<2, 1>, multiply_some<2, 2>, multiply_some<2, 3>},
       {multiply_some<3, 1>, multiply_some<3, 2>, multiply_some<3, 3>}}};

  /// Three or two left and right inputs at a time, as many entries as stay in the first-level cache
  /// meanwhile.
  static void product_sums(const Scalar* const* left, std::size_t lefts, const Scalar* const* right,
                           std::size_t rights, std::size_t count, Scalar factor, Scalar* const* targets,
                           std::size_t size) {
    constexpr std::size_t entries = 1024 / sizeof(Scalar);
    // A rest of four is cut into 2 + 2 instead of 3 + 1, which loads fewer numbers for each product.
    const auto at_once = [](std::size_t left_over) -> std::size_t {
      return left_over == 2 || left_over == 4 ? 2 : std::min<std::size_t>(left_over, 3);
    };
    for (std::size_t begin = 0; begin < size; begin += entries)
      for (std::size_t a = 0; a < lefts; a += at_once(lefts - a))
        for (std::size_t b = 0; b < rights; b += at_once(rights - b)) {
          const Multiply multiply = multiply_by_inputs[at_once(lefts - a) - 1][at_once(rights - b) - 1];
          multiply(left + a * count, right + b * count, count, factor, targets + a * rights + b, rights,
                   begin, std::min(begin + entries, size));
        }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#endif  // per target
