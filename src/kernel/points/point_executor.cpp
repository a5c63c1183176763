#include "kernel/points/point_executor.hpp"

#include <algorithm>

#include "kernel/multiples.hpp"
#include "kernel/planes/vector_padding.hpp"
#include "kernel/variance_checks.hpp"

namespace widelimit {
namespace {

/// As many numbers amortise the calls and stay in the first-level cache.
constexpr Index numbers_at_once = 1024;

bool is_source(const Instruction& instruction, const Node& node) {
  return instruction.loads || input_transforms(node.operation) != nullptr;
}

}  // namespace

template <typename Scalar>
PointExecutor<Scalar>::PointExecutor(const Program& program, const StateLayout& state, Kernel kernel,
                                     Index rows, Index columns, StopRequest stop)
    : program_{program},
      with_ntk_{kernel == Kernel::with_ntk},
      stop_{stop},
      rows_at_once_{std::clamp<Index>(numbers_at_once / padded(columns), 1, rows)},
      capacity_{rows_at_once_ * padded(columns)},
      keeps_multiples_{keeps_multiples(program.graph)} {
  const auto& instructions = program.points.instructions;
  Index auxiliary = 0, scratch = 0;
  for (const Instruction& instruction : instructions) {
    const Node& node = program.graph.nodes[instruction.node];
    if (is_source(instruction, node)) source_nodes_.push_back(instruction.node);
    if (std::holds_alternative<RowNode>(node.operation)) auxiliary += 2 * state.arrays[instruction.node];
    if (const auto* pair = std::get_if<PairNode>(&node.operation))
      scratch = std::max(scratch, static_cast<Index>(pair->stage->scratch_size({}, {})));
  }
  const Index copies = with_ntk_ ? 2 : 1;
  slots_ = AlignedBuffer<Scalar>(static_cast<Index>(program.points.slot_count) * copies * capacity_);
  sources_ = AlignedBuffer<Scalar>(static_cast<Index>(source_nodes_.size()) * copies * capacity_);
  auxiliary_ = AlignedBuffer<Scalar>(auxiliary * capacity_);
  scratch_ = AlignedBuffer<Scalar>(padded(scratch));
  Scalar* next = auxiliary_.data();
  const auto take = [&](std::vector<Scalar*>& arrays, Index count) {
    for (Index k = 0; k < count; ++k, next += capacity_) arrays.push_back(next);
  };
  arrays_.resize(instructions.size());
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    if (!std::holds_alternative<RowNode>(program.graph.nodes[instructions[i].node].operation)) continue;
    take(arrays_[i].left, state.arrays[instructions[i].node]);
    take(arrays_[i].right, state.arrays[instructions[i].node]);
  }
}

template <typename Scalar>
Plane<Scalar> PointExecutor<Scalar>::plane(AlignedBuffer<Scalar>& buffer, std::size_t number) {
  Scalar* nngp = buffer.data() + static_cast<Index>(number) * capacity_ * (with_ntk_ ? 2 : 1);
  return {nngp, with_ntk_ ? nngp + capacity_ : nullptr};
}

template <typename Scalar>
std::size_t PointExecutor<Scalar>::size() const {
  return rows_.size() * static_cast<std::size_t>(row_step());
}

template <typename Scalar>
void PointExecutor<Scalar>::begin_tile(const std::vector<const InputState<Scalar>*>& right) {
  right_ = &right;
  for (std::size_t i = 0; i < arrays_.size(); ++i) gather_right(i);
}

/// Once for every row that there may be.
template <typename Scalar>
void PointExecutor<Scalar>::gather_right(std::size_t number) {
  const NodeId node = program_.points.instructions[number].node;
  for (std::size_t k = 0; k < arrays_[number].right.size(); ++k) {
    Scalar* first = arrays_[number].right[k];
    for (std::size_t j = 0; j < right_->size(); ++j)
      first[j] = (*right_)[j]->array(node, static_cast<Index>(k))[0];
    for (Index row = 1; row < rows_at_once_; ++row) std::copy_n(first, row_step(), first + row * row_step());
  }
}

template <typename Scalar>
Plane<Scalar> PointExecutor<Scalar>::run(std::span<const PointRow<Scalar>> rows) {
  rows_ = rows;
  for (std::size_t i = 0; i < program_.points.instructions.size(); ++i) {
    stop_.check();
    timer_.time(program_.points.instructions[i].node, [&] {
      name_layer(node_of(i), [&] {
        evaluate(i);
        if (recorded_ != nullptr) check_variances(result_of(i).nngp, 1);
      });
    });
  }
  return result_of(program_.points.instructions.size() - 1);
}

template <typename Scalar>
void PointExecutor<Scalar>::record_state(InputState<Scalar>& state) {
  const std::vector<const InputState<Scalar>*> itself{&state};
  const PointRow<Scalar> row{&state, 0, {}};
  right_ = &itself;
  recorded_ = &state;
  static_cast<void>(run({&row, 1}));
  recorded_ = nullptr;
}

template <typename Scalar>
void PointExecutor<Scalar>::evaluate(std::size_t number) {
  const Instruction& instruction = program_.points.instructions[number];
  const Node& node = node_of(number);
  const Plane<Scalar> target = result_of(number);
  if (is_source(instruction, node)) {
    const auto place =
        std::find(source_nodes_.begin(), source_nodes_.end(), instruction.node) - source_nodes_.begin();
    copy_plane(source(static_cast<std::size_t>(place)), size(), target);
    return;
  }
  const Plane<Scalar> input = result_of(instruction.inputs[0]);
  if (const auto* affine = std::get_if<AffineNode>(&node.operation)) {
    dense_plane(affine->weight_variance, affine->bias_variance, input, size(), target);
  } else if (const auto* row = std::get_if<RowNode>(&node.operation)) {
    if (recorded_ != nullptr) record(number, input);
    if (input.nngp != target.nngp) copy_plane(input, size(), target);
    apply_row(number, *row->stage, target);
  } else if (const auto* pair = std::get_if<PairNode>(&node.operation)) {
    if (recorded_ != nullptr) record(number, input);
    apply_stage(number, *pair->stage, input, target);
  } else if (const auto* sum = std::get_if<SumNode>(&node.operation)) {
    add_planes(*sum, instruction, target);
  } else {
    multiply_planes(std::get<ProductNode>(node.operation), instruction, target);
  }
}

template <typename Scalar>
void PointExecutor<Scalar>::apply_row(std::size_t number, const RowStage& stage,
                                      const Plane<Scalar>& target) {
  const NodeId node = program_.points.instructions[number].node;
  const Arrays& arrays = arrays_[number];
  itself_.clear();
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const Index begin = static_cast<Index>(r) * row_step();
    for (std::size_t k = 0; k < arrays.left.size(); ++k)
      std::fill_n(arrays.left[k] + begin, row_step(), rows_[r].left->array(node, static_cast<Index>(k))[0]);
    if (rows_[r].same < 0) continue;
    itself_.push_back(target.nngp[begin + rows_[r].same]);
    itself_.push_back(with_ntk_ ? target.ntk[begin + rows_[r].same] : Scalar{0});
  }
  gather_multiples(number, target);
  stage.apply({target.nngp, target.ntk, arrays.left.data(), arrays.right.data(), size()});
  apply_to_multiples(stage, target);
  const Scalar* before = itself_.data();
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    if (rows_[r].same < 0) continue;
    const Plane<Scalar> itself = target + (static_cast<Index>(r) * row_step() + rows_[r].same);
    *itself.nngp = *before++;
    const Scalar ntk = *before++;
    if (with_ntk_) *itself.ntk = ntk;
    apply_to_itself(number, stage, itself.nngp - target.nngp, target);
  }
}

/// Takes entries of multiples out of the rows, if they are perfectly correlated in front of the stage.
template <typename Scalar>
void PointExecutor<Scalar>::gather_multiples(std::size_t number, const Plane<Scalar>& target) {
  multiples_ = {};
  const NodeId node = program_.points.instructions[number].node;
  if (!keeps_multiples_[program_.graph.nodes[node].inputs[0]]) return;
  for (std::size_t r = 0; r < rows_.size(); ++r)
    for (const Index column : rows_[r].multiples)
      multiples_.places.push_back(static_cast<Index>(r) * row_step() + column);
  const auto gather = [&](const Scalar* row) {
    std::vector<Scalar> values;
    for (const Index place : multiples_.places) values.push_back(row[place]);
    return values;
  };
  if (multiples_.places.empty()) return;
  multiples_.nngp = gather(target.nngp);
  if (with_ntk_) multiples_.ntk = gather(target.ntk);
  for (const Scalar* row : arrays_[number].left) multiples_.left.push_back(gather(row));
  for (const Scalar* row : arrays_[number].right) multiples_.right.push_back(gather(row));
}

/// Puts them back behind the stage.
template <typename Scalar>
void PointExecutor<Scalar>::apply_to_multiples(const RowStage& stage, const Plane<Scalar>& target) {
  if (multiples_.places.empty()) return;
  std::vector<const Scalar*> left, right;
  for (const auto& row : multiples_.left) left.push_back(row.data());
  for (const auto& row : multiples_.right) right.push_back(row.data());
  stage.apply_to_multiples({multiples_.nngp.data(), with_ntk_ ? multiples_.ntk.data() : nullptr, left.data(),
                            right.data(), multiples_.places.size()});
  for (std::size_t i = 0; i < multiples_.places.size(); ++i) {
    target.nngp[multiples_.places[i]] = multiples_.nngp[i];
    if (with_ntk_) target.ntk[multiples_.places[i]] = multiples_.ntk[i];
  }
}

/// An input with itself: by the stage's rule for that.
template <typename Scalar>
void PointExecutor<Scalar>::apply_to_itself(std::size_t number, const RowStage& stage, Index place,
                                            const Plane<Scalar>& target) {
  const Arrays& arrays = arrays_[number];
  std::vector<const Scalar*> left, right;
  for (std::size_t k = 0; k < arrays.left.size(); ++k) {
    left.push_back(arrays.left[k] + place);
    right.push_back(arrays.right[k] + place);
  }
  const Plane<Scalar> itself = target + place;
  stage.apply_self({itself.nngp, itself.ntk, left.data(), right.data(), 1});
}

template <typename Scalar>
void PointExecutor<Scalar>::apply_stage(std::size_t number, const PairStage& stage,
                                        const Plane<Scalar>& source, const Plane<Scalar>& target) {
  const NodeId node = program_.points.instructions[number].node;
  const Shape no_positions;
  const Index ntk_size = with_ntk_ ? 1 : 0;
  for (std::size_t r = 0; r < rows_.size(); ++r)
    for (std::size_t j = 0; j < right_->size(); ++j) {
      const InputState<Scalar>&left = *rows_[r].left, &right = *(*right_)[j];
      const Index place = static_cast<Index>(r) * row_step() + static_cast<Index>(j);
      const Plane<Scalar> from = source + place, to = target + place;
      const PairView<Scalar> view{.nngp = {from.nngp, 1, 1},
                                  .ntk = {from.ntk, ntk_size, ntk_size},
                                  .left_variance = left.array(node, 0),
                                  .right_variance = right.array(node, 0),
                                  .left_state = left.extra(node),
                                  .right_state = right.extra(node),
                                  .left_shape = no_positions,
                                  .right_shape = no_positions,
                                  .same_input = static_cast<Index>(j) == rows_[r].same,
                                  .wanted = Entries::all,
                                  .stop = stop_};
      PairResult<Scalar> result{
          .nngp = {to.nngp, 1, 1}, .ntk = {to.ntk, ntk_size, ntk_size}, .scratch = scratch_.data()};
      stage.apply(view, result);
    }
}

template <typename Scalar>
void PointExecutor<Scalar>::record(std::size_t number, const Plane<Scalar>& source) {
  const NodeId id = program_.points.instructions[number].node;
  if (const auto* row = std::get_if<RowNode>(&node_of(number).operation)) {
    std::vector<Scalar*> arrays;
    for (Index k = 0; k < recorded_->layout().arrays[id]; ++k) arrays.push_back(recorded_->array(id, k));
    row->stage->prepare(source.nngp, 1, arrays.data());
    gather_right(number);
    return;
  }
  recorded_->array(id, 0)[0] = source.nngp[0];
  const Shape no_positions;
  std::get<PairNode>(node_of(number).operation)
      .stage->prepare(SelfView<Scalar>{{source.nngp, 1, 1}, no_positions, stop_}, recorded_->extra(id));
}

template <typename Scalar>
void PointExecutor<Scalar>::add_planes(const SumNode& node, const Instruction& instruction,
                                       const Plane<Scalar>& target) {
  sum_planes([&](std::size_t i) { return result_of(instruction.inputs[i]); }, node.factors, size(), target);
}

template <typename Scalar>
void PointExecutor<Scalar>::multiply_planes(const ProductNode& node, const Instruction& instruction,
                                            const Plane<Scalar>& target) {
  fill_plane(target, size(), static_cast<Scalar>(node.factor), Scalar{0});
  for (const std::size_t input : instruction.inputs) multiply_plane(result_of(input), size(), target);
}

template class PointExecutor<float>;
template class PointExecutor<double>;

}  // namespace widelimit
