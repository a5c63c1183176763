#include "widelimit/kernel/gram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <map>
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

namespace widelimit {
namespace {

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

/// Throws NetworkError, naming input and layer, for graphs of the inputs that a layer cannot take.
template <typename Scalar>
void check_graphs(const Graph& graph, const Inputs<Scalar>& x, const char* name) {
  std::map<Shape, std::vector<Shape>> shapes;
  for (Index i = 0; i < x.size(); ++i) {
    const auto [found, is_new] = shapes.try_emplace(x.shape(i));
    if (is_new) found->second = node_shapes(graph, x.shape(i));
    for (const Node& node : graph.nodes) {
      const auto* pair = std::get_if<PairNode>(&node.operation);
      if (pair == nullptr) continue;
      try {
        pair->stage->check_graph(x.graph(i), found->second[node.inputs[0]]);
      } catch (const ArgumentError& error) {
        throw NetworkError(fmt::format("{}: {} (input {} of {})", node.path, error.what(), i, name));
      }
    }
  }
}

/// What is to be computed: the inputs' shapes and channels, the size of the result, and its pairs.
struct GramTask {
  NamedShapes shapes;
  Index channels;
  Index rows;
  Index columns;
  Index pairs;
  std::function<void(const Graph&)> check;  ///< Checks the inputs' graphs against the network.
};

/// Runs compute(computation, target) once, or for every replicate of a sampled network.
template <typename Scalar, typename Compute>
GramResult<Scalar> run(const Network& network, const GramTask& task, const GramOptions& options,
                       const Compute& compute) {
  const auto run_plan = [&](const GramPlan& plan, ProgressCounter& progress) {
    auto result = empty_result<Scalar>(options, task.rows, task.columns);
    const Index before = progress.done();
    const auto compute_in = [&](auto computation) {
      compute(computation, target_of(result));
      return computation.is_finite();
    };
    const auto compute_all = [&] {
      if constexpr (!std::is_same_v<Scalar, double>)
        if (plan.in_double) return compute_in(GramComputation<double, Scalar>(plan, options, progress));
      return compute_in(GramComputation<Scalar, Scalar>(plan, options, progress));
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
  const GramSize size{task.channels, std::max(task.rows, task.columns), task.pairs};
  const GramPlan plan = make_plan(network, task.shapes, size, sizeof(Scalar), options);
  task.check(plan.program.graph);
  if (plan.program.graph.fewest_samples == 0) {
    ProgressCounter progress(options, task.pairs);
    return run_plan(plan, progress);
  }
  const std::int64_t count = sampled_replicates(plan.program.graph);
  ProgressCounter progress(options, task.pairs * count);
  ReplicateMean<Scalar> nngp, ntk;
  for (std::int64_t r = 0; r < count; ++r) {
    const auto result =
        run_plan(make_plan(network, task.shapes, size, sizeof(Scalar), options, {r, count}), progress);
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

}  // namespace

template <typename Scalar>
GramResult<Scalar> gram(const Network& network, const Inputs<Scalar>& x, const GramOptions& options) {
  check_finite(x, "x", options.threads);
  const GramTask task{shapes_of(x, "x"),
                      x.channels(),
                      x.size(),
                      x.size(),
                      x.size() * (x.size() + 1) / 2,
                      [&](const Graph& graph) { check_graphs(graph, x, "x"); }};
  return run<Scalar>(network, task, options,
                     [&](auto& computation, const auto& target) { computation.symmetric(x, target); });
}

template <typename Scalar>
GramResult<Scalar> gram(const Network& network, const Inputs<Scalar>& x1, const Inputs<Scalar>& x2,
                        const GramOptions& options) {
  check_finite(x1, "x1", options.threads);
  check_finite(x2, "x2", options.threads);
  if (x1.axes() != x2.axes() || x1.channels() != x2.channels() ||
      (!x1.is_ragged() && !x2.is_ragged() && x1.shape(0) != x2.shape(0)))
    throw ArgumentError(
        fmt::format("gram: x1 and x2 must have equal shapes, got {} with {} channels and {} with {}",
                    to_string(x1.shape(0)), x1.channels(), to_string(x2.shape(0)), x2.channels()));
  GramTask task{shapes_of(x1, "x1"),
                x1.channels(),
                x1.size(),
                x2.size(),
                x1.size() * x2.size(),
                [&](const Graph& graph) {
                  check_graphs(graph, x1, "x1");
                  check_graphs(graph, x2, "x2");
                }};
  task.shapes.merge(shapes_of(x2, "x2"));
  return run<Scalar>(network, task, options,
                     [&](auto& computation, const auto& target) { computation.rectangular(x1, x2, target); });
}

template <typename Scalar>
GramResult<Scalar> gram_diagonal(const Network& network, const Inputs<Scalar>& x,
                                 const GramOptions& options) {
  check_finite(x, "x", options.threads);
  const GramTask task{shapes_of(x, "x"), x.channels(),
                      x.size(),          1,
                      x.size(),          [&](const Graph& graph) { check_graphs(graph, x, "x"); }};
  return run<Scalar>(network, task, options,
                     [&](auto& computation, const auto& target) { computation.diagonal(x, target); });
}

template GramResult<float> gram(const Network&, const Inputs<float>&, const GramOptions&);
template GramResult<double> gram(const Network&, const Inputs<double>&, const GramOptions&);
template GramResult<float> gram(const Network&, const Inputs<float>&, const Inputs<float>&,
                                const GramOptions&);
template GramResult<double> gram(const Network&, const Inputs<double>&, const Inputs<double>&,
                                 const GramOptions&);
template GramResult<float> gram_diagonal(const Network&, const Inputs<float>&, const GramOptions&);
template GramResult<double> gram_diagonal(const Network&, const Inputs<double>&, const GramOptions&);

}  // namespace widelimit
