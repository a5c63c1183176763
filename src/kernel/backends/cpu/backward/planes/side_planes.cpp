#include "kernel/backends/cpu/backward/planes/side_planes.hpp"

#include <algorithm>

#include "numerics/rows/linear_rows.hpp"

namespace widelimit {

template <typename Scalar>
void SidePlanes<Scalar>::begin_block(const std::vector<BlockInput<Scalar>>& inputs) {
  inputs_ = &inputs;
  columns_ = {{0, 0}, 0};
  for (std::size_t i = 0; i < stages_.size(); ++i) count_arrays(i);
}

template <typename Scalar>
void SidePlanes<Scalar>::count_arrays(std::size_t instruction) {
  if (chain_.chain.instructions[instruction].loads) return;
  const NodeId node = chain_.id(instruction);
  const RecordLayout& layout = *inputs_->front().record->layout;
  StagePlanes& stage = stages_[instruction];
  if (multiplies_features(chain_.node(instruction).operation)) {
    // Every channel of the features has an adjoint. Of a row stage's arrays only the variances have one: auxiliary
    // arrays are functions of them, and stages differentiate through both at once.
    stage.arrays = stage.adjoint_arrays = layout.channels[node];
  } else if (recorded_of(chain_.node(instruction).operation) == Recorded::auxiliaries) {
    stage.arrays = layout.auxiliaries[node] + 1;
    stage.adjoint_arrays = 1;
  }
}

template <typename Scalar>
void SidePlanes<Scalar>::begin_plane(const PlaneTape<Scalar>& tape, const AxisOffsets& columns,
                                     Index places) {
  // Strips are cut for one set of offsets along the last axis. Planes that agree there share them.
  if (columns != columns_) {
    flush();
    for (StagePlanes& stage : stages_) stage.has_strips = false;
  }
  // Planes are packed again for each set of offsets, when an instruction first asks for them.
  for (StagePlanes& stage : stages_) stage.has_planes = false;
  tape_ = &tape;
  columns_ = columns;
  places_ = std::max(places, inputs());
}

/// Array k of an input's record. Here auxiliary arrays come before the variances, in the record they come after them.
template <typename Scalar>
Scalar* SidePlanes<Scalar>::recorded(std::size_t instruction, Index k, InputRecord<Scalar>& record) const {
  const NodeId node = chain_.id(instruction);
  if (multiplies_features(chain_.node(instruction).operation)) return record.features(node, k);
  return k == record.layout->auxiliaries[node] ? record.variances(node) : record.auxiliary(node, k);
}

template <typename Scalar>
Scalar* SidePlanes<Scalar>::recorded_adjoint(std::size_t instruction, Index k,
                                             RecordAdjoint<Scalar>& adjoint) const {
  const NodeId node = chain_.id(instruction);
  const bool is_input = multiplies_features(chain_.node(instruction).operation);
  return is_input ? adjoint.features(node, k) : adjoint.variances(node);
}

/// Calls body(entry of a strip, position, count) for the pieces of its rows.
template <typename Scalar>
template <typename Body>
void SidePlanes<Scalar>::for_each_piece_of_strip(std::size_t instruction, const Body& body) const {
  const StagePlanes& stage = stages_[instruction];
  const Index columns = sizes(instruction)[2];
  for (Index row = 0; row < rows(instruction); ++row)
    for (std::size_t z = 0; z < static_cast<std::size_t>(stage.columns.count); ++z)
      if (stage.columns.extent[z] > 0)
        body(row * stage.stride + stage.columns.start[z], row * columns + origin(stage.columns, z),
             stage.columns.extent[z]);
}

/// Calls body(entry of the plane, entry of a strip, count) for the parts of the strip that the plane is made of.
template <typename Scalar>
template <typename Body>
void SidePlanes<Scalar>::for_each_part(std::size_t instruction, const Body& body) const {
  const PlacedPlane& plane = (*tape_)[instruction].plane;
  const Index slab_rows = sizes(instruction)[1], stride = plane.layout.stride[1];
  // A slab has one piece along the first axis here. Along the second axis each piece is one part of the strip, whole
  // rows with their guards.
  const AxisPieces &x = plane.axis[0], &y = plane.axis[1];
  for (Index slab = 0; slab < plane.layout.extent[0]; ++slab)
    for (std::size_t piece = 0; piece < static_cast<std::size_t>(y.count); ++piece)
      if (y.extent[piece] > 0)
        body(plane.layout.at(slab, y.start[piece]),
             ((origin(x, 0) + slab) * slab_rows + origin(y, piece)) * stride, y.extent[piece] * stride);
}

/// True if the first auxiliary array of a row stage is the array of variances, as it is for homogeneous activations.
/// Packing it once saves a good part of the packing.
template <typename Scalar>
bool SidePlanes<Scalar>::shares_variances(std::size_t instruction) const {
  const NodeId node = chain_.id(instruction);
  const RecordLayout& layout = *inputs_->front().record->layout;
  if (multiplies_features(chain_.node(instruction).operation) || layout.auxiliaries[node] == 0) return false;
  return std::all_of(inputs_->begin(), inputs_->end(), [&](const BlockInput<Scalar>& input) {
    const Scalar* variances = input.record->variances(node);
    return std::equal(variances, variances + layout.positions[node], input.record->auxiliary(node, 0));
  });
}

template <typename Scalar>
void SidePlanes<Scalar>::cut(std::size_t instruction) {
  StagePlanes& stage = stages_[instruction];
  count_arrays(instruction);
  stage.shares_variances = shares_variances(instruction);
  if (stage.shares_variances) --stage.arrays;
  const PlacedPlane& plane = (*tape_)[instruction].plane;
  stage.columns = plane.axis[2];
  stage.stride = plane.layout.stride[1];
  const Index size = rows(instruction) * stage.stride;
  stage.strips.assign(static_cast<std::size_t>(stage.arrays * inputs() * size), Scalar{0});
  Scalar* strip = stage.strips.data();
  for (Index k = 0; k < stage.arrays; ++k)
    for (const BlockInput<Scalar>& input : *inputs_) {
      const Scalar* from = recorded(instruction, k, *input.record);
      for_each_piece_of_strip(instruction, [&](Index entry, Index position, Index count) {
        std::copy_n(from + position, count, strip + entry);
      });
      strip += size;
    }
  stage.has_strips = true;
}

template <typename Scalar>
void SidePlanes<Scalar>::pack(std::size_t instruction) {
  StagePlanes& stage = stages_[instruction];
  if (!stage.has_strips) cut(instruction);
  const PlaneLayout& layout = (*tape_)[instruction].plane.layout;
  const Index size = rows(instruction) * stage.stride;
  stage.length = layout.length;
  const auto numbers = static_cast<std::size_t>(stage.arrays * places_ * layout.length);
  if (stage.planes.size() < numbers) stage.planes.resize(numbers);
  Scalar* target = stage.planes.data();
  for (Index k = 0; k < stage.arrays; ++k)
    for (Index place = 0; place < places_; ++place, target += layout.length) {
      if (place >= inputs()) {
        // Repeated inputs are copies of planes that are already packed.
        std::copy_n(target - inputs() * layout.length, layout.length, target);
        continue;
      }
      const Scalar* strip = stage.strips.data() + (k * inputs() + place) * size;
      Index end = 0;
      // What stands between the parts are guards.
      for_each_part(instruction, [&](Index entry, Index from, Index count) {
        std::fill_n(target + end, entry - end, Scalar{0});
        std::copy_n(strip + from, count, target + entry);
        end = entry + count;
      });
      std::fill_n(target + end, layout.length - end, Scalar{0});
    }
  stage.has_planes = true;
}

template <typename Scalar>
const Scalar* const* SidePlanes<Scalar>::arrays(std::size_t instruction, Index place) {
  StagePlanes& stage = stages_[instruction];
  if (!stage.has_planes) pack(instruction);
  pointers_.resize(static_cast<std::size_t>(stage.arrays));
  for (Index k = 0; k < stage.arrays; ++k)
    pointers_[static_cast<std::size_t>(k)] = stage.planes.data() + (k * places_ + place) * stage.length;
  if (stage.shares_variances) pointers_.push_back(pointers_.front());
  return pointers_.data();
}

template <typename Scalar>
void SidePlanes<Scalar>::add(std::size_t instruction, Index k, Index place, Index count,
                             const Scalar* adjoints) {
  StagePlanes& stage = stages_[instruction];
  // Adding a single plane to its strip at once saves a pass over an array of all planes.
  if (count == 1 && !stage.has_plane_adjoints) return add_to_strip(instruction, k, place, adjoints);
  if (!stage.has_plane_adjoints)
    stage.plane_adjoints.assign(static_cast<std::size_t>(stage.adjoint_arrays * places_ * stage.length),
                                Scalar{0});
  stage.has_plane_adjoints = true;
  Scalar* target = stage.plane_adjoints.data() + (k * places_ + place) * stage.length;
  numerics::linear_rows<Scalar>().add(adjoints, Scalar{1}, target,
                                      static_cast<std::size_t>(count * stage.length));
}

template <typename Scalar>
void SidePlanes<Scalar>::add_to_strip(std::size_t instruction, Index k, Index place, const Scalar* adjoints) {
  StagePlanes& stage = stages_[instruction];
  const Index size = rows(instruction) * stage.stride;
  if (!stage.has_strip_adjoints)
    stage.strip_adjoints.assign(static_cast<std::size_t>(stage.adjoint_arrays * inputs() * size), Scalar{0});
  stage.has_strip_adjoints = true;
  // Places beyond the inputs are repetitions of them.
  Scalar* strip = stage.strip_adjoints.data() + (k * inputs() + place % inputs()) * size;
  for_each_part(instruction, [&](Index entry, Index to, Index count) {
    numerics::linear_rows<Scalar>().add(adjoints + entry, Scalar{1}, strip + to,
                                        static_cast<std::size_t>(count));
  });
}

template <typename Scalar>
void SidePlanes<Scalar>::end_plane() {
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    StagePlanes& stage = stages_[i];
    if (!stage.has_plane_adjoints) continue;
    const Scalar* adjoints = stage.plane_adjoints.data();
    for (Index k = 0; k < stage.adjoint_arrays; ++k)
      for (Index place = 0; place < places_; ++place, adjoints += stage.length)
        add_to_strip(i, k, place, adjoints);
    stage.has_plane_adjoints = false;
  }
}

template <typename Scalar>
void SidePlanes<Scalar>::flush() {
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    StagePlanes& stage = stages_[i];
    if (!stage.has_strip_adjoints) continue;
    const Index size = rows(i) * stage.stride;
    const Scalar* strip = stage.strip_adjoints.data();
    for (Index k = 0; k < stage.adjoint_arrays; ++k)
      for (const BlockInput<Scalar>& input : *inputs_) {
        Scalar* to = recorded_adjoint(i, k, *input.adjoint);
        for_each_piece_of_strip(i, [&](Index entry, Index position, Index count) {
          for (Index z = 0; z < count; ++z) to[position + z] += strip[entry + z];
        });
        strip += size;
      }
    stage.has_strip_adjoints = false;
  }
}

template class SidePlanes<float>;
template class SidePlanes<double>;

}  // namespace widelimit
