#include "numerics/rows/precise_products.hpp"

#include "numerics/rows/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/rows/precise_products.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "numerics/rows/row_loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Scalar>
struct PreciseLoops {
  using D = hn::ScalableTag<Scalar>;
  using V = hn::Vec<D>;

  template <class Block>
  static HWY_INLINE hn::Vec<hn::ScalableTag<double>> load_wide(const Block& block, const Scalar* row) {
    const hn::ScalableTag<double> d;
    if constexpr (sizeof(Scalar) == sizeof(double))
      return block.load(d, row);
    else
      return hn::PromoteTo(d, block.load(hn::Rebind<Scalar, hn::ScalableTag<double>>(), row));
  }

  /// Knuth's two-sum keeps the rounding error of every addition in a second sum. Products of
  /// floats are exact in double.
  static double dot(const Scalar* left, const Scalar* right, std::size_t size) {
    const hn::ScalableTag<double> wide;
    auto sum = hn::Zero(wide), error = hn::Zero(wide);
    for_each_vector<double>(size, [&](auto, auto block) HWY_ATTR {
      const auto product = hn::Mul(load_wide(block, left), load_wide(block, right));
      const auto next = hn::Add(sum, product), added = hn::Sub(next, sum);
      // (sum - (next - added)) + (product - added) is exactly what the addition rounded away.
      error = hn::Add(error, hn::Add(hn::Sub(sum, hn::Sub(next, added)), hn::Sub(product, added)));
      sum = next;
    });
    return hn::GetLane(hn::SumOfLanes(wide, hn::Add(sum, error)));
  }

  static void multiply_rows(const Scalar* left, const Scalar* right, std::size_t step, std::size_t count,
                            std::size_t size, double factor, Scalar* products) {
    constexpr std::size_t together = 4;  // a vector of the left row serves as many right ones
    std::size_t j = 0;
    for (; j + together <= count; j += together)
      multiply_some<together>(left, right + j * step, step, size, factor, products + j);
    for (; j < count; ++j) multiply_some<1>(left, right + j * step, step, size, factor, products + j);
  }

  template <std::size_t together>
  static HWY_INLINE void multiply_some(const Scalar* left, const Scalar* right, std::size_t step,
                                       std::size_t size, double factor, Scalar* products) {
    static_assert(together == 1 || together == 4);
    const hn::ScalableTag<double> wide;
    // The bits of a product do not depend on `together`: each right row has one sum, added up in the same order.
    auto first = hn::Zero(wide), second = first, third = first, fourth = first;
    for_each_vector<double>(size, [&](auto, auto block) HWY_ATTR {
      const auto value = load_wide(block, left);
      first = hn::MulAdd(value, load_wide(block, right), first);
      if constexpr (together == 4) {
        second = hn::MulAdd(value, load_wide(block, right + step), second);
        third = hn::MulAdd(value, load_wide(block, right + 2 * step), third);
        fourth = hn::MulAdd(value, load_wide(block, right + 3 * step), fourth);
      }
    });
    const auto sum = [&](auto vector) HWY_ATTR {
      return static_cast<Scalar>(factor * hn::GetLane(hn::SumOfLanes(wide, vector)));
    };
    products[0] = sum(first);
    if constexpr (together == 4) {
      products[1] = sum(second);
      products[2] = sum(third);
      products[3] = sum(fourth);
    }
  }

  static bool any_exceeds(const Scalar* values, const Scalar* bounds, Scalar factor, std::size_t size) {
    const D d;
    // The start is below 0, so that an empty row exceeds nothing.
    V most = hn::Set(d, Scalar{-1});
    for_each_vector<Scalar>(size, [&](auto tag, auto block) HWY_ATTR {
      const V bound = hn::Mul(hn::Set(tag, factor), block.load(tag, bounds));
      most = hn::Max(most, hn::Sub(hn::Abs(block.load(tag, values)), bound));
    });
    return hn::GetLane(hn::MaxOfLanes(d, most)) > 0;
  }
};

template <typename Scalar>
constexpr PreciseProducts<Scalar> precise_table = {
    PreciseLoops<Scalar>::dot, PreciseLoops<Scalar>::multiply_rows, PreciseLoops<Scalar>::any_exceeds};

const PreciseProducts<float>* precise_float() { return &precise_table<float>; }
const PreciseProducts<double>* precise_double() { return &precise_table<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace widelimit::numerics {

HWY_EXPORT(precise_float);
HWY_EXPORT(precise_double);

template <>
const PreciseProducts<float>& precise_products() {
  static const PreciseProducts<float>& products = *HWY_DYNAMIC_DISPATCH(precise_float)();
  return products;
}

template <>
const PreciseProducts<double>& precise_products() {
  static const PreciseProducts<double>& products = *HWY_DYNAMIC_DISPATCH(precise_double)();
  return products;
}

}  // namespace widelimit::numerics
#endif  // HWY_ONCE
