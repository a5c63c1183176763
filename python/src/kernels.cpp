#include "kernels.hpp"

#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "arrays.hpp"
#include "batches.hpp"
#include "devices.hpp"
#include "interruptible.hpp"
#include "widelimit/kernel/explain.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/store/gram_store.hpp"
#include "widelimit/store/stored_gram.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using Progress = std::optional<std::function<void(Index, Index)>>;

GramOptions options_of(const std::string& kernels, int threads, const Progress& progress,
                       bool exact_attention = false) {
  GramOptions options;
  options.exact_attention = exact_attention;
  options.kernels = kernels_named(kernels);
  options.threads = threads;
  options.device = chosen_device();
  if (progress)
    options.progress = [call = *progress](const GramProgress& now) {
      const nb::gil_scoped_acquire locked;
      call(now.done, now.total);
    };
  return options;
}

/// (nngp, ntk, nngp_error, ntk_error), None what there is not.
template <typename Scalar>
nb::tuple arrays_of(GramResult<Scalar> result, Kernels wanted) {
  return nb::make_tuple(array_or_none(std::move(result.nngp), wanted != Kernels::ntk),
                        array_or_none(std::move(result.ntk), wanted != Kernels::nngp),
                        array_or_none(std::move(result.nngp_error)),
                        array_or_none(std::move(result.ntk_error)));
}

template <typename Scalar>
nb::tuple gram_of(const Network& network, const Batch<Scalar>& x1, const Batch<Scalar>* x2,
                  const std::string& kernels, int threads, const Progress& progress, bool exact_attention) {
  GramOptions options = options_of(kernels, threads, progress, exact_attention);
  ShortenedAttention shortened;
  options.shortened_attention = &shortened;
  const nb::tuple arrays = arrays_of(run_interruptibly([&](std::stop_token stop) {
                                       options.stop = std::move(stop);
                                       return x2 == nullptr ? gram(network, x1.inputs, options)
                                                            : gram(network, x1.inputs, x2->inputs, options);
                                     }),
                                     options.kernels);
  return nb::make_tuple(arrays,
                        nb::make_tuple(shortened.inputs, shortened.largest_rank, shortened.largest_tail));
}

/// The same in a store, whose tiles are kept. What the store reports are warnings, once it is done.
template <typename Scalar>
nb::tuple stored_gram_of(const Network& network, const Batch<Scalar>& x1, const Batch<Scalar>* x2,
                         const std::string& kernels, int threads, const Progress& progress,
                         const std::string& folder, bool exact_attention) {
  std::vector<std::string> reports;
  store::StoreOptions options;
  options.gram = options_of(kernels, threads, {}, exact_attention);
  options.report = [&reports](const std::string& message) { reports.push_back(message); };
  if (progress)
    options.progress = [call = *progress](const store::StoreProgress& now) {
      const nb::gil_scoped_acquire locked;
      call(now.pairs_done + now.pairs_computed, now.pairs);
    };
  auto result = run_interruptibly([&](std::stop_token stop) {
    options.gram.stop = std::move(stop);
    return store::stored_gram(folder, network, x1.inputs, x2 == nullptr ? nullptr : &x2->inputs, options);
  });
  for (const std::string& report : reports)
    if (PyErr_WarnEx(PyExc_RuntimeWarning, report.c_str(), 1) != 0) throw nb::python_error();
  return arrays_of(std::move(result), options.gram.kernels);
}

template <typename Scalar>
nb::tuple diagonal_of(const Network& network, const Batch<Scalar>& x, const std::string& kernels, int threads,
                      bool exact_attention) {
  GramOptions options = options_of(kernels, threads, {}, exact_attention);
  return arrays_of(run_interruptibly([&](std::stop_token stop) {
                     options.stop = std::move(stop);
                     return gram_diagonal(network, x.inputs, options);
                   }),
                   options.kernels);
}

template <typename Scalar>
void bind_of(nb::module_& module) {
  module.def("gram", &gram_of<Scalar>, "network"_a, "x1"_a, "x2"_a.none(), "kernels"_a, "threads"_a,
             "progress"_a.none(), "exact_attention"_a);
  module.def("stored_gram", &stored_gram_of<Scalar>, "network"_a, "x1"_a, "x2"_a.none(), "kernels"_a,
             "threads"_a, "progress"_a.none(), "folder"_a, "exact_attention"_a);
  module.def("gram_diagonal", &diagonal_of<Scalar>, "network"_a, "x"_a, "kernels"_a, "threads"_a,
             "exact_attention"_a);
}

std::string explained(const Network& network, const Shape& shape, Index channels, const std::string& kernels,
                      const std::string& precision, double measure_seconds) {
  GramOptions options = options_of(kernels, 0, {});
  return run_interruptibly([&](std::stop_token stop) {
    options.stop = std::move(stop);
    return to_string(precision == "float"
                         ? explain<float>(network, shape, channels, options, measure_seconds)
                         : explain<double>(network, shape, channels, options, measure_seconds));
  });
}

}  // namespace

Kernels kernels_named(const std::string& name) {
  return name == "nngp" ? Kernels::nngp : name == "ntk" ? Kernels::ntk : Kernels::both;
}

void bind_kernels(nb::module_& module) {
  bind_of<float>(module);
  bind_of<double>(module);
  module.def("explain", &explained, "network"_a, "shape"_a, "channels"_a, "kernels"_a, "precision"_a,
             "measure_seconds"_a);
}

}  // namespace widelimit::python
