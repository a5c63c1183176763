#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <type_traits>

#include "kernel/run/gram_computation.hpp"
#include "kernel/run/gram_plan.hpp"
#include "kernel/run/gram_result.hpp"
#include "kernel/run/replicate_mean.hpp"
#include "numerics/blas_threads.hpp"
#include "numerics/rows/linear_rows.hpp"
#include "numerics/tasks.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"

/// What all Gram matrices begin with: checks of the inputs, the plan, and its replicates.
namespace widelimit {

/// Throws ArgumentError naming the first number that is not.
template <typename Scalar>
void check_finite(const Inputs<Scalar>& inputs, const char* name, int threads) {
  const auto is_finite = [&](Index i) {
    return numerics::linear_rows<Scalar>().all_finite(inputs[i].data(), inputs[i].size());
  };
  std::atomic<bool> all_finite = true;
  numerics::on_threads(numerics::resolve_threads(threads, "gram"), [&] {
    numerics::for_each_task(inputs.size(), {}, [&](Index i) {
      if (!is_finite(i)) all_finite = false;
    });
  });
  for (Index i = 0; !all_finite && i < inputs.size(); ++i) {
    if (is_finite(i)) continue;
    const auto input = inputs[i];
    const auto bad =
        std::find_if_not(input.begin(), input.end(), [](Scalar value) { return std::isfinite(value); });
    throw ArgumentError(fmt::format("gram: {} must be finite, got {} at entry {} of input {}", name, *bad,
                                    bad - input.begin(), i));
  }
}

/// What is to be computed: the inputs' shapes and channels, the size of the result, and its pairs.
struct GramTask {
  NamedShapes shapes;
  Index channels;
  Index rows;
  Index columns;
  Index pairs;
};

/// Runs compute(computation, target, plan, replicate) once, or for every replicate of a sampled network.
template <typename Scalar, typename Compute>
GramResult<Scalar> run_gram(const Network& network, const GramTask& task, const GramOptions& options,
                            const Compute& compute) {
  const auto run_plan = [&](const std::shared_ptr<const GramPlan>& plan, std::int64_t replicate,
                            ProgressCounter& progress) {
    auto result = empty_result<Scalar>(options, task.rows, task.columns);
    const Index before = progress.done();
    const auto compute_in = [&](auto computation) {
      compute(computation, target_of(result), plan, replicate);
      return computation.is_finite();
    };
    const auto compute_all = [&] {
      if constexpr (!std::is_same_v<Scalar, double>)
        if (plan->in_double) return compute_in(GramComputation<double, Scalar>(*plan, options, progress));
      return compute_in(GramComputation<Scalar, Scalar>(*plan, options, progress));
    };
    const bool finite = compute_all();
    // A pair that was forgotten must not pass unnoticed.
    if (progress.done() - before != task.pairs)
      throw std::logic_error(
          fmt::format("gram: {} of {} pairs were computed", progress.done() - before, task.pairs));
    if (!finite) {
      throw_not_finite(result);
    }
    return result;
  };
  const GramSize size{task.channels, std::max(task.rows, task.columns), std::min(task.rows, task.columns),
                      task.pairs};
  const auto plan_of = [&](const Replicate& replicate) {
    return std::make_shared<const GramPlan>(
        make_plan(network, task.shapes, size, sizeof(Scalar), options, replicate));
  };
  const auto plan = plan_of({});
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
  return {nngp.mean(), ntk.mean(), nngp.error(), ntk.error()};
}

template <typename Scalar>
NamedShapes shapes_of(const Inputs<Scalar>& x, const char* name) {
  NamedShapes shapes;
  for (Index i = 0; i < (x.is_ragged() ? x.size() : 1); ++i)
    if (!shapes.contains(x.shape(i))) shapes.emplace(x.shape(i), fmt::format("input {} of {}", i, name));
  return shapes;
}

/// Throws ArgumentError unless the inputs of two batches can be paired.
template <typename Scalar>
void check_alike(const Inputs<Scalar>& x1, const Inputs<Scalar>& x2) {
  if (x1.axes() != x2.axes() || x1.channels() != x2.channels() ||
      (!x1.is_ragged() && !x2.is_ragged() && x1.shape(0) != x2.shape(0)))
    throw ArgumentError(
        fmt::format("gram: x1 and x2 must have equal shapes, got {} with {} channels and {} with {}",
                    to_string(x1.shape(0)), x1.channels(), to_string(x2.shape(0)), x2.channels()));
}

template <typename Scalar>
GramTask symmetric_task(const Inputs<Scalar>& x) {
  return {shapes_of(x, "x"), x.channels(), x.size(), x.size(), x.size() * (x.size() + 1) / 2};
}

template <typename Scalar>
GramTask rectangular_task(const Inputs<Scalar>& x1, const Inputs<Scalar>& x2) {
  GramTask task{shapes_of(x1, "x1"), x1.channels(), x1.size(), x2.size(), x1.size() * x2.size()};
  task.shapes.merge(shapes_of(x2, "x2"));
  return task;
}

}  // namespace widelimit
