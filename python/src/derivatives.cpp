#include "derivatives.hpp"

#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <optional>
#include <utility>

#include "arrays.hpp"
#include "batches.hpp"
#include "interruptible.hpp"
#include "kernels.hpp"
#include "widelimit/kernel/gram_gradient.hpp"
#include "widelimit/kernel/gram_vjp.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using Progress = std::optional<std::function<void(std::ptrdiff_t, std::ptrdiff_t)>>;

RunControl control_of(int threads, const Progress& progress) {
  RunControl run;
  run.threads = threads;
  if (progress)
    run.progress = [call = *progress](std::ptrdiff_t done, std::ptrdiff_t total) {
      const nb::gil_scoped_acquire locked;
      call(done, total);
    };
  return run;
}

template <typename Scalar>
KernelCotangents<Scalar> cotangents_of(const std::optional<Array<Scalar>>& nngp,
                                       const std::optional<Array<Scalar>>& ntk) {
  KernelCotangents<Scalar> cotangents;
  if (nngp) cotangents.nngp = matrix_of(*nngp);
  if (ntk) cotangents.ntk = matrix_of(*ntk);
  return cotangents;
}

/// An array that owns its numbers.
template <typename Scalar>
ArrayObject<Scalar> array_of_entries(xt::xarray<Scalar> array) {
  auto* owned = new xt::xarray<Scalar>(std::move(array));
  const nb::capsule owner(owned,
                          [](void* pointer) noexcept { delete static_cast<xt::xarray<Scalar>*>(pointer); });
  return nb::borrow<ArrayObject<Scalar>>(
      nb::cast(NumpyArray<Scalar>(owned->data(), owned->dimension(), owned->shape().data(), owner)));
}

VjpInputs inputs_named(const std::string& wanted) {
  if (wanted == "both") return VjpInputs::both;
  if (wanted == "x1") return VjpInputs::x1;
  if (wanted == "x2") return VjpInputs::x2;
  throw ArgumentError("gram_vjp: wanted: expected 'both', 'x1' or 'x2', got '" + wanted + "'");
}

/// x2 null: of the symmetric kernels.
template <typename Scalar>
std::vector<double> gram_number_vjp_of(const Network& network, const Batch<Scalar>& x1,
                                       const Batch<Scalar>* x2, const std::optional<Array<Scalar>>& nngp,
                                       const std::optional<Array<Scalar>>& ntk,
                                       const std::vector<std::string>& numbers, int threads) {
  const auto cotangents = cotangents_of<Scalar>(nngp, ntk);
  return run_interruptibly([&](std::stop_token stop) {
    const RunControl run{.threads = threads, .stop = std::move(stop)};
    return x2 == nullptr ? gram_number_vjp(network, x1.inputs, cotangents, numbers, run)
                         : gram_number_vjp(network, x1.inputs, x2->inputs, cotangents, numbers, run);
  });
}

template <typename Scalar>
void bind_products_of(nb::module_& module) {
  using Cotangent = std::optional<Array<Scalar>>;
  module.def(
      "gram_vjp",
      [](const Network& network, const Batch<Scalar>& x1, const Batch<Scalar>& x2, const Cotangent& nngp,
         const Cotangent& ntk, const std::string& wanted, int threads, const Progress& progress,
         const std::string& device) {
        RunControl run = control_of(threads, progress);
        const auto cotangents = cotangents_of<Scalar>(nngp, ntk);
        const VjpInputs inputs = inputs_named(wanted);
        GramVjp<Scalar> result = run_interruptibly([&](std::stop_token stop) {
          run.stop = std::move(stop);
          return gram_vjp(network, x1.inputs, x2.inputs, cotangents, inputs, run, device);
        });
        const nb::object none = nb::none();
        return nb::make_tuple(inputs == VjpInputs::x2 ? none : array_of_entries(std::move(result.x1)),
                              inputs == VjpInputs::x1 ? none : array_of_entries(std::move(result.x2)));
      },
      "network"_a, "x1"_a, "x2"_a, "nngp"_a.none(), "ntk"_a.none(), "wanted"_a, "threads"_a,
      "progress"_a.none(), "device"_a);
  module.def(
      "device_vjp_gap",
      [](const Network& network, const Batch<Scalar>& x) { return device_vjp_gap(network, x.inputs); },
      "network"_a, "x"_a);
  module.def("gram_number_vjp", &gram_number_vjp_of<Scalar>, "network"_a, "x1"_a, "x2"_a.none(),
             "nngp"_a.none(), "ntk"_a.none(), "numbers"_a, "threads"_a);
  const auto bind_of_one_batch = [&module](const char* name, auto function) {
    module.def(
        name,
        [function](const Network& network, const Batch<Scalar>& x, const Cotangent& nngp,
                   const Cotangent& ntk, int threads, const Progress& progress, const std::string& device) {
          RunControl run = control_of(threads, progress);
          const auto cotangents = cotangents_of<Scalar>(nngp, ntk);
          return array_of_entries(run_interruptibly([&](std::stop_token stop) {
            run.stop = std::move(stop);
            return function(network, x.inputs, cotangents, run, device);
          }));
        },
        "network"_a, "x"_a, "nngp"_a.none(), "ntk"_a.none(), "threads"_a, "progress"_a.none(),
        "device"_a = "");
  };
  bind_of_one_batch(
      "gram_vjp_of_one",
      [](const Network& network, const Inputs<Scalar>& x, const auto& cotangents, const RunControl& run,
         const std::string& device) { return gram_vjp(network, x, cotangents, run, device); });
  bind_of_one_batch(
      "gram_diagonal_vjp",
      [](const Network& network, const Inputs<Scalar>& x, const auto& cotangents, const RunControl& run,
         const std::string& /*device*/) { return gram_diagonal_vjp(network, x, cotangents, run); });
}

/// (nngp, ntk), None what was not asked for.
nb::tuple gram_jvp_of(const Network& network, const Batch<double>& x1, const Batch<double>* x2,
                      const NumberDirection& direction, const std::string& kernels, int threads,
                      const Progress& progress) {
  RunControl run = control_of(threads, progress);
  const Kernels wanted = kernels_named(kernels);
  auto result = run_interruptibly([&](std::stop_token stop) {
    run.stop = std::move(stop);
    return x2 == nullptr ? gram_jvp(network, x1.inputs, direction, wanted, run)
                         : gram_jvp(network, x1.inputs, x2->inputs, direction, wanted, run);
  });
  return nb::make_tuple(array_or_none(std::move(result.nngp), wanted != Kernels::ntk),
                        array_or_none(std::move(result.ntk), wanted != Kernels::nngp));
}

}  // namespace

void bind_derivatives(nb::module_& module) {
  bind_products_of<float>(module);
  bind_products_of<double>(module);
  module.def("gram_jvp", &gram_jvp_of, "network"_a, "x1"_a, "x2"_a.none(), "direction"_a, "kernels"_a,
             "threads"_a, "progress"_a.none());
}

}  // namespace widelimit::python
