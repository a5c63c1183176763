#include "numerics/rows/linear_rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/rows/linear_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "numerics/rows/row_loop-inl.hpp"

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

  static void product_sum(const Scalar* const* left, const Scalar* const* right, std::size_t count,
                          Scalar factor, Scalar* target, std::size_t size) {
    for_each_vector<Scalar>(size, [&](auto d, auto block) {
      auto sum = hn::Zero(d);
      for (std::size_t k = 0; k < count; ++k)
        sum = hn::MulAdd(block.load(d, left[k]), block.load(d, right[k]), sum);
      block.store(d, hn::Mul(sum, hn::Set(d, factor)), target);
    });
  }

  template <class Block>
  static V tap_sum(D d, const Block& block, const Scalar* source, const Taps& taps) {
    V sum = block.load(d, source + taps.first);
    for (std::size_t t = 1; t < taps.count; ++t)
      sum = hn::Add(sum, block.load(d, source + taps.first + static_cast<std::ptrdiff_t>(t) * taps.step));
    return sum;
  }

  static void window_sum(const Scalar* source, const Taps& taps, Scalar* target, std::size_t size) {
    for_each_vector<Scalar>(
        size, [&](auto d, auto block) { block.store(d, tap_sum(d, block, source, taps), target); });
  }

  static void window_affine(const Scalar* source_nngp, const Scalar* source_ntk, const Taps& taps,
                            Scalar scale, Scalar bias, Scalar* nngp, Scalar* ntk, std::size_t size) {
    for_each_vector<Scalar>(size, [&](auto d, auto block) {
      const V scales = hn::Set(d, scale);
      const V value = hn::MulAdd(scales, tap_sum(d, block, source_nngp, taps), hn::Set(d, bias));
      if (ntk != nullptr) block.store(d, hn::MulAdd(scales, tap_sum(d, block, source_ntk, taps), value), ntk);
      block.store(d, value, nngp);
    });
  }

  static void add(const Scalar* source, Scalar factor, Scalar* target, std::size_t size) {
    for_each_vector<Scalar>(size, [&](auto d, auto block) {
      block.store(d, hn::MulAdd(hn::Set(d, factor), block.load(d, source), block.load(d, target)), target);
    });
  }

  static void multiply(const Scalar* source, Scalar factor, Scalar* target, std::size_t size) {
    for_each_vector<Scalar>(size, [&](auto d, auto block) {
      block.store(d, hn::Mul(hn::Mul(hn::Set(d, factor), block.load(d, source)), block.load(d, target)),
                  target);
    });
  }

  static double sum(const Scalar* source, std::size_t size) {
    const D d;
    V sum = hn::Zero(d);
    for_each_vector<Scalar>(size, [&](auto tag, auto block) { sum = hn::Add(sum, block.load(tag, source)); });
    return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  }

  static double dot(const Scalar* left, const Scalar* right, std::size_t size) {
    const D d;
    V sum = hn::Zero(d);
    for_each_vector<Scalar>(size, [&](auto tag, auto block) {
      sum = hn::MulAdd(block.load(tag, left), block.load(tag, right), sum);
    });
    return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  }
};

template <typename Scalar>
constexpr LinearRows<Scalar> table = {
    LinearRowLoops<Scalar>::scale,      LinearRowLoops<Scalar>::product_sum,
    LinearRowLoops<Scalar>::window_sum, LinearRowLoops<Scalar>::window_affine,
    LinearRowLoops<Scalar>::add,        LinearRowLoops<Scalar>::multiply,
    LinearRowLoops<Scalar>::sum,        LinearRowLoops<Scalar>::dot};

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
