#include "widelimit/kernel/gram_vjp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>
#include <xtensor/xbuilder.hpp>

#include "kernel/backends/cpu/backward/run/cotangent_checks.hpp"
#include "kernel/backends/cpu/backward/run/in_double.hpp"
#include "kernel/backends/cpu/backward/run/vjp_computation.hpp"
#include "kernel/backends/device/device_choice.hpp"
#include "kernel/run/gram_checks.hpp"
#include "kernel/run/gram_run.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

template <typename Scalar>
BackwardPlan plan_of(const Network& network, const GramTask& task, const Inputs<Scalar>& x1,
                     const Inputs<Scalar>& x2, const KernelCotangents<Scalar>& cotangents,
                     const std::string& device) {
  BackwardPlan plan =
      make_backward_plan(network, {shapes_of(x1, "x1"), shapes_of(x2, "x2"), x1.channels(), task.masks},
                         cotangents.ntk.size() > 0);
  task.check(plan.program.graph);
  if (!is_cpu(device))
    plan.device = std::make_shared<const AdjointPlan>(
        open_devices(device), plan.program, std::is_same_v<Scalar, double>, plan.with_ntk, plan.steep);
  return plan;
}

/// Returns the gradient if all of it is finite. Forward passes name the layer whose numbers leave the range; what
/// overflows in a backward pass is found only here.
template <typename Scalar>
xt::xarray<Scalar> finite_gradient(xt::xarray<Scalar> gradient, const char* name) {
  const auto found =
      std::find_if_not(gradient.begin(), gradient.end(), [](Scalar x) { return std::isfinite(x); });
  if (found == gradient.end()) return gradient;
  const auto place = static_cast<std::size_t>(std::distance(gradient.begin(), found));
  throw NumericalError(
      fmt::format("gram_vjp: the derivative by input {} of {} is {}: rescale the inputs, weights or "
                  "cotangents, use double, and look "
                  "at the derivatives of layers of your own",
                  place / (gradient.size() / gradient.shape(0)), name,
                  std::isnan(*found) ? "not a number" : fmt::format("{}", *found)));
}

/// The derivative, all zeros, of a result without entries.
template <typename Scalar>
xt::xarray<Scalar> no_gradient(const Inputs<Scalar>& x) {
  std::vector<std::size_t> dimensions(x.axes() + 2, 0);
  // The shape that input_gradient() would have: ragged inputs are padded to the largest sizes.
  dimensions.front() = static_cast<std::size_t>(x.size());
  dimensions.back() = static_cast<std::size_t>(x.channels());
  for (Index i = 0; i < (x.is_ragged() ? std::max<Index>(x.size(), 1) : 1); ++i)
    for (std::size_t k = 0; k < x.axes(); ++k)
      dimensions[k + 1] = std::max(dimensions[k + 1], static_cast<std::size_t>(x.shape(i)[k]));
  return xt::zeros<Scalar>(dimensions);
}

enum class Pairs { all, diagonal };

template <typename Scalar>
xt::xarray<Scalar> of_one_batch(const Network& network, const Inputs<Scalar>& x,
                                const KernelCotangents<Scalar>& cotangents, const RunControl& run,
                                Pairs pairs, const std::string& device = {}) {
  check_finite(x, "x", run.threads);
  check_cotangents(cotangents, "gram_vjp", x.size(), pairs == Pairs::all ? x.size() : 1);
  const GramTask task = pairs == Pairs::all ? symmetric_task(network, x) : diagonal_task(network, x);
  const BackwardPlan plan = plan_of(network, task, x, x, cotangents, device);
  if (task.pairs == 0) return no_gradient(x);
  const StopRequest stop(run.stop);
  RecordedBatch<Scalar> batch(plan, x, "x", stop);
  VjpComputation<Scalar> computation(plan, run);
  computation.record(batch);
  // An input is a left one in some tiles and a right one in others, which run at the same time. Separate adjoints for
  // the two roles keep threads from adding to one place.
  BatchAdjoints<Scalar> adjoints(batch.records, stop), as_right(batch.records, stop);
  const TileBatch<Scalar> left{x, batch.records, adjoints}, right{x, batch.records, as_right};
  if (pairs == Pairs::all)
    computation.symmetric(left, right, cotangents);
  else
    computation.diagonal(left, right, cotangents);
  // Once all pairs have contributed, each input with itself passes backward, from the adjoints of its record to its
  // features.
  adjoints.add(as_right);
  computation.self_backward(left);
  if constexpr (sizeof(Scalar) == sizeof(float))
    if (computation.is_near_ties())
      return finite_gradient(
          rounded<Scalar>(of_one_batch<double>(network, copied_inputs<double, Scalar>({&x}),
                                               in_double(cotangents), run, pairs, device)),
          "x");
  return finite_gradient(input_gradient(plan, x, adjoints), "x");
}

}  // namespace

template <typename Scalar>
GramVjp<Scalar> gram_vjp(const Network& network, const Inputs<Scalar>& x1, const Inputs<Scalar>& x2,
                         const KernelCotangents<Scalar>& cotangents, VjpInputs wanted, const RunControl& run,
                         const std::string& device) {
  check_finite(x1, "x1", run.threads);
  check_finite(x2, "x2", run.threads);
  check_alike(x1, x2);
  check_cotangents(cotangents, "gram_vjp", x1.size(), x2.size());
  const GramTask task = rectangular_task(network, x1, x2);
  const BackwardPlan plan = plan_of(network, task, x1, x2, cotangents, device);
  if (task.pairs == 0) {
    GramVjp<Scalar> nothing;
    if (wanted != VjpInputs::x2) nothing.x1 = no_gradient(x1);
    if (wanted != VjpInputs::x1) nothing.x2 = no_gradient(x2);
    return nothing;
  }
  const StopRequest stop(run.stop);
  RecordedBatch<Scalar> first(plan, x1, "x1", stop), second(plan, x2, "x2", stop);
  VjpComputation<Scalar> computation(plan, run);
  // States of all inputs are recorded before any pair, because pairs of both batches read them.
  computation.record(first);
  computation.record(second);
  BatchAdjoints<Scalar> of_first(first.records, stop), of_second(second.records, stop);
  const TileBatch<Scalar> left{x1, first.records, of_first, wanted != VjpInputs::x2},
      right{x2, second.records, of_second, wanted != VjpInputs::x1};
  computation.rectangular(left, right, cotangents);
  // Adjoints of the states are complete only after all pairs. Each input with itself then passes them on to its
  // features.
  computation.self_backward(left);
  computation.self_backward(right);
  GramVjp<Scalar> derivatives;
  if constexpr (sizeof(Scalar) == sizeof(float))
    if (computation.is_near_ties()) {
      const GramVjp<double> wide =
          gram_vjp<double>(network, copied_inputs<double, Scalar>({&x1}),
                           copied_inputs<double, Scalar>({&x2}), in_double(cotangents), wanted, run, device);
      if (left.wanted) derivatives.x1 = finite_gradient(rounded<Scalar>(wide.x1), "x1");
      if (right.wanted) derivatives.x2 = finite_gradient(rounded<Scalar>(wide.x2), "x2");
      return derivatives;
    }
  if (left.wanted) derivatives.x1 = finite_gradient(input_gradient(plan, x1, of_first), "x1");
  if (right.wanted) derivatives.x2 = finite_gradient(input_gradient(plan, x2, of_second), "x2");
  return derivatives;
}

template <typename Scalar>
GramVjp<Scalar> gram_vjp(const Network& network, const Inputs<Scalar>& x1, const Inputs<Scalar>& x2,
                         const KernelCotangents<Scalar>& cotangents, const RunControl& run,
                         const std::string& device) {
  return gram_vjp(network, x1, x2, cotangents, VjpInputs::both, run, device);
}

template <typename Scalar>
std::string device_vjp_gap(const Network& network, const Inputs<Scalar>& x) {
  const GramTask task = symmetric_task(network, x);
  return to_string(adjoint_gaps(plan_of(network, task, x, x, KernelCotangents<Scalar>{}, {}).program));
}

template <typename Scalar>
xt::xarray<Scalar> gram_vjp(const Network& network, const Inputs<Scalar>& x,
                            const KernelCotangents<Scalar>& cotangents, const RunControl& run,
                            const std::string& device) {
  return of_one_batch(network, x, cotangents, run, Pairs::all, device);
}

template <typename Scalar>
xt::xarray<Scalar> gram_diagonal_vjp(const Network& network, const Inputs<Scalar>& x,
                                     const KernelCotangents<Scalar>& cotangents, const RunControl& run) {
  return of_one_batch(network, x, cotangents, run, Pairs::diagonal);
}

template std::string device_vjp_gap(const Network&, const Inputs<float>&);
template std::string device_vjp_gap(const Network&, const Inputs<double>&);
template GramVjp<float> gram_vjp(const Network&, const Inputs<float>&, const Inputs<float>&,
                                 const KernelCotangents<float>&, const RunControl&, const std::string&);
template GramVjp<float> gram_vjp(const Network&, const Inputs<float>&, const Inputs<float>&,
                                 const KernelCotangents<float>&, VjpInputs, const RunControl&,
                                 const std::string&);
template GramVjp<double> gram_vjp(const Network&, const Inputs<double>&, const Inputs<double>&,
                                  const KernelCotangents<double>&, VjpInputs, const RunControl&,
                                  const std::string&);
template GramVjp<double> gram_vjp(const Network&, const Inputs<double>&, const Inputs<double>&,
                                  const KernelCotangents<double>&, const RunControl&, const std::string&);
template xt::xarray<float> gram_vjp(const Network&, const Inputs<float>&, const KernelCotangents<float>&,
                                    const RunControl&, const std::string&);
template xt::xarray<double> gram_vjp(const Network&, const Inputs<double>&, const KernelCotangents<double>&,
                                     const RunControl&, const std::string&);
template xt::xarray<float> gram_diagonal_vjp(const Network&, const Inputs<float>&,
                                             const KernelCotangents<float>&, const RunControl&);
template xt::xarray<double> gram_diagonal_vjp(const Network&, const Inputs<double>&,
                                              const KernelCotangents<double>&, const RunControl&);

}  // namespace widelimit
