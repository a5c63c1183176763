#include "numerics/rows/piece_sums.hpp"

#include "numerics/rows/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/rows/piece_sums.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "numerics/rows/row_loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Scalar>
struct PieceSumLoops {
  using D = hn::ScalableTag<Scalar>;
  using V = hn::Vec<D>;

  static void add(const WeightedPiece<Scalar>* pieces, std::size_t count, double* sums) {
    // All pieces have a second array or none has (WeightedPiece), so the first one decides.
    if (count > 0 && pieces->second != nullptr)
      add_both(pieces, count, sums);
    else
      add_first(pieces, count, sums);
  }

  static void add_both(const WeightedPiece<Scalar>* pieces, std::size_t count, double* sums) {
    const D d;
    // Sums run through all pieces in the lanes of the row's precision and are widened once at the end.
    V first = hn::Zero(d), second = hn::Zero(d);
    for (std::size_t k = 0; k < count; ++k) {
      const WeightedPiece<Scalar> piece = pieces[k];
      for_each_vector<Scalar>(piece.size, [&](auto tag, auto block) {
        const V weights = block.load(tag, piece.weights);
        first = hn::MulAdd(weights, block.load(tag, piece.first), first);
        second = hn::MulAdd(weights, block.load(tag, piece.second), second);
      });
    }
    sums[0] += total(first);
    sums[1] += total(second);
  }

  static void add_first(const WeightedPiece<Scalar>* pieces, std::size_t count, double* sums) {
    const D d;
    V first = hn::Zero(d);
    for (std::size_t k = 0; k < count; ++k) {
      const WeightedPiece<Scalar> piece = pieces[k];
      for_each_vector<Scalar>(piece.size, [&](auto tag, auto block) {
        first = hn::MulAdd(block.load(tag, piece.weights), block.load(tag, piece.first), first);
      });
    }
    sums[0] += total(first);
  }

  static HWY_INLINE double total(V sum) { return static_cast<double>(hn::GetLane(hn::SumOfLanes(D(), sum))); }
};

template <typename Scalar>
constexpr PieceSums<Scalar> piece_table = {PieceSumLoops<Scalar>::add};

const PieceSums<float>* float_piece_table() { return &piece_table<float>; }
const PieceSums<double>* double_piece_table() { return &piece_table<double>; }

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace widelimit::numerics {

HWY_EXPORT(float_piece_table);
HWY_EXPORT(double_piece_table);

// The choice is made once, as for linear_rows().
template <>
const PieceSums<float>& piece_sums() {
  static const PieceSums<float>& sums = *HWY_DYNAMIC_DISPATCH(float_piece_table)();
  return sums;
}

template <>
const PieceSums<double>& piece_sums() {
  static const PieceSums<double>& sums = *HWY_DYNAMIC_DISPATCH(double_piece_table)();
  return sums;
}

}  // namespace widelimit::numerics
#endif  // HWY_ONCE
