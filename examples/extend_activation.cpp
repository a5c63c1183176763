// Your own nonlinearity, in two ways: by phi and phi' alone (quadrature does the rest), or by the dual in
// closed form. Here phi(x) = x / sqrt(1 + x^2), which has no closed dual, and phi(x) = x^2 / 2, which has
// one.
#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <vector>

#include "widelimit/finite/check_limit.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/laws.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"

namespace {

using namespace widelimit;

/// Given by phi and phi' only. Kinks and jumps would be declared as breakpoints.
numerics::ActivationPtr softsign() {
  return numerics::quadrature_activation([](double x) { return x / std::sqrt(1 + x * x); },
                                         [](double x) { return std::pow(1 + x * x, -1.5); });
}

/// phi(x) = x^2 / 2: E[phi phi] = (pq + 2 c^2) / 4 by Isserlis' theorem, and E[phi' phi'] = E[u v] = c.
class HalfSquare final : public numerics::Activation {
 public:
  double value(double x) const override { return x * x / 2; }
  double derivative(double x) const override { return x; }
  numerics::Dual<double> dual(double p, double q, double c) const override {
    return {(p * q + 2 * c * c) / 4, c};
  }
};

/// True if the layer has the properties that all layers must have.
bool obeys_laws(const Layer& layer, const LawOptions& options) {
  const LawReport report = check_laws(layer, options);
  fmt::print("{}:\n{}\n", layer.kind(), to_string(report));
  return report.passed();
}

/// True if sampled networks approach the limit. phi and phi' are all that finite networks need.
bool approaches_its_limit(const Layer& layer, bool full) {
  finite::LimitOptions options;
  options.widths = full ? std::vector<Index>{128, 256, 512} : std::vector<Index>{32, 64, 128};
  const finite::LimitReport report = finite::check_limit(layer, options);
  fmt::print("{}\n", to_string(report));
  return report.passed();
}

}  // namespace

int main(int argc, char** argv) {
  const bool full = argc > 1 && std::string_view(argv[1]) == "--full";  // wide networks, for minutes
  const Layer by_quadrature = layers::nonlinearity("softsign", softsign());
  const Layer closed = layers::nonlinearity("half_square", std::make_shared<HalfSquare>());

  // It can be used in a network like any other layer.
  Matrix<double> x(3, 2);
  x << 1, 0, 0.6, 0.8, -1, 0.2;
  for (const Layer& layer : {by_quadrature, closed}) {
    const Network network(layer.kind(), {layers::dense({1.5, 0.1}), layer, layers::dense()});
    const auto kernels = gram<double>(network, x);
    fmt::print("{}nngp of inputs 0 and 1: {:.6f}, ntk: {:.6f}\n\n", network.describe({}), kernels.nngp(0, 1),
               kernels.ntk(0, 1));
  }

  LawOptions quadrature;
  quadrature.shapes = {{}, {3}};       // quadrature is slow where correlations are strong,
  quadrature.double_tolerance = 1e-8;  // and exact to about 1e-10
  const bool passed = obeys_laws(closed, {}) && obeys_laws(by_quadrature, quadrature) &&
                      approaches_its_limit(closed, full) && approaches_its_limit(by_quadrature, full);
  return passed ? 0 : 1;
}
