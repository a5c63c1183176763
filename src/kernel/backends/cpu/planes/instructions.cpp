#include "kernel/backends/cpu/planes/instructions.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "kernel/range/variance_checks.hpp"
#include "network/mask_stage.hpp"
#include "numerics/rows/linear_rows.hpp"

namespace widelimit {

/// K_ab = sum over channels of x_a x'_b / C, entry by entry of a plane, whose arrays are one row for each channel.
template <typename Scalar>
void multiply_features(const PlacedInstruction<Scalar>& input, Index stacked) {
  const Plane<Scalar> target = input.result();
  const auto row = input.dual_row(stacked, target);
  const auto channels = static_cast<std::size_t>(input.arrays->count());
  numerics::linear_rows<Scalar>().product_sum(row.left, row.right, channels,
                                              Scalar{1} / static_cast<Scalar>(channels), row.nngp, row.size);
  if (row.ntk != nullptr) std::fill_n(row.ntk, row.size, Scalar{0});
  input.clear_behind_rows(target);
}

namespace {

/// The diagonal entries of matrices [size, size], copied to rows of their own. In a whole matrix of an input with
/// itself, the diagonal obeys the stage's rule for an input with itself and all other entries the rule for pairs.
template <typename Scalar>
class SelfDiagonal {
 public:
  SelfDiagonal(const PlacedInstruction<Scalar>& to, const Plane<Scalar>& source)
      : size_{to.at().layout.extent[1]}, arrays_{static_cast<std::size_t>(to.arrays->count())} {
    nngp_ = gathered(source.nngp);
    if (source.ntk != nullptr) ntk_ = gathered(source.ntk);
    for (const Side side : {Side::left, Side::right})
      for (std::size_t k = 0; k < arrays_; ++k) numbers_.push_back(gathered(to.arrays->rows(side)[k]));
    for (const std::vector<Scalar>& numbers : numbers_) rows_.push_back(numbers.data());
  }

  void apply(const RowStage& stage, const Plane<Scalar>& target) {
    // Arrays of the left side come first in rows_, then those of the right side.
    stage.apply_self(numerics::DualRow<Scalar>{nngp_.data(), ntk_.empty() ? nullptr : ntk_.data(),
                                               rows_.data(), rows_.data() + arrays_, nngp_.size()});
    scatter(nngp_, target.nngp);
    if (target.ntk != nullptr) scatter(ntk_, target.ntk);
  }

 private:
  [[nodiscard]] std::vector<Scalar> gathered(const Scalar* matrix) const {
    std::vector<Scalar> row(static_cast<std::size_t>(padded(size_)), Scalar{0});
    for (Index a = 0; a < size_; ++a) row[static_cast<std::size_t>(a)] = matrix[a * (size_ + 1)];
    return row;
  }
  void scatter(const std::vector<Scalar>& row, Scalar* matrix) const {
    for (Index a = 0; a < size_; ++a) matrix[a * (size_ + 1)] = row[static_cast<std::size_t>(a)];
  }

  Index size_;
  std::size_t arrays_;
  std::vector<Scalar> nngp_, ntk_;
  std::vector<std::vector<Scalar>> numbers_;  ///< [side][array]
  std::vector<const Scalar*> rows_;
};

}  // namespace

template <typename Scalar>
void apply_row_stage(const RowStage& stage, const Plane<Scalar>& source, const PlacedInstruction<Scalar>& to,
                     const Stack& stack) {
  const Plane<Scalar>& target = to.planes;
  std::optional<SelfDiagonal<Scalar>> diagonal;
  // The diagonal is copied before the stage overwrites it.
  if (stack.same_input && to.at().is_whole) diagonal.emplace(to, source);
  if (source.nngp != target.nngp) copy_plane(source, to.row_size(stack.count), target);
  auto row = to.dual_row(stack.count, target);
  // Arrays that are read in place go on with numbers that belong to no entry. A stage may refuse them as variances.
  if (!to.arrays->are_guarded()) row.size = static_cast<std::size_t>(to.at().end_of_rows());
  if (stack.same_input && to.at().is_diagonal)
    stage.apply_self(row);
  else
    stage.apply(row);
  if (diagonal) diagonal->apply(stage, target);
  to.clear_behind_rows(target);
}

template <typename Scalar>
void record_row_state(const RowStage& stage, const Plane<Scalar>& variances,
                      const PlacedInstruction<Scalar>& at, InputState<Scalar>& state) {
  const PlaneLayout& layout = at.at().layout;
  const Index3& extent = layout.extent;
  const NodeId node = at.instruction->node;
  const PlaneLayout& kept = state.layout().planes[node];
  const auto positions = static_cast<std::size_t>(product(extent)),
             count = static_cast<std::size_t>(at.arrays->count());
  std::vector<Scalar> numbers((count + 1) * positions);
  std::vector<Scalar*> arrays;
  for (std::size_t k = 0; k <= count; ++k) arrays.push_back(numbers.data() + k * positions);
  Scalar* dense = arrays.back();
  // Stages take variances without guards; the state keeps the arrays with guards.
  const auto in_rows = [&](const auto& body) {
    for_each_row(extent, [&](Index x, Index y) { body(x, y, (x * extent[1] + y) * extent[2]); });
  };
  in_rows([&](Index x, Index y, Index place) {
    std::copy_n(variances.nngp + layout.at(x, y), extent[2], dense + place);
  });
  check_variances(dense, static_cast<Index>(positions));
  // A mask stage is the only one whose array comes from the mask instead of the variances.
  if (const auto* mask = dynamic_cast<const MaskStage*>(&stage))
    mask->fill(*state.mask(), arrays[0]);
  else
    stage.prepare(dense, positions, arrays.data());
  for (std::size_t k = 0; k < count; ++k)
    in_rows([&](Index x, Index y, Index place) {
      std::copy_n(arrays[k] + place, extent[2], state.array(node, static_cast<Index>(k)) + kept.at(x, y));
    });
}

template void multiply_features(const PlacedInstruction<float>&, Index);
template void multiply_features(const PlacedInstruction<double>&, Index);
template void apply_row_stage(const RowStage&, const Plane<float>&, const PlacedInstruction<float>&,
                              const Stack&);
template void apply_row_stage(const RowStage&, const Plane<double>&, const PlacedInstruction<double>&,
                              const Stack&);
template void record_row_state(const RowStage&, const Plane<float>&, const PlacedInstruction<float>&,
                               InputState<float>&);
template void record_row_state(const RowStage&, const Plane<double>&, const PlacedInstruction<double>&,
                               InputState<double>&);

}  // namespace widelimit
