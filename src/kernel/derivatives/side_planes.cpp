#include "kernel/derivatives/side_planes.hpp"

#include <algorithm>

#include "numerics/rows/linear_rows.hpp"

namespace widelimit {

template <typename Scalar>
void SidePlanes<Scalar>::begin_offset(std::size_t inputs) {
  const std::size_t count = inputs * run_.run.instructions.size();
  if (planes_.size() < count) planes_.resize(count);
  for (StagePlanes& planes : planes_) planes.has_arrays = planes.has_adjoints = false;
}

template <typename Scalar>
const Scalar* SidePlanes<Scalar>::arrays(std::size_t input, std::size_t instruction,
                                         InputRecord<Scalar>& record,
                                         const std::vector<TapeEntry<Scalar>>& tape) {
  StagePlanes& planes = at(input, instruction);
  if (planes.has_arrays) return planes.arrays.data();
  const NodeId node = run_.id(instruction);
  const std::size_t size = tape[instruction].size(),
                    count = static_cast<std::size_t>(record.layout->auxiliaries[node]) + 1;
  // Guards have variance 0.
  planes.arrays.assign(count * size, Scalar{0});
  for (std::size_t k = 0; k < count; ++k) {
    const Scalar* from =
        k + 1 == count ? record.variances(node) : record.auxiliary(node, static_cast<Index>(k));
    Scalar* to = planes.arrays.data() + k * size;
    for_each_row_here(instruction, tape, [&](Index entry, Index position, Index row) {
      std::copy_n(from + position, row, to + entry);
    });
  }
  planes.has_arrays = true;
  return planes.arrays.data();
}

template <typename Scalar>
void SidePlanes<Scalar>::end_offset(const std::vector<BlockInput<Scalar>>& inputs,
                                    const std::vector<TapeEntry<Scalar>>& tape) {
  for (std::size_t input = 0; input < inputs.size(); ++input)
    for (std::size_t i = 0; i < tape.size(); ++i) {
      const StagePlanes& planes = at(input, i);
      if (!planes.has_adjoints) continue;
      Scalar* variances = inputs[input].adjoint->variances(run_.id(i));
      for_each_row_here(i, tape, [&](Index entry, Index position, Index count) {
        for (Index z = 0; z < count; ++z)
          variances[position + z] += planes.adjoints[static_cast<std::size_t>(entry + z)];
      });
    }
}

template <typename Scalar>
void SidePlanes<Scalar>::add(std::size_t input, std::size_t instruction, const Scalar* adjoints,
                             std::size_t size) {
  StagePlanes& planes = at(input, instruction);
  if (!planes.has_adjoints) {
    planes.adjoints.assign(adjoints, adjoints + size);
    planes.has_adjoints = true;
    return;
  }
  numerics::linear_rows<Scalar>().add(adjoints, Scalar{1}, planes.adjoints.data(), size);
}

template class SidePlanes<float>;
template class SidePlanes<double>;

}  // namespace widelimit
