#include "kernel/backward/planes/plane_tape.hpp"

#include <algorithm>
#include <optional>

namespace widelimit {
namespace {

constexpr std::size_t scratch_slots = 4;

/// The instructions that read each instruction's result. One that reads it twice is there twice.
std::vector<std::vector<std::size_t>> readers_of(const Run& run) {
  std::vector<std::vector<std::size_t>> readers(run.instructions.size());
  for (std::size_t i = 0; i < readers.size(); ++i)
    for (const std::size_t input : run.instructions[i].inputs) readers[input].push_back(i);
  return readers;
}

bool is_row_stage(const BackwardRun& run, std::size_t i) {
  return !run.run.instructions[i].loads && std::holds_alternative<RowNode>(run.node(i).operation);
}

/// True if the backward pass through the instruction depends on what is before it.
bool reads_values_back(const BackwardRun& run, std::size_t i) {
  const Operation& operation = run.node(i).operation;
  return is_row_stage(run, i) || std::holds_alternative<ProductNode>(operation) ||
         (run.with_scalars && std::holds_alternative<SumNode>(operation));
}

/// True if the backward pass through the instruction depends on its own result. Derivatives with respect to its
/// scalars do (ScalarAdjoints).
bool reads_result_back(const BackwardRun& run, std::size_t i) {
  const Operation& operation = run.node(i).operation;
  return run.with_scalars &&
         (std::holds_alternative<AffineNode>(operation) || std::holds_alternative<ProductNode>(operation));
}

}  // namespace

template <typename Scalar>
PlaneTape<Scalar>::PlaneTape(const BackwardRun& run)
    : run_{run}, sizes_{plane_sizes(run.program, run.geometry)}, entries_(run.run.instructions.size()) {
  const std::vector<std::size_t> values = value_slots(), adjoints = adjoint_slots();
  const auto rows = static_cast<Index>((run.with_ntk ? 2 : 1) * (slots_ + scratch_slots));
  // Windows read beyond the end of a slot, where the next slot has its margin of zeros. The last slot needs one of
  // its own.
  buffer_.grow(rows * sizes_.slot() + sizes_.front);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].value = slot(values[i]);
    entries_[i].adjoint = slot(adjoints[i]);
  }
}

template <typename Scalar>
Plane<Scalar> PlaneTape<Scalar>::slot(std::size_t number) {
  const Index copies = run_.with_ntk ? 2 : 1;
  Scalar* nngp = buffer_.data() + static_cast<Index>(number) * copies * sizes_.slot() + sizes_.front;
  return {nngp, run_.with_ntk ? nngp + sizes_.slot() : nullptr};
}

/// Values that no backward pass reads have the slots that the schedule gave them. Each of the others gets a further
/// slot, which nothing else uses.
template <typename Scalar>
std::vector<std::size_t> PlaneTape<Scalar>::value_slots() {
  slots_ = run_.run.slot_count;
  std::vector<std::size_t> slots;
  for (const std::vector<std::size_t>& readers : readers_of(run_.run)) {
    const std::size_t i = slots.size();
    const bool stays = reads_result_back(run_, i) ||
                       std::any_of(readers.begin(), readers.end(),
                                   [&](std::size_t reader) { return reads_values_back(run_, reader); });
    slots.push_back(stays ? slots_++ : run_.run.instructions[i].slot);
  }
  return slots;
}

/// An adjoint is alive from its last reader, which comes first in reverse, to the instruction itself. Row stages
/// compute the adjoint before them in place, if nothing else reads their input.
template <typename Scalar>
std::vector<std::size_t> PlaneTape<Scalar>::adjoint_slots() {
  const std::vector<std::vector<std::size_t>> readers = readers_of(run_.run);
  std::vector<std::size_t> free;
  std::vector<std::optional<std::size_t>> slots(readers.size());
  const auto take = [&] {
    if (free.empty()) return slots_++;
    const std::size_t slot = free.back();
    free.pop_back();
    return slot;
  };
  for (std::size_t i = readers.size(); i-- > 0;) {
    if (!slots[i]) slots[i] = take();
    bool passed_on = false;
    for (const std::size_t input : run_.run.instructions[i].inputs) {
      if (slots[input]) continue;
      passed_on = is_row_stage(run_, i) && readers[input].size() == 1;
      slots[input] = passed_on ? *slots[i] : take();
    }
    if (!passed_on) free.push_back(*slots[i]);
  }
  std::vector<std::size_t> result;
  for (const std::optional<std::size_t>& slot : slots) result.push_back(*slot);
  return result;
}

template <typename Scalar>
void PlaneTape<Scalar>::place(const PlaneOffsets& offsets) {
  for (std::size_t i = 0; i < entries_.size(); ++i)
    entries_[i].plane.place(run_.run_geometry, i, offsets, run_.left_sizes(i), run_.right_sizes(i));
}

template <typename Scalar>
Index PlaneTape<Scalar>::length() const {
  Index length = 1;
  for (const TapePlanes<Scalar>& entry : entries_)
    if (!entry.plane.empty()) length = std::max(length, entry.plane.layout.length);
  return length;
}

template <typename Scalar>
void PlaneTape<Scalar>::begin_backward() {
  for (TapePlanes<Scalar>& entry : entries_) entry.has_adjoint = false;
}

template class PlaneTape<float>;
template class PlaneTape<double>;

}  // namespace widelimit
