#pragma once

#include <string>
#include <vector>

#include "kernel/run/gram_run.hpp"
#include "widelimit/network/network_file.hpp"

/// What tests of the workers share: a plan for a batch, and the states of its inputs.
namespace widelimit::testing {

inline Network network_with(const std::string& layers) {
  return parse_network(R"({"widelimit": 1, "layers": )" + layers + "}");
}

/// The plan of a symmetric Gram matrix; `scalar_bytes` of the type that is computed in.
template <typename Scalar>
GramPlan plan_for(const std::string& layers, const Inputs<Scalar>& x, const GramOptions& options = {}) {
  const Network network = network_with(layers);
  const GramTask task = symmetric_task(network, x);
  return make_plan(network, task.shapes, size_of(task), sizeof(Scalar), options);
}

/// The states of a batch of equal shapes, made one by one.
template <typename Scalar>
class RecordedInputs {
 public:
  RecordedInputs(const GramPlan& plan, const Inputs<Scalar>& x)
      : block_(std::vector<const StateLayout*>(static_cast<std::size_t>(x.size()),
                                               &plan.state_layouts.at(x.shape(0))),
               0) {
    StateWorker<Scalar> worker(plan, StopRequest());
    for (Index i = 0; i < x.size(); ++i) worker.run(x[i], block_[i]);
  }
  RecordedInputs(const RecordedInputs&) = delete;
  RecordedInputs& operator=(const RecordedInputs&) = delete;

  [[nodiscard]] StateRange<Scalar> range(Index begin, Index end) const { return {&block_, begin, end}; }
  [[nodiscard]] const InputState<Scalar>& operator[](Index i) const { return block_[i]; }

 private:
  StateBlock<Scalar> block_;
};

}  // namespace widelimit::testing
