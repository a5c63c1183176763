#pragma once

#include <algorithm>

#include "kernel/backends/cpu/pair_rows/pair_row_memory.hpp"
#include "kernel/backends/cpu/pair_rows/pair_row_stage.hpp"
#include "kernel/backends/cpu/planes/entrywise_operations.hpp"
#include "kernel/backends/cpu/planes/interpreter.hpp"
#include "kernel/backends/cpu/planes/pair_view.hpp"
#include "kernel/backends/cpu/planes/written_entries.hpp"
#include "kernel/range/vanishing_check.hpp"
#include "kernel/range/variance_checks.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit {

/// What instructions on rows of pairs work on, besides the rows themselves.
template <typename Scalar>
struct PairRowWork {
  const Program& program;
  const std::vector<NodeId>& sources;        ///< Nodes whose values the caller gives.
  const std::vector<bool>& keeps_multiples;  ///< [node]
  PairRowMemory<Scalar>& memory;
  StopRequest stop;

  [[nodiscard]] const Instruction& instruction(std::size_t i) const {
    return program.pair_rows.instructions[i];
  }
  [[nodiscard]] NodeId node(std::size_t i) const { return instruction(i).node; }
};

/// Evaluates the instructions after the positions on rows of pairs, as interpret() asks for them.
template <typename Scalar>
class PairRowEvaluator {
 public:
  /// `recorded` is the state of the only row's input while states are made, and null otherwise. Everything must
  /// outlive the evaluator.
  PairRowEvaluator(const PairRowWork<Scalar>& work, const PairRows<Scalar>& rows,
                   InputState<Scalar>* recorded)
      : work_{work}, rows_{rows}, recorded_{recorded} {}

  [[nodiscard]] bool skips(std::size_t /*i*/) const { return false; }

  void load(std::size_t i) {
    const auto place = std::find(work_.sources.begin(), work_.sources.end(), work_.node(i));
    copy_plane(work_.memory.source(static_cast<std::size_t>(place - work_.sources.begin())), rows_.size(),
               result(i));
  }
  void evaluate(std::size_t i, FeatureProduct /*part*/) { load(i); }
  void evaluate(std::size_t i, const FeatureStage& /*stage*/) { load(i); }

  void evaluate(std::size_t i, const AffineNumbers& numbers) {
    dense_plane(numbers.weight_variance, numbers.bias_variance, input(i, 0), rows_.size(), result(i));
  }

  void evaluate(std::size_t i, const RowStage& stage) {
    const Plane<Scalar> source = input(i, 0), target = result(i);
    if (recorded_ != nullptr) record(i, stage, source);
    if (source.nngp != target.nngp) copy_plane(source, rows_.size(), target);
    apply_row_stage(stage, rows_, work_.memory.arrays(i), keeps_multiples(i), target);
  }

  void evaluate(std::size_t i, const PairStage& stage) {
    if (recorded_ != nullptr) record(i, stage, input(i, 0));
    rows_.for_each([&](const PairRow<Scalar>& row, Index place) {
      for (std::size_t j = 0; j < rows_.right.size(); ++j)
        apply(i, stage, row, j, place + static_cast<Index>(j));
    });
  }

  template <EntrywiseOperation Node>
  void evaluate(std::size_t i, const Node& node) {
    evaluate_entries(
        node, [&](std::size_t k) { return input(i, k); }, work_.instruction(i).inputs.size(), rows_.size(),
        result(i));
  }

  template <typename Other>
  void evaluate(std::size_t i, const Other& /*node*/) {
    throw_no_instruction(work_.instruction(i));
  }

  void finish(std::size_t i) {
    if (recorded_ == nullptr) return;
    const Scalar variance = result(i).nngp[0];
    check_variances(&variance, 1);
    if (work_.memory.with_ntk()) check_ntk(result(i).ntk, 1);
    vanishing_.note(i, work_.instruction(i), work_.program.graph.nodes[work_.node(i)].operation,
                    variance > 0 ? Positive::all : Positive::none);
  }

 private:
  [[nodiscard]] Plane<Scalar> result(std::size_t i) const {
    return work_.memory.slot(work_.instruction(i).slot);
  }
  [[nodiscard]] Plane<Scalar> input(std::size_t i, std::size_t k) const {
    return result(work_.instruction(i).inputs[k]);
  }
  [[nodiscard]] bool keeps_multiples(std::size_t i) const {
    return work_.keeps_multiples[work_.program.graph.nodes[work_.node(i)].inputs[0]];
  }

  void record(std::size_t i, const RowStage& stage, const Plane<Scalar>& source) {
    std::vector<Scalar*> arrays;
    for (Index k = 0; k < recorded_->layout().arrays[work_.node(i)]; ++k)
      arrays.push_back(recorded_->array(work_.node(i), k));
    stage.prepare(source.nngp, 1, arrays.data());
    // The arrays were gathered before the stage was prepared, when the tile began.
    work_.memory.arrays(i).gather_right(rows_, 1);
  }

  void record(std::size_t i, const PairStage& stage, const Plane<Scalar>& source) {
    recorded_->array(work_.node(i), 0)[0] = source.nngp[0];
    const Shape no_positions;
    stage.prepare(SelfView<Scalar>{{source.nngp, 1, 1}, no_positions, work_.stop, {}, recorded_->graph()},
                  recorded_->extra(work_.node(i)));
  }

  /// Applies a pair stage to a single pair.
  void apply(std::size_t i, const PairStage& stage, const PairRow<Scalar>& row, std::size_t column,
             Index place) {
    const Shape no_positions;
    auto view = pair_view<Scalar>(stage_input(work_.node(i), *row.left, no_positions),
                                  stage_input(work_.node(i), *rows_.right[column], no_positions),
                                  input(i, 0) + place);
    view.same_input = static_cast<Index>(column) == row.same;
    view.stop = work_.stop;
    auto written = pair_result<Scalar>(result(i) + place, 1, 1, work_.memory.scratch());
    name_layer(work_.program.graph.nodes[work_.node(i)], [&] { apply_pair_stage(stage, view, written); });
  }

  const PairRowWork<Scalar>& work_;
  const PairRows<Scalar>& rows_;
  InputState<Scalar>* recorded_;
  VanishingCheck<Scalar> vanishing_;
};

}  // namespace widelimit
