#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <type_traits>

#include "kernel/run/gram_checks.hpp"
#include "kernel/run/gram_computation.hpp"
#include "kernel/run/gram_result.hpp"
#include "kernel/run/make_gram_plan.hpp"
#include "kernel/run/plan_cache.hpp"
#include "kernel/run/range_search.hpp"
#include "kernel/run/replicate_mean.hpp"
#include "widelimit/kernel/gram.hpp"

/// What all Gram matrices begin with: the task, its plan and replicates.
namespace widelimit {

/// What is to be computed: the inputs' shapes and channels, the size of the result, and its pairs.
struct GramTask {
  NamedShapes shapes;
  Index channels;
  Index rows;
  Index columns;
  Index pairs;
  InputMasks masks;
  LayerOfPair layer_of;                     ///< Finds the layer that errors name.
  std::function<void(const Graph&)> check;  ///< Checks the inputs' graphs and masks against the network.
};

inline GramSize size_of(const GramTask& task) {
  return {task.channels, std::max(task.rows, task.columns), std::min(task.rows, task.columns), task.pairs,
          task.masks};
}

/// The source of plans of gram(): each Gram matrix makes its own. PlanCache has the same function for kept inputs.
struct NewPlans {
  template <typename Make>
  std::shared_ptr<const GramPlan> get(const PlanKey& /*key*/, const Make& make) {
    return make();
  }
};

/// The result of a batch without inputs: empty matrices, with errors if the network is sampled.
template <typename Scalar>
GramResult<Scalar> no_pairs(const GramOptions& options, const GramTask& task, bool is_sampled) {
  auto result = empty_result<Scalar>(options, task.rows, task.columns);
  if (!is_sampled) return result;
  result.nngp_error = result.nngp;
  result.ntk_error = result.ntk;
  return result;
}

/// Runs compute(computation, target, plan, replicate) once, or once for every replicate of a sampled network. Plans
/// come from `plans`, except those of replicates: a lowered network contains its samples, and each replicate draws
/// its own.
template <typename Scalar, typename Compute, typename Plans = NewPlans>
GramResult<Scalar> run_gram(const Network& network, const GramTask& task, const GramOptions& options,
                            const Compute& compute, Plans&& plans = {}) {
  const auto run_plan = [&](const std::shared_ptr<const GramPlan>& plan, std::int64_t replicate,
                            ProgressCounter& progress) {
    auto result = empty_result<Scalar>(options, task.rows, task.columns);
    const Index before = progress.done();
    const auto compute_in = [&](auto computation) {
      compute(computation, target_of(result), plan, replicate);
      if (options.shortened_attention != nullptr)
        *options.shortened_attention = computation.shortened_attention();
      return computation.is_finite();
    };
    const auto compute_all = [&] {
      if constexpr (!std::is_same_v<Scalar, double>)
        if (plan->in_double) return compute_in(GramComputation<double, Scalar>(*plan, options, progress));
      return compute_in(GramComputation<Scalar, Scalar>(*plan, options, progress));
    };
    const bool finite = compute_all();
    // The memory of the result is not initialised, so an entry that no tile covers would contain any number. Counting
    // the pairs rules this out.
    if (progress.done() - before != task.pairs)
      throw std::logic_error(
          fmt::format("gram: {} of {} pairs were computed", progress.done() - before, task.pairs));
    if (!finite) throw_not_finite(result, task.layer_of);
    return result;
  };
  const auto plan_of = [&](const Replicate& replicate) {
    return std::make_shared<const GramPlan>(
        make_plan(network, task.shapes, size_of(task), sizeof(Scalar), options, replicate));
  };
  // This plan of a sampled network only checks the inputs and counts the samples; the loop below makes one for each
  // replicate.
  const auto plan = plans.get(PlanKey(task.shapes, size_of(task), options), [&] { return plan_of({}); });
  task.check(plan->program.graph);
  if (options.shortened_attention != nullptr) *options.shortened_attention = {};
  if (task.pairs == 0) return no_pairs<Scalar>(options, task, plan->program.graph.fewest_samples != 0);
  if (plan->program.graph.fewest_samples == 0) {
    ProgressCounter progress(options, task.pairs);
    return run_plan(plan, 0, progress);
  }
  const std::int64_t count = sampled_replicates(plan->program.graph);
  ProgressCounter progress(options, task.pairs * count);
  ReplicateMean<Scalar> nngp, ntk;
  for (std::int64_t r = 0; r < count; ++r) {
    const auto result = run_plan(plan_of({r, count}), r, progress);
    nngp.add(result.nngp);
    ntk.add(result.ntk);
  }
  return {.nngp = nngp.mean(), .ntk = ntk.mean(), .nngp_error = nngp.error(), .ntk_error = ntk.error()};
}

template <typename Scalar>
NamedShapes shapes_of(const Inputs<Scalar>& x, const char* name) {
  NamedShapes shapes;
  // A batch without inputs still has a shape, for which its network is checked.
  for (Index i = 0; i < (x.is_ragged() ? std::max<Index>(x.size(), 1) : 1); ++i)
    if (!shapes.contains(x.shape(i))) shapes.emplace(x.shape(i), fmt::format("input {} of {}", i, name));
  return shapes;
}

template <typename Scalar>
InputMasks masks_of(const Inputs<Scalar>& x) {
  return x.is_masked() ? InputMasks::present : InputMasks::absent;
}

template <typename Scalar>
LayerOfPair layer_search(const Network& network, const Inputs<Scalar>& x1, const Inputs<Scalar>& x2,
                         Batches batches) {
  return [&network, &x1, &x2, batches](Index i, Index j) {
    return layer_out_of_range(network, x1.single(i), x2.single(j), batches == Batches::one && i == j);
  };
}

// Tasks keep references to the network and the inputs, which must outlive them.

template <typename Scalar>
GramTask symmetric_task(const Network& network, const Inputs<Scalar>& x) {
  return {shapes_of(x, "x"),
          x.channels(),
          x.size(),
          x.size(),
          x.size() * (x.size() + 1) / 2,
          masks_of(x),
          layer_search(network, x, x, Batches::one),
          [&network, &x](const Graph& graph) {
            check_inputs(network, graph, x, "x");
            check_pairs(graph, x, "x", x, "x");
          }};
}

template <typename Scalar>
GramTask rectangular_task(const Network& network, const Inputs<Scalar>& x1, const Inputs<Scalar>& x2) {
  GramTask task{shapes_of(x1, "x1"),
                x1.channels(),
                x1.size(),
                x2.size(),
                x1.size() * x2.size(),
                masks_of(x1),
                layer_search(network, x1, x2, Batches::two),
                [&network, &x1, &x2](const Graph& graph) {
                  check_inputs(network, graph, x1, "x1");
                  check_inputs(network, graph, x2, "x2");
                  check_pairs(graph, x1, "x1", x2, "x2");
                }};
  if (x2.is_masked()) task.masks = InputMasks::present;
  task.shapes.merge(shapes_of(x2, "x2"));
  return task;
}

/// A rectangular task whose right inputs were checked when they were kept. Only their pairs with new shapes remain to
/// be checked.
template <typename Scalar>
GramTask kept_task(const Network& network, const Inputs<Scalar>& x1, const Inputs<Scalar>& kept) {
  GramTask task = rectangular_task(network, x1, kept);
  task.check = [&network, &x1, &kept](const Graph& graph) {
    check_inputs(network, graph, x1, "x1");
    check_pairs(graph, x1, "x1", kept, "the kept inputs");
  };
  return task;
}

/// The pairs of every input with itself, in a matrix of one column.
template <typename Scalar>
GramTask diagonal_task(const Network& network, const Inputs<Scalar>& x) {
  GramTask task = symmetric_task(network, x);
  task.columns = 1;
  task.pairs = x.size();
  task.check = [&network, &x](const Graph& graph) { check_inputs(network, graph, x, "x"); };
  task.layer_of = [&network, &x](Index i, Index) {
    return layer_out_of_range(network, x.single(i), x.single(i), true);
  };
  return task;
}

/// The NNGP of every input with itself.
template <typename Scalar>
Vector<double> variances_of(const Network& network, const Inputs<Scalar>& x, const GramOptions& options) {
  // Callbacks and timers of the Gram matrix itself must not see this second computation.
  GramOptions alone;
  alone.kernels = Kernels::nngp;
  alone.threads = options.threads;
  alone.device = options.device;
  alone.exact_attention = options.exact_attention;
  alone.state_memory_bytes = options.state_memory_bytes;
  alone.stop = options.stop;
  return gram_diagonal(network, x, alone).nngp.col(0).template cast<double>();
}

/// Fills the inputs' variances if the options ask for them.
template <typename Scalar>
void fill_variances(const Network& network, const Inputs<Scalar>& x, const GramOptions& options) {
  if (options.variances != nullptr) *options.variances = {.first = variances_of(network, x, options)};
}

template <typename Scalar>
void fill_variances(const Network& network, const Inputs<Scalar>& x1, const Inputs<Scalar>& x2,
                    const GramOptions& options) {
  if (options.variances == nullptr) return;
  *options.variances = {.first = variances_of(network, x1, options),
                        .second = variances_of(network, x2, options)};
}

}  // namespace widelimit
