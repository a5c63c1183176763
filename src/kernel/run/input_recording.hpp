#pragma once

#include <fmt/format.h>

#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "kernel/run/ordered_inputs.hpp"
#include "kernel/run/state_worker.hpp"
#include "widelimit/error.hpp"

namespace widelimit {

/// Calls body(). Errors of numbers name input i of the batch.
template <typename Result, typename Body>
void naming_input(const OrderedInputs<Result>& x, Index i, const Body& body) {
  try {
    body();
  } catch (const NumericalError& error) {
    throw NumericalError(fmt::format("gram: {}: {}", x.name(i), error.what()));
  }
}

/// Makes the state of input i of a batch. Errors of numbers name the input.
template <typename Scalar, typename Result>
void record_input(StateWorker<Scalar>& worker, const GramPlan& plan, const OrderedInputs<Result>& x, Index i,
                  InputState<Scalar>& state) {
  const std::span<const Result> input = x.input(i);
  std::optional<PositionMask> mask;
  // The state refers to the mask only while it is being made. Everything that pairs need of the mask is then in its
  // arrays.
  if (plan.masks == InputMasks::present) state.set_mask(&mask.emplace(x.mask(i)));
  state.set_graph(x.graph(i));
  naming_input(x, i, [&] {
    if constexpr (std::is_same_v<Scalar, Result>)
      worker.run(input, state);
    else
      worker.run(std::vector<Scalar>(input.begin(), input.end()), state);
  });
  state.set_mask(nullptr);
}

}  // namespace widelimit
