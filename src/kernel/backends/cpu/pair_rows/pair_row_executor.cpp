#include "kernel/backends/cpu/pair_rows/pair_row_executor.hpp"

#include <algorithm>

#include "kernel/backends/cpu/pair_rows/pair_row_evaluator.hpp"
#include "kernel/inputs/multiples.hpp"

namespace widelimit {
namespace {

/// With this many numbers the calls cost little for each, and the slots stay in the first-level cache.
constexpr Index numbers_at_once = 1024;

std::vector<NodeId> find_sources(const Program& program) {
  std::vector<NodeId> nodes;
  for (const Instruction& instruction : program.pair_rows.instructions)
    if (instruction.loads || input_transforms(program.graph.nodes[instruction.node].operation) != nullptr)
      nodes.push_back(instruction.node);
  return nodes;
}

}  // namespace

template <typename Scalar>
PairRowExecutor<Scalar>::PairRowExecutor(const Program& program, const StateLayout& state, Kernel kernel,
                                         Index rows, Index columns, StopRequest stop)
    : program_{program},
      stop_{stop},
      rows_at_once_{std::clamp<Index>(numbers_at_once / padded(columns), 1, rows)},
      source_nodes_{find_sources(program)},
      keeps_multiples_{keeps_multiples(program.graph)},
      memory_(program, state, kernel == Kernel::with_ntk, rows_at_once_ * padded(columns),
              source_nodes_.size()) {}

template <typename Scalar>
void PairRowExecutor<Scalar>::begin_tile(const std::vector<const InputState<Scalar>*>& right) {
  right_ = right;
  for (std::size_t i = 0; i < program_.pair_rows.instructions.size(); ++i)
    memory_.arrays(i).gather_right({{}, right_}, rows_at_once_);
}

template <typename Scalar>
Plane<Scalar> PairRowExecutor<Scalar>::interpret_rows(const PairRows<Scalar>& rows,
                                                      InputState<Scalar>* recorded) {
  const PairRowWork<Scalar> work{program_, source_nodes_, keeps_multiples_, memory_, stop_};
  PairRowEvaluator<Scalar> evaluator(work, rows, recorded);
  interpret(program_.pair_rows, program_.graph, timer_, stop_, evaluator);
  return memory_.slot(program_.pair_rows.instructions.back().slot);
}

template <typename Scalar>
void PairRowExecutor<Scalar>::record_state(InputState<Scalar>& state) {
  const InputState<Scalar>* itself = &state;
  const PairRow<Scalar> row{itself, 0, {}};
  static_cast<void>(interpret_rows({{&row, 1}, {&itself, 1}}, &state));
}

template class PairRowExecutor<float>;
template class PairRowExecutor<double>;

}  // namespace widelimit
