#include "finite.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "arrays.hpp"
#include "batches.hpp"
#include "interruptible.hpp"
#include "widelimit/finite/check_limit.hpp"
#include "widelimit/finite/empirical_kernel.hpp"
#include "widelimit/finite/finite_network.hpp"
#include "widelimit/kernel/laws.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

using finite::FiniteNetwork;
using Numbers = Array<double>;

void make_network(FiniteNetwork<double>* self, const Network& network, const Shape& shape, Index channels,
                  Index hidden, Index outputs, std::vector<Index> widths, Index heads, std::uint64_t seed,
                  int threads) {
  const finite::Widths channels_of_layers{.hidden = hidden, .outputs = outputs, .layers = std::move(widths)};
  new (self) FiniteNetwork<double>(run_interruptibly([&](const std::stop_token& stop) {
    return FiniteNetwork<double>(network, {shape, channels}, channels_of_layers, {.count = heads}, seed,
                                 threads, stop);
  }));
}

DoubleArrayObject forward(const FiniteNetwork<double>& network, const Batch<double>& x, std::uint64_t pass) {
  return array_of(run_interruptibly(
      [&](const std::stop_token& stop) { return network.forward(x.inputs, pass, 0, stop); }));
}

DoubleArrayObject jacobian(const FiniteNetwork<double>& network, const Batch<double>& x, Index output,
                           std::uint64_t pass, Index first_input) {
  return array_of(run_interruptibly([&](const std::stop_token& stop) {
    return network.jacobian(x.inputs, output, stop, pass, first_input);
  }));
}

DoubleArrayObject vector_jacobian(const FiniteNetwork<double>& network, const Batch<double>& x,
                                  const Numbers& weights, std::uint64_t pass) {
  const Eigen::Map<const Matrix<double>> rows(weights.data(), static_cast<Index>(weights.shape(0)),
                                              static_cast<Index>(weights.shape(1)));
  if (rows.rows() != x.inputs.size() || rows.cols() != network.outputs())
    throw ArgumentError(fmt::format("vector_jacobian: weights: expected [{}, {}], got [{}, {}]",
                                    x.inputs.size(), network.outputs(), rows.rows(), rows.cols()));
  return array_of(run_interruptibly([&](const std::stop_token& stop) {
    return network.gradient(
        x.inputs, pass,
        [&](Index first, const Matrix<double>& outputs) {
          return Matrix<double>(rows.middleRows(first, outputs.rows()));
        },
        stop);
  }));
}

DoubleArrayObject input_jacobian(const FiniteNetwork<double>& network, const Batch<double>& x, Index output) {
  return array_of(run_interruptibly(
      [&](const std::stop_token& stop) { return network.input_jacobian(x.inputs, output, stop); }));
}

/// Without x2 of all pairs of one batch: dropout draws once an input.
DoubleArrayObject nngp(const FiniteNetwork<double>& network, const Batch<double>& x1, const Batch<double>* x2,
                       std::uint64_t pass) {
  return array_of(run_interruptibly([&](const std::stop_token& stop) {
    return x2 == nullptr ? finite::empirical_nngp(network, x1.inputs, stop, pass)
                         : finite::empirical_nngp(network, x1.inputs, x2->inputs, stop, pass);
  }));
}

DoubleArrayObject ntk(const FiniteNetwork<double>& network, const Batch<double>& x1, const Batch<double>* x2,
                      std::uint64_t pass) {
  return array_of(run_interruptibly([&](const std::stop_token& stop) {
    const finite::NtkOptions options{.stop = stop, .pass = pass};
    return x2 == nullptr ? finite::empirical_ntk(network, x1.inputs, options)
                         : finite::empirical_ntk(network, x1.inputs, x2->inputs, options);
  }));
}

/// Whether the limit passed, and the table.
nb::tuple checked(const Network& network, const std::vector<Index>& widths, Index draws,
                  const std::vector<Shape>& shapes, Index channels, std::uint64_t seed) {
  finite::LimitOptions options;
  options.widths = widths;
  options.draws = draws;
  options.shapes = shapes;
  options.channels = channels;
  options.seed = seed;
  const finite::LimitReport report = run_interruptibly([&](std::stop_token stop) {
    options.stop = std::move(stop);
    return finite::check_limit(network, options);
  });
  return nb::make_tuple(report.passed(), to_string(report));
}

/// Whether all laws hold, and the table.
template <typename Subject>
nb::tuple laws_of(const Subject& subject, const std::vector<Shape>& shapes, Index channels, Index inputs,
                  std::uint64_t seed) {
  const LawOptions options{.shapes = shapes, .channels = channels, .inputs = inputs, .seed = seed};
  const LawReport report =
      run_interruptibly([&](const std::stop_token&) { return check_laws(subject, options); });
  return nb::make_tuple(report.passed(), to_string(report));
}

}  // namespace

void bind_finite(nb::module_& module) {
  nb::class_<FiniteNetwork<double>>(
      module, "FiniteNetwork",
      "A network of finite width in the NTK parametrisation, in double.\n\n"
      "shape, channels: of an input; hidden: channels wherever the network leaves them open, or widths: one "
      "number for "
      "every such place; outputs: after the last layer; heads: of attention. Equal seeds give equal bits.")
      .def("__init__", &make_network, "network"_a, "shape"_a, "channels"_a, "hidden"_a = 256, "outputs"_a = 1,
           "widths"_a = std::vector<Index>{}, "heads"_a = 8, "seed"_a = 0, "threads"_a = 0)
      .def_prop_ro("parameter_count", &FiniteNetwork<double>::parameter_count)
      .def_prop_ro("outputs", &FiniteNetwork<double>::outputs)
      .def_prop_rw(
          "parameters",
          [](const FiniteNetwork<double>& self) { return array_of(Vector<double>(self.parameters())); },
          [](FiniteNetwork<double>& self, const Numbers& parameters) {
            self.set_parameters(
                Eigen::Map<const Vector<double>>(parameters.data(), static_cast<Index>(parameters.size())));
          },
          "Independent standard normal numbers at the start, layer after layer.")
      .def("forward", &forward, "x"_a, "draw"_a = 0,
           "Outputs [n, outputs]; `draw` numbers the draws of dropout.")
      .def("jacobian", &jacobian, "x"_a, "output"_a = 0, "draw"_a = 0, "first_input"_a = 0,
           "Gradients of one output at every input, [n, parameter_count]; `draw` as in forward(), inputs "
           "numbered from "
           "first_input.")
      .def("vector_jacobian", &vector_jacobian, "x"_a, "weights"_a, "draw"_a = 0,
           "The gradient of the sum of weights [n, outputs] times outputs, [parameter_count].")
      .def("input_jacobian", &input_jacobian, "x"_a, "output"_a = 0,
           "Gradients of one output by the inputs, [n, numbers of an input].")
      .def("nngp", &nngp, "x1"_a, "x2"_a.none(), "draw"_a = 0,
           "Products of outputs, averaged over outputs, [n1, n2].")
      .def("ntk", &ntk, "x1"_a, "x2"_a.none(), "draw"_a = 0,
           "The empirical NTK, averaged over outputs, [n1, n2].");

  module.def("check_laws", &laws_of<Network>, "subject"_a, "shapes"_a, "channels"_a, "inputs"_a, "seed"_a);
  module.def("check_laws", &laws_of<Layer>, "subject"_a, "shapes"_a, "channels"_a, "inputs"_a, "seed"_a);
  module.def("check_limit", &checked, "network"_a, "widths"_a, "draws"_a, "shapes"_a, "channels"_a, "seed"_a);
}

}  // namespace widelimit::python
