// Layers against numbers that others computed: activations, maps of positions and poolings by neural-tangents 0.6.5,
// attention of today's transformers in 80-bit arithmetic (tests/reference/README.md).
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "support/random_inputs.hpp"
#include "support/reference_case.hpp"
#include "widelimit/error.hpp"
#include "widelimit/finite/finite_network.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/numerics/dual_activation.hpp"

namespace widelimit::testing {
namespace {

int check_folder(const std::string& name) {
  int checked = 0;
  for (const ReferenceCase& reference : reference_cases(small_reference_folder().parent_path() / name)) {
    CAPTURE(reference.name);
    const Deviation in_double = deviation<double>(reference), in_float = deviation<float>(reference);
    CHECK(in_double.nngp <= reference.tolerance);
    CHECK(in_double.ntk <= reference.tolerance);
    CHECK(in_float.nngp <= 1e-4);
    CHECK(in_float.ntk <= 1e-4);
    ++checked;
  }
  return checked;
}

TEST_CASE("layers of every sort agree with neural-tangents") { CHECK(check_folder("stax") >= 22); }

TEST_CASE("rotary positions, ALiBi, windows, softmax1 and gated layers agree with the reference") {
  CHECK(check_folder("attention-today") >= 24);
}

TEST_CASE("a nonlinearity given by its dual has the kernels of the function, and no finite network") {
  // phi(x) = (x^2 - p) / 2 has E[phi phi] = c^2 / 2; x^2 / 2 has (pq + 2 c^2) / 4 and E[phi' phi'] = c.
  const Layer by_dual = layers::nonlinearity(
      "half square", numerics::dual_activation([](double p, double q, double c) -> numerics::Dual<double> {
        return {(p * q + 2 * c * c) / 4, c};
      }));
  const Network given({layers::dense({1.1, 0.2}), by_dual, layers::dense()});
  const Network known({layers::dense({1.1, 0.2}), layers::polynomial({0, 0, 0.5}), layers::dense()});
  const auto x = random_inputs(5, {4, 3});
  const auto left = gram<double>(given, x), right = gram<double>(known, x);
  CHECK((left.nngp - right.nngp).norm() <= 1e-14 * right.nngp.norm());
  CHECK((left.ntk - right.ntk).norm() <= 1e-14 * right.ntk.norm());

  const finite::FiniteNetwork<double> network(given, {{}, 3}, {.hidden = 4}, {}, 1, 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(network.forward(x)),
                       doctest::Contains("of which only the dual is known has no finite network"),
                       ArgumentError);
  CHECK_THROWS_WITH_AS(static_cast<void>(numerics::dual_activation(nullptr)),
                       "dual_activation: expected a function, got an empty one", ArgumentError);
}

}  // namespace
}  // namespace widelimit::testing
