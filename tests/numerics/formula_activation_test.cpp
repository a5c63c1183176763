// A nonlinearity of a user's own, written once as a template: kernels, derivatives, devices, prints and stores.
#include "widelimit/numerics/formula_activation.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>
#include <string>
#include <xtensor/xarray.hpp>

#include "network/network_identity.hpp"
#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/gram_vjp.hpp"
#include "widelimit/kernel/laws.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/numerics/activations.hpp"

namespace widelimit::testing::own_formulas_test {
namespace {

using namespace numerics::formula;  // NOLINT: the functions of formulas

/// erf(rate x), whose dual is (2 / pi) arcsin(2 r c / sqrt((1 + 2 r p)(1 + 2 r q))), r the square of the rate.
struct OwnErf {
  double rate;

  template <typename N>
  [[nodiscard]] N value(const N& x) const {
    return error_function(N(rate) * x);
  }
  template <typename N>
  [[nodiscard]] N dual(const N& p, const N& q, const N& c) const {
    const N twice = N(2 * rate * rate), one = N(1);
    const N square = (one + twice * p) * (one + twice * q) - twice * c * (twice * c);
    return N(2 * std::numbers::inv_pi) * angle(twice * c, root(square));
  }
};

/// tanh, of which only phi is given.
struct OwnTanh {
  template <typename N>
  [[nodiscard]] N value(const N& x) const {
    return hyperbolic_tangent(x);
  }
};

Layer own_erf(double rate) {
  return layers::nonlinearity("own_erf", numerics::formula_activation(OwnErf{rate}));
}

Network network_of(const Layer& nonlinearity) {
  return Network({layers::conv({.filter = {3}, .weight_variance = 1.5}), nonlinearity,
                  layers::conv({.filter = {3}}), nonlinearity, layers::global_average_pool(),
                  layers::dense()});
}

Inputs<double> inputs() { return Inputs<double>(random_inputs<double>(3, {4, 6, 2})); }

void check_near(const Matrix<double>& computed, const Matrix<double>& expected, double error) {
  CHECK((computed - expected).cwiseAbs().maxCoeff() <= error * expected.cwiseAbs().maxCoeff());
}

TEST_CASE("a user's formula gives what the same nonlinearity of the library gives") {
  const auto activation = numerics::formula_activation(OwnErf{0.7}), built_in = numerics::erf(1, 0.7, 0, 0);
  CHECK(activation->value(0.3) == doctest::Approx(std::erf(0.21)).epsilon(1e-15));
  CHECK(activation->derivative(0.3) == doctest::Approx(built_in->derivative(0.3)).epsilon(1e-14));
  const auto slopes = activation->slopes(0.8, 1.3, 0.4), expected = built_in->slopes(0.8, 1.3, 0.4);
  CHECK(slopes.dual.value == doctest::Approx(expected.dual.value).epsilon(1e-13));
  CHECK(slopes.dual.derivative == doctest::Approx(expected.dual.derivative).epsilon(1e-13));
  CHECK(slopes.left.value == doctest::Approx(expected.left.value).epsilon(1e-12));
  CHECK(slopes.left.derivative == doctest::Approx(expected.left.derivative).epsilon(1e-12));
  CHECK(slopes.right.derivative == doctest::Approx(expected.right.derivative).epsilon(1e-12));
  CHECK(slopes.derivative_in_c == doctest::Approx(expected.derivative_in_c).epsilon(1e-12));
  CHECK(activation->self_slopes(0.8).slope.derivative ==
        doctest::Approx(built_in->self_slopes(0.8).slope.derivative).epsilon(1e-12));
}

TEST_CASE("networks with a user's formula have kernels and derivatives, on a device too") {
  const Network own = network_of(own_erf(0.7)), built_in = network_of(layers::erf(1, 0.7, 0, 0));
  const auto expected = gram(built_in, inputs());
  check_near(gram(own, inputs()).ntk, expected.ntk, 1e-12);
  GramOptions options;
  options.device = "pocl";
  check_near(gram(own, inputs(), options).nngp, expected.nngp, 1e-12);
  check_near(gram(own, inputs(), options).ntk, expected.ntk, 1e-12);
  CHECK(check_laws(own_erf(0.7)).passed());
}

TEST_CASE("phi alone is a formula, by quadrature") {
  const auto own = numerics::formula_activation(OwnTanh{}), built_in = numerics::tanh();
  CHECK(own->derivative(0.4) == doctest::Approx(built_in->derivative(0.4)).epsilon(1e-14));
  CHECK(own->dual(0.8, 1.3, 0.4).derivative ==
        doctest::Approx(built_in->dual(0.8, 1.3, 0.4).derivative).epsilon(1e-10));
}

TEST_CASE("a formula tells networks apart, although files cannot be read back to it") {
  CHECK(network_identity(network_of(own_erf(0.7))) == network_identity(network_of(own_erf(0.7))));
  CHECK(network_identity(network_of(own_erf(0.7))) != network_identity(network_of(own_erf(0.8))));
  CHECK(own_erf(0.7) == own_erf(0.7));
  CHECK(error_message<Error>([] { static_cast<void>(to_json(network_of(own_erf(0.7)))); }) ==
        "layers[1] (own_erf): cannot be written, because it could not be read back; register the kind with "
        "register_layer_kind()");
  CHECK(error_message<Error>([] {
          static_cast<void>(network_identity(Network({layers::nonlinearity("own_tanh", numerics::tanh())})));
        }).starts_with("layers[0] (own_tanh): cannot be written, because it is a layer of your own"));
}

}  // namespace
}  // namespace widelimit::testing::own_formulas_test
