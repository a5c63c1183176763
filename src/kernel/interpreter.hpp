#pragma once

#include <fmt/format.h>

#include <stdexcept>

#include "kernel/plan/program.hpp"
#include "kernel/step_timer.hpp"
#include "kernel/variance_checks.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit {

/// Evaluates the instructions of a run in order, whatever they work on: planes, or rows of pairs.
///
/// The evaluator has, for instruction i: skips(i), true if there is nothing to do; load(i), for instructions
/// that load; evaluate(i, operation) for the kinds of nodes that it can meet; and finish(i) after each.
/// Errors of numbers name the layer.
template <typename Evaluator>
void interpret(const Run& run, const Graph& graph, StepTimer& timer, const StopRequest& stop,
               Evaluator& evaluator) {
  NodeId node = run.root;
  const auto evaluate = [&](std::size_t i) {
    if (evaluator.skips(i)) return;
    if (run.instructions[i].loads)
      evaluator.load(i);
    else
      std::visit([&](const auto& operation) { evaluator.evaluate(i, operation); },
                 graph.nodes[node].operation);
    evaluator.finish(i);
  };
  // Around all instructions: they are short.
  try {
    for (std::size_t i = 0; i < run.instructions.size(); ++i) {
      stop.check();
      node = run.instructions[i].node;
      timer.time(node, [&] { evaluate(i); });
    }
  } catch (const NumericalError& error) {
    throw_named(graph.nodes[node], error);
  } catch (const ArgumentError& error) {  // Of functions that users give.
    throw_named(graph.nodes[node], error);
  }
}

/// The schedule promises that a run has no such node.
[[noreturn]] inline void throw_no_instruction(const Instruction& instruction) {
  throw std::logic_error(fmt::format("kernel: node {} cannot be an instruction here", instruction.node));
}

}  // namespace widelimit
