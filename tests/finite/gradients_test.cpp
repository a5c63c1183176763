// Gradients of finite networks against differences, for layers of every kind.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "finite/layer_zoo.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/finite/finite_network.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/kinds.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::testing {
namespace {

using finite::FiniteNetwork;
using finite::Form;

constexpr Index input_channels = 3;
constexpr Index batch = 3;

xt::xarray<double> inputs_of(const Shape& shape, Index count = batch) {
  std::vector<Index> dimensions{count};
  dimensions.insert(dimensions.end(), shape.begin(), shape.end());
  dimensions.push_back(input_channels);
  return random_inputs(11, dimensions);
}

FiniteNetwork<double> small_network(const Network& network, const Shape& shape, Index outputs = 2) {
  return FiniteNetwork<double>(network, Form{shape, input_channels},
                               {.hidden = 4, .outputs = outputs, .layers = {}},
                               {.count = 2, .key_width = 4, .value_width = 2}, 5, 1);
}

Vector<double> random_direction(Index size, std::uint64_t seed) {
  numerics::RandomStream stream(seed);
  Vector<double> direction(size);
  for (Index i = 0; i < size; ++i) direction[i] = stream.normal();
  return direction;
}

/// Central differences of fourth order: error of order step^4, rounding of order 1e-16 / step.
template <typename Function>
auto central_difference(const Function& function, double step) {
  const auto far = (function(2 * step) - function(-2 * step)).eval();
  const auto near = (function(step) - function(-step)).eval();
  return ((8 * near - far) / (12 * step)).eval();
}

constexpr double step = 2e-5;

/// Gradients of the first output with respect to every parameter, by differences, [batch, parameters].
Matrix<double> difference_jacobian(FiniteNetwork<double> network, const Inputs<double>& x) {
  const Vector<double> start = network.parameters();
  Matrix<double> jacobian(batch, start.size());
  for (Index p = 0; p < start.size(); ++p)
    jacobian.col(p) = central_difference(
        [&](double shift) {
          Vector<double> moved = start;
          moved[p] += shift;
          network.set_parameters(moved);
          return Matrix<double>(network.forward(x).col(0));
        },
        step);
  return jacobian;
}

Matrix<double> difference_input_jacobian(const FiniteNetwork<double>& network, const xt::xarray<double>& x,
                                         const ZooLayer& subject) {
  const auto numbers = static_cast<Index>(x.size()) / batch;
  Matrix<double> jacobian(batch, numbers);
  for (Index k = 0; k < numbers; ++k)
    jacobian.col(k) = central_difference(
        [&](double shift) {
          xt::xarray<double> moved = x;
          for (Index i = 0; i < batch; ++i) moved.data()[i * numbers + k] += shift;
          return Matrix<double>(network.forward(zoo_inputs(subject, moved)).col(0));
        },
        step);
  return jacobian;
}

void check_gradients(const ZooLayer& subject) {
  CAPTURE(subject.name);
  const auto network = small_network(zoo_network(subject), subject.shape);
  const auto numbers = inputs_of(subject.shape);
  const Inputs<double> x = zoo_inputs(subject, numbers);
  const Matrix<double> jacobian = network.jacobian(x);
  CHECK(jacobian.norm() > 0.1);
  CHECK(relative_difference(jacobian, difference_jacobian(network, x)) < 1e-6);

  const auto direction = random_direction(network.parameter_count(), 1);
  const Matrix<double> along = network.jacobian_vector(x, direction);
  CHECK(relative_difference(along.col(0), jacobian * direction) < 1e-12);

  Matrix<double> weights(batch, 2);
  weights << 1, -0.3, 0.2, 0.8, -0.5, 0.1;
  const double backwards = network.vector_jacobian(x, weights).dot(direction);
  CHECK(backwards == doctest::Approx(weights.cwiseProduct(along).sum()).scale(0).epsilon(1e-12));

  // sign has no derivative, so that inputs do not matter.
  const Matrix<double> input_jacobian = network.input_jacobian(x);
  if (subject.layer.kind() == "sign")
    CHECK(input_jacobian.norm() == 0);
  else
    CHECK(relative_difference(input_jacobian, difference_input_jacobian(network, numbers, subject)) < 1e-6);
}

TEST_CASE("gradients: the zoo has a layer of every kind") {
  // zoo_attention() has the many options of attention; no finite network has a Matern kernel.
  std::set<std::string> kinds{"attention", "matern"};
  for (const ZooLayer& subject : zoo_layers()) kinds.insert(subject.layer.kind());
  for (const layers::LayerKind& kind : layers::builtin_kinds()) {
    CAPTURE(kind.name);
    CHECK(kinds.contains(kind.name));
  }
}

TEST_CASE("gradients of every layer agree with differences") {
  for (const ZooLayer& subject : zoo_layers()) check_gradients(subject);
}

TEST_CASE("gradients of attention agree with differences") {
  for (const ZooLayer& subject : zoo_attention()) check_gradients(subject);
}

}  // namespace
}  // namespace widelimit::testing
