#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "kernel/backends/cpu/backward/plan/has_backward_pass.hpp"
#include "kernel/backends/cpu/backward/plan/scalar_slopes.hpp"
#include "kernel/backends/cpu/backward/run/cotangent_checks.hpp"
#include "kernel/backends/cpu/backward/run/in_double.hpp"
#include "kernel/backends/cpu/backward/run/vjp_computation.hpp"
#include "kernel/run/gram_checks.hpp"
#include "kernel/run/gram_run.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram_gradient.hpp"
#include "widelimit/network/network_numbers.hpp"

namespace widelimit {
namespace {

constexpr const char* place = "gram_number_vjp";

/// The batches of a Gram matrix. If x2 is null, the pairs are those of x1 with itself.
template <typename Scalar>
struct Batches {
  const Inputs<Scalar>& x1;
  const Inputs<Scalar>* x2;

  [[nodiscard]] const Inputs<Scalar>& right() const { return x2 == nullptr ? x1 : *x2; }
};

/// The derivatives of L with respect to graph_scalars() of the plan's graph. Variances within an input's own pass
/// depend on the scalars too, so self_backward() is part of it.
template <typename Scalar>
std::vector<double> scalar_derivatives(const BackwardPlan& plan, const Batches<Scalar>& batches,
                                       const KernelCotangents<Scalar>& cotangents, const RunControl& run) {
  ScalarAdjoints scalars(plan.program.graph);
  const StopRequest stop(run.stop);
  VjpComputation<Scalar> computation(plan, run, &scalars);
  RecordedBatch<Scalar> first(plan, batches.x1, "x1", stop);
  computation.record(first);
  BatchAdjoints<Scalar> of_first(first.records, stop);
  const TileBatch<Scalar> left{batches.x1, first.records, of_first};
  if (batches.x2 == nullptr) {
    BatchAdjoints<Scalar> as_right(first.records, stop);
    computation.symmetric(left, {batches.x1, first.records, as_right}, cotangents);
    of_first.add(as_right);
    computation.self_backward(left);
  } else {
    RecordedBatch<Scalar> second(plan, *batches.x2, "x2", stop);
    computation.record(second);
    BatchAdjoints<Scalar> of_second(second.records, stop);
    const TileBatch<Scalar> right{*batches.x2, second.records, of_second};
    computation.rectangular(left, right, cotangents);
    computation.self_backward(left);
    computation.self_backward(right);
  }
  if constexpr (sizeof(Scalar) == sizeof(float))
    if (computation.is_near_ties()) {
      const auto x1 = copied_inputs<double, Scalar>({&batches.x1});
      if (batches.x2 == nullptr)
        return scalar_derivatives<double>(plan, {x1, nullptr}, in_double(cotangents), run);
      const auto x2 = copied_inputs<double, Scalar>({batches.x2});
      return scalar_derivatives<double>(plan, {x1, &x2}, in_double(cotangents), run);
    }
  return scalars.values();
}

/// The chain rule: sum over scalars of dL/ds ds/dnumber. Scalars on which the number has no influence are left out,
/// because their derivatives may be NaN (a weight variance of 0).
double chained(const std::vector<double>& slopes, const std::vector<double>& derivatives) {
  double sum = 0;
  for (std::size_t i = 0; i < slopes.size(); ++i)
    if (slopes[i] != 0) sum += slopes[i] * derivatives[i];
  return sum;
}

template <typename Scalar>
double contracted(const Matrix<double>& derivative, const Matrix<Scalar>& cotangent) {
  return cotangent.size() == 0 ? 0 : cotangent.template cast<double>().cwiseProduct(derivative).sum();
}

/// The derivative from differences of whole kernels in double. It serves every number, at the cost of computing all
/// kernels several times.
template <typename Scalar>
double by_differences(const Network& network, const Batches<Scalar>& batches,
                      const KernelCotangents<Scalar>& cotangents, const std::string& number,
                      const RunControl& run) {
  const bool with_nngp = cotangents.nngp.size() > 0, with_ntk = cotangents.ntk.size() > 0;
  const Kernels kernels = with_nngp && with_ntk ? Kernels::both : with_ntk ? Kernels::ntk : Kernels::nngp;
  const auto x1 = copied_inputs<double, Scalar>({&batches.x1});
  const NumberDirection direction{{number, 1}};
  const GramResult<double> derivative =
      batches.x2 == nullptr
          ? gram_jvp(network, x1, direction, kernels, run)
          : gram_jvp(network, x1, copied_inputs<double, Scalar>({batches.x2}), direction, kernels, run);
  return contracted(derivative.nngp, cotangents.nngp) + contracted(derivative.ntk, cotangents.ntk);
}

template <typename Scalar>
std::vector<double> by_numbers(const Network& network, const GramTask& task, const Batches<Scalar>& batches,
                               const KernelCotangents<Scalar>& cotangents,
                               const std::vector<std::string>& numbers, const RunControl& run) {
  static_cast<void>(NetworkNumbers(network, numbers));
  check_cotangents(cotangents, place, batches.x1.size(), batches.right().size());
  const BackwardInputs inputs{shapes_of(batches.x1, "x1"), shapes_of(batches.right(), "x2"),
                              batches.x1.channels(), task.masks};
  const auto graph_of = [&](const Network& changed) { return backward_graph(changed, inputs); };
  const Graph graph = graph_of(network);
  task.check(graph);
  if (task.pairs == 0) return std::vector<double>(numbers.size(), 0);
  std::vector<std::optional<std::vector<double>>> slopes(numbers.size());
  bool any = false;
  for (std::size_t i = 0; has_backward_pass(graph) && i < numbers.size(); ++i) {
    // Numbers that enter only by scalars of the graph share one backward pass. The others take differences, as do
    // numbers whose chain is not finite.
    slopes[i] = scalar_slopes(network, numbers[i], graph_of);
    any = any || slopes[i];
  }
  std::vector<double> of_scalars;
  if (any) {
    BackwardPlan plan = make_backward_plan(network, inputs, cotangents.ntk.size() > 0);
    plan.with_scalars = true;
    of_scalars = scalar_derivatives(plan, batches, cotangents, run);
  }
  std::vector<double> results;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double chain = slopes[i] ? chained(*slopes[i], of_scalars) : std::nan("");
    results.push_back(std::isfinite(chain) ? chain
                                           : by_differences(network, batches, cotangents, numbers[i], run));
  }
  return results;
}

}  // namespace

template <typename Scalar>
std::vector<double> gram_number_vjp(const Network& network, const Inputs<Scalar>& x,
                                    const KernelCotangents<Scalar>& cotangents,
                                    const std::vector<std::string>& numbers, const RunControl& run) {
  check_finite(x, "x", run.threads);
  return by_numbers<Scalar>(network, symmetric_task(network, x), {x, nullptr}, cotangents, numbers, run);
}

template <typename Scalar>
std::vector<double> gram_number_vjp(const Network& network, const Inputs<Scalar>& x1,
                                    const Inputs<Scalar>& x2, const KernelCotangents<Scalar>& cotangents,
                                    const std::vector<std::string>& numbers, const RunControl& run) {
  check_finite(x1, "x1", run.threads);
  check_finite(x2, "x2", run.threads);
  check_alike(x1, x2);
  return by_numbers<Scalar>(network, rectangular_task(network, x1, x2), {x1, &x2}, cotangents, numbers, run);
}

template std::vector<double> gram_number_vjp(const Network&, const Inputs<float>&,
                                             const KernelCotangents<float>&, const std::vector<std::string>&,
                                             const RunControl&);
template std::vector<double> gram_number_vjp(const Network&, const Inputs<double>&,
                                             const KernelCotangents<double>&, const std::vector<std::string>&,
                                             const RunControl&);
template std::vector<double> gram_number_vjp(const Network&, const Inputs<float>&, const Inputs<float>&,
                                             const KernelCotangents<float>&, const std::vector<std::string>&,
                                             const RunControl&);
template std::vector<double> gram_number_vjp(const Network&, const Inputs<double>&, const Inputs<double>&,
                                             const KernelCotangents<double>&, const std::vector<std::string>&,
                                             const RunControl&);

}  // namespace widelimit
