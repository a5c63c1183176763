#include "kernel/range/vanishing_check.hpp"

#include <algorithm>

#include "kernel/aligned_buffer.hpp"
#include "kernel/range/variance_checks.hpp"
#include "kernel/vector_padding.hpp"
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
  if (instruction.inputs.empty()) return false;
  std::vector<Positive> inputs;
  for (const std::size_t input : instruction.inputs) inputs.push_back(positive_[input]);
  if (!stays_positive(operation, inputs)) return false;
  const RowStage* row = row_stage_of(operation);
  return row == nullptr || dynamic_cast<const MaskStage*>(row) != nullptr || !makes_zero_of_one<Scalar>(*row);
}

template class VanishingCheck<float>;
template class VanishingCheck<double>;

}  // namespace widelimit
