// The duals of nonlinearities by quadrature as devices compute them, entry by entry, against those of the CPU.
#include "kernel/backends/device/smooth_source.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernel/backends/device/device_choice.hpp"
#include "kernel/backends/device/smooth_table.hpp"
#include "kernel/backends/device/source_beginning.hpp"
#include "support/error_message.hpp"
#include "widelimit/numerics/activations.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"

namespace widelimit::testing::smooth_source_test {
namespace {

using numerics::Dual;
using numerics::quadrature_activation;
using numerics::QuadratureActivation;
using numerics::formula::Precision;

struct Entry {
  double p, q, c;
};

using Nonlinearity = std::shared_ptr<const QuadratureActivation>;

Nonlinearity as_quadrature(const numerics::ActivationPtr& activation) {
  return std::dynamic_pointer_cast<const QuadratureActivation>(activation);
}

/// smooth_dual() of some entries, whose variances are asked for together.
template <typename Scalar>
std::vector<Dual<double>> on_pocl(SmoothTable& table, const std::vector<Entry>& entries) {
  constexpr Precision precision = sizeof(Scalar) == sizeof(float) ? Precision::narrow : Precision::wide;
  const auto session = open_device("pocl", "a test");
  const std::string source = source_beginning(precision) + smooth_source(precision) + R"(
kernel void run(global const real* entries, global real* duals, global const real* table) {
  const ulong n = get_global_id(0);
  const real2 dual = smooth_dual(table, entries[3 * n], entries[3 * n + 1], entries[3 * n + 2]);
  duals[2 * n] = dual.x;
  duals[2 * n + 1] = dual.y;
})";
  std::vector<double> variances;
  std::vector<Scalar> numbers, duals(2 * entries.size());
  for (const auto& [p, q, c] : entries) {
    variances.insert(variances.end(), {p, q});
    for (const double number : {p, q, c}) numbers.push_back(static_cast<Scalar>(number));
  }
  table.require(variances);
  const std::vector<Scalar> tables(table.numbers().begin(), table.numbers().end());
  const auto bytes = [](const auto& all) { return all.size() * sizeof(Scalar); };
  const opencl::Buffer in = session->buffer(bytes(numbers)), out = session->buffer(bytes(duals)),
                       of_table = session->buffer(bytes(tables));
  opencl::Queue queue = session->queue();
  queue.write(in, numbers.data(), bytes(numbers));
  queue.write(of_table, tables.data(), bytes(tables));
  opencl::Kernel kernel = session->kernel(source, "run");
  kernel.set(0, in);
  kernel.set(1, out);
  kernel.set(2, of_table);
  queue.run(kernel, entries.size(), 1);
  queue.read(out, duals.data(), bytes(duals));
  std::vector<Dual<double>> all;
  for (std::size_t n = 0; n < entries.size(); ++n)
    all.push_back({static_cast<double>(duals[2 * n]), static_cast<double>(duals[2 * n + 1])});
  return all;
}

std::vector<Entry> entries_of(const std::vector<double>& variances) {
  std::vector<Entry> entries;
  for (const double p : variances)
    for (const double q : variances)
      for (const double rho : {-1.0, -0.999, -0.6, 0.0, 1e-4, 0.3, 0.8, 0.99, 0.99999, 1.0}) {
        // Numbers of float, so that both precisions are asked for the same.
        const auto narrow = [](double x) { return static_cast<double>(static_cast<float>(x)); };
        const double left = narrow(p), right = narrow(q);
        double c = narrow(rho * std::sqrt(left) * std::sqrt(right));
        if (left == right) c = narrow(rho * left);
        entries.push_back({left, right, c});
      }
  return entries;
}

/// The largest differences to the CPU, relative to root mean squares, of values and of slopes.
template <typename Scalar>
Dual<double> worst(const QuadratureActivation& phi, const std::vector<double>& variances) {
  SmoothTable table(phi, sizeof(Scalar) == sizeof(float) ? Precision::narrow : Precision::wide);
  const std::vector<Entry> entries = entries_of(variances);
  const auto computed = on_pocl<Scalar>(table, entries);
  Dual<double> most{0, 0};
  for (std::size_t n = 0; n < entries.size(); ++n) {
    const auto& [p, q, c] = entries[n];
    const Dual<double> exact = phi.dual(p, q, c), left = phi.dual(p, p, p), right = phi.dual(q, q, q);
    const double value = std::abs(computed[n].value - exact.value) / std::sqrt(left.value * right.value),
                 slope = std::abs(computed[n].derivative - exact.derivative) /
                         std::sqrt(left.derivative * right.derivative);
    if (!(value <= most.value)) most.value = value;
    if (!(slope <= most.derivative)) most.derivative = slope;
  }
  return most;
}

TEST_CASE("duals by quadrature of a device are those of the CPU") {
  struct Case {
    const char* name;
    Nonlinearity phi;
    std::vector<double> variances;
  };
  const std::vector<double> usual{1e-6, 0.02, 0.7, 1, 3, 20, 1000};
  const std::vector<Case> cases{
      {"tanh", as_quadrature(numerics::tanh()), usual},
      {"sigmoid", as_quadrature(numerics::sigmoid()), usual},
      {"silu", as_quadrature(numerics::silu()), usual},
      {"softplus", as_quadrature(numerics::softplus()), usual},
      {"elu",
       quadrature_activation([](double x) { return x > 0 ? x : std::expm1(x); },
                             [](double x) { return x > 0 ? 1 : std::exp(x); }),
       usual},
      {"kinks",
       quadrature_activation([](double x) { return std::min(std::max(x, -0.5), 1.5); }),
       {0.3, 1, 4}},
      {"a jump", quadrature_activation([](double x) { return x > 0.3 ? 1 + x : std::sin(x); }), {0.3, 1, 4}},
      {"growth", quadrature_activation([](double x) { return std::exp(x) + x; }), {0.3, 1, 4}},
  };
  for (const Case& of : cases) {
    CAPTURE(std::string(of.name));
    const Dual<double> wide = worst<double>(*of.phi, of.variances),
                       narrow = worst<float>(*of.phi, of.variances);
    CHECK(wide.value < 1e-12);
    CHECK(wide.derivative < 1e-12);
    CHECK(narrow.value < 3e-6);
    CHECK(narrow.derivative < 3e-6);
  }
}

}  // namespace
}  // namespace widelimit::testing::smooth_source_test
