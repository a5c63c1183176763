#pragma once

#include <fmt/format.h>

#include <stdexcept>

#include "kernel/plan/program.hpp"
#include "kernel/range/variance_checks.hpp"
#include "kernel/step_timer.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit {

/// The product of the features of both inputs.
struct FeatureProduct {};
/// Windows without weight sharing, and the stage after them, which is null if there is none.
struct LocalWindows {
  const RowStage* stage;
};

/// Hands on what an operation computes with, which evaluators get in place of its node: row, pair and feature stages,
/// the numbers of a convolution or dense layer, or one of the above. What acts entry by entry stands for itself.
template <typename Take>
struct OperationParts {
  Take take;

  void operator()(const InputNode& /*node*/) const { take(FeatureProduct{}); }
  void operator()(const FeatureNode& node) const { take(*node.stage); }
  void operator()(const AffineNode& node) const {
    take(AffineNumbers{node.weight_variance, node.bias_variance,
                       node.weights == AffineNode::Weights::trained});
  }
  void operator()(const LocalAffineNode& node) const { take(LocalWindows{node.stage.get()}); }
  void operator()(const RowNode& node) const { take(*node.stage); }
  void operator()(const PairNode& node) const { take(*node.stage); }
  template <typename Kind>
  void operator()(const Kind& node) const {
    take(node);
  }
};
template <typename Take>
OperationParts(Take) -> OperationParts<Take>;

/// Throws for a node that no instruction can evaluate. The schedule promises that chains contain none.
[[noreturn]] inline void throw_no_instruction(const Instruction& instruction) {
  throw std::logic_error(fmt::format("kernel: node {} cannot be an instruction here", instruction.node));
}

/// Evaluates the instructions of a chain in order, whatever they work on: planes, or rows of pairs.
///
/// For instruction i the evaluator has skips(i), true if there is nothing to do; load(i), for instructions that load;
/// evaluate(i, part), for the OperationParts that it can meet; and finish(i), which is called after each. Errors of
/// numbers name the layer.
template <typename Evaluator>
void interpret(const Chain& chain, const Graph& graph, StepTimer& timer, const StopRequest& stop,
               Evaluator& evaluator) {
  NodeId node = chain.root;
  const auto evaluate = [&](std::size_t i) {
    if (evaluator.skips(i)) return;
    if (chain.instructions[i].loads)
      evaluator.load(i);
    else
      std::visit(OperationParts{[&](const auto& part) {
                   if constexpr (requires { evaluator.evaluate(i, part); })
                     evaluator.evaluate(i, part);
                   else
                     throw_no_instruction(chain.instructions[i]);
                 }},
                 graph.nodes[node].operation);
    evaluator.finish(i);
  };
  // The handlers are around all instructions, not around each, because instructions are short.
  try {
    for (std::size_t i = 0; i < chain.instructions.size(); ++i) {
      stop.check();
      node = chain.instructions[i].node;
      timer.time(node, [&] { evaluate(i); });
    }
  } catch (const NumericalError& error) {
    throw_named(graph.nodes[node], error);
  } catch (const ArgumentError& error) {  // thrown by functions that users give
    throw_named(graph.nodes[node], error);
  }
}

/// Goes through the instructions of a chain in reverse, from the adjoint of its root to the adjoints of what it began
/// with.
///
/// For instruction i the pass has skips(i), like an evaluator; begin(i), which is called before each; unload(i), for
/// instructions that load; and propagate(i, part), for the OperationParts that it can meet. Errors of numbers name the
/// layer.
template <typename Pass>
void interpret_backward(const Chain& chain, const Graph& graph, const StopRequest& stop, Pass& pass) {
  NodeId node = chain.root;
  try {
    for (std::size_t i = chain.instructions.size(); i-- > 0;) {
      stop.check();
      node = chain.instructions[i].node;
      if (pass.skips(i)) continue;
      pass.begin(i);
      if (chain.instructions[i].loads)
        pass.unload(i);
      else
        std::visit(OperationParts{[&](const auto& part) {
                     if constexpr (requires { pass.propagate(i, part); })
                       pass.propagate(i, part);
                     else
                       throw_no_instruction(chain.instructions[i]);
                   }},
                   graph.nodes[node].operation);
    }
  } catch (const NumericalError& error) {
    throw_named(graph.nodes[node], error);
  } catch (const ArgumentError& error) {
    throw_named(graph.nodes[node], error);
  }
}

}  // namespace widelimit
