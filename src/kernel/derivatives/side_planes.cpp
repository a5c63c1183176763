#include "kernel/derivatives/side_planes.hpp"

#include <algorithm>

#include "numerics/rows/linear_rows.hpp"

namespace widelimit {

template <typename Scalar>
void SidePlanes<Scalar>::begin_offset(std::size_t inputs) {
  if (planes_.size() < inputs * instructions_) planes_.resize(inputs * instructions_);
  for (StagePlanes& planes : planes_) planes.has_arrays = planes.has_adjoints = false;
}

template <typename Scalar>
const Scalar* SidePlanes<Scalar>::arrays(std::size_t input, std::size_t instruction,
                                         InputRecord<Scalar>& record, NodeId node,
                                         const TapeEntry<Scalar>& entry, const Index3& left_sizes,
                                         const Index3& right_sizes) {
  StagePlanes& planes = at(input, instruction);
  if (planes.has_arrays) return planes.arrays.data();
  const auto count = static_cast<std::size_t>(record.layout->auxiliaries[node]) + 1;
  // Guards have variance 0.
  planes.arrays.assign(count * entry.size(), Scalar{0});
  for (std::size_t k = 0; k < count; ++k) {
    const Scalar* from =
        k + 1 == count ? record.variances(node) : record.auxiliary(node, static_cast<Index>(k));
    Scalar* to = planes.arrays.data() + k * entry.size();
    for_each_row_of(entry.plane, left_sizes, right_sizes, [&](Index place, Index a, Index b, Index row) {
      std::copy_n(from + (side_ == PairSide::left ? a : b), row, to + place);
    });
  }
  planes.has_arrays = true;
  return planes.arrays.data();
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
