#include "widelimit/kernel/prepared_inputs.hpp"

#include <type_traits>
#include <utility>

#include "kernel/inputs/copied_inputs.hpp"
#include "kernel/run/gram_run.hpp"
#include "kernel/run/plan_cache.hpp"
#include "kernel/run/state_cache.hpp"

namespace widelimit {
/// What prepared inputs keep. Plans that compute float in double keep states of another type than the others.
template <typename Scalar>
struct PreparedInputs<Scalar>::Kept {
  Network network;
  Inputs<Scalar> inputs;
  GramOptions options;  ///< Those options on which the states depend.
  StateCache<Scalar, Scalar> states;
  StateCache<double, Scalar> states_in_double;
  PlanCache plans;

  Kept(const Network& states_network, Inputs<Scalar> x, GramOptions states_options)
      : network{states_network}, inputs{std::move(x)}, options{std::move(states_options)} {}

  [[nodiscard]] GramOptions with_own(GramOptions given) const {
    given.state_memory_bytes = options.state_memory_bytes;
    given.demand = options.demand;
    given.exact_attention = options.exact_attention;
    given.shortened_attention = nullptr;
    return given;
  }

  /// The states for a computation under this plan.
  template <typename Computation>
  std::shared_ptr<const typename Computation::Kept> states_for(Computation& computation,
                                                               const std::shared_ptr<const GramPlan>& plan,
                                                               std::int64_t replicate) {
    const auto make = [&] {
      auto made = std::make_shared<typename Computation::Kept>(plan, inputs, "the kept inputs");
      computation.fill(*made, sampled_replicates(plan->program.graph));
      return made;
    };
    // For Scalar = double both caches have one type, and only the first is used.
    if constexpr (std::is_same_v<typename Computation::Kept, KeptStates<Scalar, Scalar>>)
      return states.get(*plan, replicate, make);
    else
      return states_in_double.get(*plan, replicate, make);
  }
};

template <typename Scalar>
PreparedInputs<Scalar>::PreparedInputs(const Network& network, const Inputs<Scalar>& x,
                                       const GramOptions& options) {
  check_finite(x, "x", options.threads);
  // The inputs are checked here, once. Pairs of shapes are checked when their kernels are asked for.
  const GramTask task = diagonal_task(network, x);
  task.check(make_plan(network, task.shapes, size_of(task), sizeof(Scalar), options).program.graph);
  GramOptions own;
  own.state_memory_bytes = options.state_memory_bytes;
  own.demand = options.demand;
  own.exact_attention = options.exact_attention;
  kept_ = std::make_shared<Kept>(network, copied_inputs<Scalar, Scalar>({&x}), std::move(own));
}

template <typename Scalar>
const Network& PreparedInputs<Scalar>::network() const {
  return kept_->network;
}

template <typename Scalar>
const Inputs<Scalar>& PreparedInputs<Scalar>::inputs() const {
  return kept_->inputs;
}

template <typename Scalar>
GramResult<Scalar> PreparedInputs<Scalar>::gram(const GramOptions& options) const {
  auto result = run_gram<Scalar>(
      kept_->network, symmetric_task(kept_->network, kept_->inputs), kept_->with_own(options),
      [&](auto& computation, const auto& target, const auto& plan, std::int64_t replicate) {
        computation.symmetric(*kept_->states_for(computation, plan, replicate), target);
      },
      kept_->plans);
  fill_variances(kept_->network, kept_->inputs, kept_->with_own(options));
  return result;
}

template <typename Scalar>
GramResult<Scalar> PreparedInputs<Scalar>::gram_with(const Inputs<Scalar>& x1,
                                                     const GramOptions& options) const {
  check_finite(x1, "x1", options.threads);
  check_alike(x1, kept_->inputs);
  auto result = run_gram<Scalar>(
      kept_->network, kept_task(kept_->network, x1, kept_->inputs), kept_->with_own(options),
      [&](auto& computation, const auto& target, const auto& plan, std::int64_t replicate) {
        computation.rectangular(x1, *kept_->states_for(computation, plan, replicate), target);
      },
      kept_->plans);
  fill_variances(kept_->network, x1, kept_->inputs, kept_->with_own(options));
  return result;
}

template class PreparedInputs<float>;
template class PreparedInputs<double>;

}  // namespace widelimit
