#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "kernel/aligned_buffer.hpp"
#include "kernel/backends/cpu/planes/plane_layout.hpp"
#include "kernel/plan/program.hpp"
#include "kernel/readouts/pair_sums.hpp"
#include "kernel/vector_padding.hpp"

namespace widelimit {

class InputGraph;
template <typename Scalar>
class DeviceStates;

/// Where the parts of an input's state are: the features of an input node, [channel][position], and the variance of
/// one that is a vector; the auxiliary arrays of a row stage; the variances before a pair stage, and its own state.
/// The layout depends on the input's shape only.
struct StateLayout {
  Shape shape;                      ///< The shape of the input.
  std::vector<Index> offset;        ///< [node]: where its arrays begin.
  std::vector<PlaneLayout> planes;  ///< [node]: how its arrays lie: as in its chain at offset 0.
  std::vector<Index> positions;     ///< [node]: numbers of an array, padded.
  std::vector<Index> arrays;        ///< [node]: the number of arrays; for pair stages 1.
  std::vector<Index> extra;         ///< [node]: where a stage's own state begins.
  Index size = 0;
};

StateLayout make_state_layout(const Program& program, const std::vector<Shape>& shapes,
                              const Shape& input_shape, Index channels);

/// What pairs need of one input: a view of a place in a StateBlock.
template <typename Scalar>
class InputState {
 public:
  InputState(const StateLayout& layout, Scalar* numbers) : layout_{&layout}, numbers_{numbers} {}

  [[nodiscard]] const StateLayout& layout() const { return *layout_; }
  /// The graph that the input carries, or null.
  [[nodiscard]] const InputGraph* graph() const { return graph_; }
  void set_graph(const InputGraph* graph) { graph_ = graph; }
  /// The k-th array of a node.
  [[nodiscard]] Scalar* array(NodeId node, Index k) {
    return numbers_ + layout_->offset[node] + k * layout_->positions[node];
  }
  [[nodiscard]] const Scalar* array(NodeId node, Index k) const {
    return numbers_ + layout_->offset[node] + k * layout_->positions[node];
  }
  /// The input's mask while its state is recorded; null without masks.
  [[nodiscard]] const PositionMask* mask() const { return mask_; }
  void set_mask(const PositionMask* mask) { mask_ = mask; }
  /// Where the state begins in its block.
  [[nodiscard]] const Scalar* numbers() const { return numbers_; }
  /// What leading outputs leave out of the input, the most of all pair stages.
  [[nodiscard]] const Shortening& shortening() const { return shortening_; }
  void add_shortening(const Shortening& of_stage) {
    shortening_ = {std::max(shortening_.rank, of_stage.rank), std::max(shortening_.tail, of_stage.tail)};
  }
  /// A pair stage's own state; for an input node that is a vector, its variance.
  [[nodiscard]] Scalar* extra(NodeId node) { return numbers_ + layout_->extra[node]; }
  [[nodiscard]] const Scalar* extra(NodeId node) const { return numbers_ + layout_->extra[node]; }

 private:
  const StateLayout* layout_;
  Scalar* numbers_;
  const PositionMask* mask_ = nullptr;
  const InputGraph* graph_ = nullptr;
  Shortening shortening_;
};

/// The states of inputs `begin`, `begin + 1`, ... one after the other: the features of vectors are the rows
/// of a matrix with leading dimension layout().size.
template <typename Scalar>
class StateBlock {
 public:
  using OnDevice = std::shared_ptr<const DeviceStates<Scalar>>;

  StateBlock(const std::vector<const StateLayout*>& layouts, Index begin) : begin_{begin} {
    Index size = row_padding;
    for (const StateLayout* layout : layouts) size += layout->size;
    size_ = size;
    numbers_ = AlignedBuffer<Scalar>(size);
    Scalar* next = numbers_.data();
    for (const StateLayout* layout : layouts) {
      states_.emplace_back(*layout, next);
      next += layout->size;
    }
  }

  [[nodiscard]] Index begin() const { return begin_; }
  /// All numbers of the block.
  [[nodiscard]] Index size() const { return size_; }
  /// The same states in a device's memory; null without one.
  [[nodiscard]] const DeviceStates<Scalar>* on_device() const { return on_device_.get(); }
  void set_on_device(OnDevice states) { on_device_ = std::move(states); }
  [[nodiscard]] Index end() const { return begin_ + static_cast<Index>(states_.size()); }
  /// The state of input i of the batch, begin() <= i < end().
  [[nodiscard]] InputState<Scalar>& operator[](Index i) {
    return states_[static_cast<std::size_t>(i - begin_)];
  }
  [[nodiscard]] const InputState<Scalar>& operator[](Index i) const {
    return states_[static_cast<std::size_t>(i - begin_)];
  }

 private:
  Index begin_;
  AlignedBuffer<Scalar> numbers_;
  std::vector<InputState<Scalar>> states_;
  Index size_ = 0;
  OnDevice on_device_;
};

}  // namespace widelimit
