#include "numerics/rows/linear_rows.hpp"

#include <array>

#include "numerics/rows/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/rows/linear_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "numerics/rows/row_convolutions-inl.hpp"
#include "numerics/rows/row_loop-inl.hpp"
#include "numerics/rows/row_products-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Scalar>
struct LinearRowLoops {
  using D = hn::ScalableTag<Scalar>;
  using V = hn::Vec<D>;

  static void scale(const DualRow<Scalar>& row) {
    for_each_vector<Scalar>(row.size, [&](auto d, auto block) {
      const auto factor = hn::Mul(block.load(d, row.left[0]), block.load(d, row.right[0]));
      block.store(d, hn::Mul(block.load(d, row.nngp), factor), row.nngp);
      if (row.ntk != nullptr) block.store(d, hn::Mul(block.load(d, row.ntk), factor), row.ntk);
    });
  }

  /// Copies a row and puts zeros after it, as far as `end`. Whole vectors are written.
  static HWY_INLINE void pack_row(const Scalar* source, std::size_t size, Scalar* target, std::size_t end) {
    const D d;
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= size; i += lanes) hn::StoreU(hn::LoadU(d, source + i), d, target + i);
    if (i == end) return;
    // The last read takes a whole vector, which can reach past the row by less than row_padding
    // numbers (LinearRows::pack).
    hn::StoreU(hn::IfThenElseZero(hn::FirstN(d, size - i), hn::LoadU(d, source + i)), d, target + i);
    for (i += lanes; i < end; i += lanes) hn::StoreU(hn::Zero(d), d, target + i);
  }

  static void pack(const Scalar* source, std::ptrdiff_t source_step, std::size_t rows, std::size_t row_size,
                   Scalar* target, std::size_t target_step) {
    for (std::size_t row = 0; row < rows; ++row, source += source_step, target += target_step)
      pack_row(source, row_size, target, target_step);
  }

  static void pack_pieces(const RowBlock<Scalar>& first, const RowBlock<Scalar>& second,
                          std::size_t second_start, std::size_t rows, Scalar* target,
                          std::size_t target_step) {
    const Scalar *in_first = first.first, *in_second = second.first;
    for (std::size_t row = 0; row < rows; ++row, target += target_step) {
      pack_row(in_first, first.size, target, second_start);
      pack_row(in_second, second.size, target + second_start, target_step - second_start);
      in_first += first.step;
      in_second += second.step;
    }
  }

  static void weighted_sum(const Scalar* first, const Scalar* second, const std::array<Scalar, 2>& factors,
                           Scalar* target, std::size_t size) {
    const Scalar first_factor = factors[0], second_factor = factors[1];
    for_each_vector<Scalar>(size, [&](auto d, auto block) {
      const V begin = hn::Mul(hn::Set(d, first_factor), block.load(d, first));
      block.store(d, hn::MulAdd(hn::Set(d, second_factor), block.load(d, second), begin), target);
    });
  }

  static void add(const Scalar* source, Scalar factor, Scalar* target, std::size_t size) {
    for_each_vector<Scalar>(size, [&](auto d, auto block) {
      block.store(d, hn::MulAdd(hn::Set(d, factor), block.load(d, source), block.load(d, target)), target);
    });
  }

  /// Four sums run side by side, because each addition of a single sum would wait for the one before.
  static double sum(const Scalar* source, std::size_t size) {
    const D d;
    const std::size_t lanes = hn::Lanes(d), step = 4 * lanes, blocks = size / step * step;
    V first = hn::Zero(d), second = first, third = first, fourth = first;
    for (std::size_t i = 0; i < blocks; i += step) {
      first = hn::Add(first, hn::LoadU(d, source + i));
      second = hn::Add(second, hn::LoadU(d, source + i + lanes));
      third = hn::Add(third, hn::LoadU(d, source + i + 2 * lanes));
      fourth = hn::Add(fourth, hn::LoadU(d, source + i + 3 * lanes));
    }
    for_each_vector<Scalar>(size - blocks, [&](auto tag, auto block) {
      first = hn::Add(first, block.load(tag, source + blocks));
    });
    // The four sums are joined in a fixed order, so that the bits depend on the size of the row alone.
    const V all = hn::Add(hn::Add(first, second), hn::Add(third, fourth));
    return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, all)));
  }

  static double dot(const Scalar* left, const Scalar* right, std::size_t size) {
    const D d;
    V sum = hn::Zero(d);
    for_each_vector<Scalar>(size, [&](auto tag, auto block) {
      sum = hn::MulAdd(block.load(tag, left), block.load(tag, right), sum);
    });
    return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  }

  static void sparse_product(const SparseMatrix<Scalar>& matrix, const Scalar* source, std::size_t size,
                             Scalar* target) {
    const D d;
    const std::size_t lanes = hn::Lanes(d);
    for (std::size_t a = 0; a < matrix.rows; ++a, target += size) {
      const std::ptrdiff_t begin = matrix.begin[a], end = matrix.begin[a + 1];
      const auto row_of = [&](std::ptrdiff_t k) {
        return source + matrix.columns[k] * static_cast<std::ptrdiff_t>(size);
      };
      // Two vectors at a time share the loads of the weights.
      std::size_t i = 0;
      for (; i + 2 * lanes <= size; i += 2 * lanes) {
        V first = hn::Zero(d), second = first;
        for (std::ptrdiff_t k = begin; k < end; ++k) {
          const V weight = hn::Set(d, matrix.weights[k]);
          const Scalar* row = row_of(k) + i;
          first = hn::MulAdd(weight, hn::LoadU(d, row), first);
          second = hn::MulAdd(weight, hn::LoadU(d, row + lanes), second);
        }
        hn::StoreU(first, d, target + i);
        hn::StoreU(second, d, target + i + lanes);
      }
      for_each_vector<Scalar>(size - i, [&](auto tag, auto block) {
        auto sum = hn::Zero(tag);
        for (std::ptrdiff_t k = begin; k < end; ++k)
          sum = hn::MulAdd(hn::Set(tag, matrix.weights[k]), block.load(tag, row_of(k) + i), sum);
        block.store(tag, sum, target + i);
      });
    }
  }

  /// Zero times an entry is zero if the entry is finite, and NaN otherwise, which then stays in the sum.
  static bool all_finite(const Scalar* source, std::size_t size) {
    const D d;
    V sum = hn::Zero(d);
    for_each_vector<Scalar>(
        size, [&](auto tag, auto block) { sum = hn::MulAdd(block.load(tag, source), hn::Zero(tag), sum); });
    return hn::GetLane(hn::SumOfLanes(d, sum)) == 0;
  }
};

template <typename Scalar>
constexpr LinearRows<Scalar> table = {
    LinearRowLoops<Scalar>::scale,        RowProducts<Scalar>::product_sum,
    RowProducts<Scalar>::product_sums,    RowConvolutions<Scalar>::convolve,
    LinearRowLoops<Scalar>::pack,         LinearRowLoops<Scalar>::pack_pieces,
    LinearRowLoops<Scalar>::weighted_sum, LinearRowLoops<Scalar>::sparse_product,
    LinearRowLoops<Scalar>::add,          LinearRowLoops<Scalar>::sum,
    LinearRowLoops<Scalar>::dot,          LinearRowLoops<Scalar>::all_finite};

const LinearRows<float>* float_table() { return &table<float>; }
const LinearRows<double>* double_table() { return &table<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace widelimit::numerics {

HWY_EXPORT(float_table);
HWY_EXPORT(double_table);

// The choice is made once: a dispatch for every row would cost as much as a short row.
template <>
const LinearRows<float>& linear_rows() {
  static const LinearRows<float>& rows = *HWY_DYNAMIC_DISPATCH(float_table)();
  return rows;
}

template <>
const LinearRows<double>& linear_rows() {
  static const LinearRows<double>& rows = *HWY_DYNAMIC_DISPATCH(double_table)();
  return rows;
}

}  // namespace widelimit::numerics
#endif  // HWY_ONCE
