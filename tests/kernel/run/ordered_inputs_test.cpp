// The order in which inputs are computed.
#include "kernel/run/ordered_inputs.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "kernel/run/gram_run.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::ordered_inputs_test {
namespace {

GramPlan plan_of(const std::string& layers, const Inputs<double>& x) {
  return make_plan(parse_network(R"({"widelimit": 1, "layers": )" + layers + "}"), shapes_of(x, "x"),
                   {x.channels(), x.size(), x.size(), 1}, sizeof(double), {});
}

Inputs<double> ragged(const std::vector<Index>& lengths) {
  std::vector<xt::xarray<double>> arrays;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    arrays.push_back(random_inputs(static_cast<unsigned>(i), {lengths[i], 2}));
  return Inputs<double>(std::move(arrays));
}

const std::string flat =
    R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "global_average_pool"}])";

TEST_CASE("OrderedInputs: by shape, and inputs of one shape in the order of the batch") {
  const Inputs<double> x = ragged({5, 3, 7, 3, 5});
  const GramPlan plan = plan_of(flat, x);
  const OrderedInputs<double> inputs(x, plan, "x2", 10);
  const auto originals = inputs.originals(0, 5);
  CHECK(std::vector<Index>(originals.begin(), originals.end()) == std::vector<Index>{1, 3, 0, 4, 2});
  for (Index i = 0; i < 5; ++i) {
    const Index original = originals[static_cast<std::size_t>(i)];
    CHECK(inputs.input(i).data() == x[original].data());
    CHECK(inputs.shape(i) == x.shape(original));
    CHECK(inputs.layout(i).shape == x.shape(original));
  }
  // Errors number inputs as the batch does that this one is a part of.
  CHECK(inputs.name(0) == "input 11 of x2");
  CHECK(inputs.originals(2, 4).front() == 0);
}

TEST_CASE("OrderedInputs: inputs of one shape, and those that end up as vectors, stay in their order") {
  const Inputs<double> rows(random_inputs(1, {4, 6, 2}));
  const GramPlan of_rows = plan_of(flat, rows);
  const OrderedInputs<double> ordered(rows, of_rows, "x");
  for (Index i = 0; i < 4; ++i) CHECK(ordered.input(i).data() == rows[i].data());
  const Inputs<double> x = ragged({5, 3, 7});
  const GramPlan of_vectors =
      plan_of(R"([{"layer": "global_average_pool"}, {"layer": "dense"}, {"layer": "relu"}])", x);
  REQUIRE(of_vectors.vectors_only);
  const OrderedInputs<double> vectors(x, of_vectors, "x");
  for (Index i = 0; i < 3; ++i) CHECK(vectors.shape(i) == x.shape(i));
}

TEST_CASE("OrderedInputs: inputs without a mask have one of which all positions count") {
  const Inputs<double> x(random_inputs(1, {1, 4, 2}));
  const GramPlan plan = plan_of(flat, x);
  const PositionMask mask = OrderedInputs<double>(x, plan, "x").mask(0);
  CHECK(mask.counts.size() == 4);
  CHECK(std::count(mask.counts.begin(), mask.counts.end(), 1) == 4);
}

}  // namespace
}  // namespace widelimit::testing::ordered_inputs_test
