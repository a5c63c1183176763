#include "kernel/range/vanishing_check.hpp"

#include <algorithm>

#include "kernel/backends/cpu/planes/aligned_buffer.hpp"
#include "kernel/backends/cpu/planes/vector_padding.hpp"
#include "kernel/range/variance_checks.hpp"
#include "network/mask_stage.hpp"

namespace widelimit {
namespace {

/// True for stages that turn a variance of 1 into 0, such as that of the polynomial 0. They lose nothing by rounding.
template <typename Scalar>
bool makes_zero_of_one(const RowStage& stage) {
  const Index step = padded(1);
  const auto count = static_cast<Index>(stage.auxiliary_count());
  AlignedBuffer<Scalar> numbers((count + 1) * step);
  std::fill_n(numbers.data(), (count + 1) * step, Scalar{0});
  std::vector<Scalar*> arrays;
  for (Index k = 0; k < count; ++k) arrays.push_back(numbers.data() + k * step);
  Scalar* nngp = numbers.data() + count * step;
  *nngp = 1;
  stage.prepare(nngp, 1, arrays.data());
  const std::vector<const Scalar*> both(arrays.begin(), arrays.end());
  stage.apply_self({nngp, nullptr, both.data(), both.data(), 1});
  return *nngp == 0;
}

}  // namespace

template <typename Scalar>
void VanishingCheck<Scalar>::note(std::size_t number, const Instruction& instruction,
                                  const Operation& operation, Positive positive) {
  positive_.resize(std::max(positive_.size(), number + 1), Positive::none);
  positive_[number] = positive;
  if (positive == Positive::none && !instruction.loads && must_stay_positive(instruction, operation))
    throw_vanished<Scalar>();
}

/// True if exact arithmetic leaves a variance above 0 after an instruction. Nothing is known of instructions that
/// read kept planes (local and circular convolutions, poolings, pair stages).
template <typename Scalar>
bool VanishingCheck<Scalar>::must_stay_positive(const Instruction& instruction,
                                                const Operation& operation) const {
  const auto of_input = [&](std::size_t k) { return positive_[instruction.inputs[k]]; };
  const auto& inputs = instruction.inputs;
  if (inputs.empty()) return false;
  if (const auto* affine = std::get_if<AffineNode>(&operation))
    // Strided windows may leave out all positions that are not 0, so all of them have to be positive.
    return affine->weight_variance > 0 && of_input(0) == Positive::all;
  if (const RowStage* row = row_stage_of(operation)) {
    // A mask may leave only positions that are 0, such as those between the steps of a transposed convolution.
    if (dynamic_cast<const MaskStage*>(row) != nullptr) return of_input(0) == Positive::all;
    return of_input(0) != Positive::none && !makes_zero_of_one<Scalar>(*row);
  }
  if (const auto* sum = std::get_if<SumNode>(&operation)) {
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (sum->factors[k] > 0 && of_input(k) != Positive::none) return true;
    return false;
  }
  if (const auto* product = std::get_if<ProductNode>(&operation)) {
    bool all = product->factor > 0;
    for (std::size_t k = 0; k < inputs.size(); ++k) all = all && of_input(k) == Positive::all;
    return all;
  }
  return false;
}

template class VanishingCheck<float>;
template class VanishingCheck<double>;

}  // namespace widelimit
