#include "kernel/backends/cpu/backward/planes/plane_tape.hpp"

#include <algorithm>
#include <optional>

namespace widelimit {
namespace {

constexpr std::size_t scratch_slots = 4;

/// The instructions that read each instruction's result. One that reads it twice is there twice.
std::vector<std::vector<std::size_t>> readers_of(const Chain& chain) {
  std::vector<std::vector<std::size_t>> readers(chain.instructions.size());
  for (std::size_t i = 0; i < readers.size(); ++i)
    for (const std::size_t input : chain.instructions[i].inputs) readers[input].push_back(i);
  return readers;
}

bool is_row_stage(const BackwardChain& chain, std::size_t i) {
  return !chain.chain.instructions[i].loads && row_stage_of(chain.node(i).operation) != nullptr;
}

ReadBack read_back(const BackwardChain& chain, std::size_t i) {
  return widelimit::read_back(chain.node(i).operation, chain.with_scalars);
}

}  // namespace

template <typename Scalar>
PlaneTape<Scalar>::PlaneTape(const BackwardChain& chain)
    : chain_{chain},
      sizes_{plane_sizes(chain.program, chain.geometry)},
      entries_(chain.chain.instructions.size()) {
  const std::vector<std::size_t> values = value_slots(), adjoints = adjoint_slots();
  const auto rows = static_cast<Index>((chain.with_ntk ? 2 : 1) * (slots_ + scratch_slots));
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
  const Index copies = chain_.with_ntk ? 2 : 1;
  Scalar* nngp = buffer_.data() + static_cast<Index>(number) * copies * sizes_.slot() + sizes_.front;
  return {nngp, chain_.with_ntk ? nngp + sizes_.slot() : nullptr};
}

/// Values that no backward pass reads have the slots that the schedule gave them. Each of the others gets a further
/// slot, which nothing else uses.
template <typename Scalar>
std::vector<std::size_t> PlaneTape<Scalar>::value_slots() {
  slots_ = chain_.chain.slot_count;
  std::vector<std::size_t> slots;
  for (const std::vector<std::size_t>& readers : readers_of(chain_.chain)) {
    const std::size_t i = slots.size();
    const bool stays = read_back(chain_, i).result ||
                       std::any_of(readers.begin(), readers.end(),
                                   [&](std::size_t reader) { return read_back(chain_, reader).values; });
    slots.push_back(stays ? slots_++ : chain_.chain.instructions[i].slot);
  }
  return slots;
}

/// An adjoint is alive from its last reader, which comes first in reverse, to the instruction itself. Row stages
/// compute the adjoint before them in place, if nothing else reads their input.
template <typename Scalar>
std::vector<std::size_t> PlaneTape<Scalar>::adjoint_slots() {
  const std::vector<std::vector<std::size_t>> readers = readers_of(chain_.chain);
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
    for (const std::size_t input : chain_.chain.instructions[i].inputs) {
      if (slots[input]) continue;
      passed_on = is_row_stage(chain_, i) && readers[input].size() == 1;
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
    entries_[i].plane.place(chain_.chain_geometry, i, offsets, chain_.left_sizes(i), chain_.right_sizes(i));
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
