// What is recorded of a batch, and the gradient by its inputs.
#include "kernel/backends/cpu/backward/run/batch_records.hpp"

#include <doctest/doctest.h>

#include "kernel/run/gram_run.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::batch_records_test {
namespace {

BackwardPlan plan_of(const std::string& layers, const Inputs<double>& x,
                     InputMasks masks = InputMasks::absent) {
  const NamedShapes shapes = shapes_of(x, "x");
  return make_backward_plan(parse_network(R"({"widelimit": 1, "layers": )" + layers + "}"),
                            {shapes, shapes, x.channels(), masks}, true);
}

const std::string dense = R"([{"layer": "dense"}, {"layer": "relu"}])";
const std::string sequence =
    R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "global_average_pool"}])";

TEST_CASE("BatchRecords: vectors stay where they are, with their variances") {
  const Inputs<double> x(random_inputs(1, {3, 5}));
  const BackwardPlan plan = plan_of(dense, x);
  BatchRecords<double> records(plan, x);
  REQUIRE(records.vectors.size() == 1);
  CHECK(records.vectors[0].first == x[0].data());
  CHECK(records.vectors[0].made.size() == 0);
  for (Index i = 0; i < 3; ++i)
    CHECK(records.vectors[0].variances[static_cast<std::size_t>(i)] ==
          doctest::Approx(records.vectors[0].rows().row(i).squaredNorm() / 5));
}

TEST_CASE("BatchRecords: vectors that transforms make are rows of a matrix") {
  const Inputs<double> x(random_inputs(2, {3, 2, 5}));
  const BackwardPlan plan = plan_of(R"([{"layer": "flatten"}, {"layer": "dense"}, {"layer": "relu"}])", x);
  BatchRecords<double> records(plan, x);
  REQUIRE(records.vectors.size() == 1);
  CHECK(records.vectors[0].made.rows() == 3);
  CHECK(records.vectors[0].channels == 10);
  for (Index i = 0; i < 3; ++i) {
    double sum = 0;
    for (const double number : x[i]) sum += number * number;
    CHECK(records.vectors[0].rows().row(i).squaredNorm() == doctest::Approx(sum));
  }
}

TEST_CASE("BatchRecords: features of positions, channel by channel, and masks") {
  xt::xarray<bool> mask = xt::ones<bool>({2, 4});
  mask(1, 2) = false;
  const Inputs<double> x(Inputs<double>(random_inputs(3, {2, 4, 3})), mask);
  const BackwardPlan plan = plan_of(sequence, x, InputMasks::present);
  BatchRecords<double> records(plan, x);
  const NodeId input = plan.sources[0].node;
  for (Index i = 0; i < 2; ++i)
    for (Index a = 0; a < 4; ++a)
      for (Index channel = 0; channel < 3; ++channel)
        CHECK(records.inputs[static_cast<std::size_t>(i)].features(input, channel)[a] ==
              x[i][static_cast<std::size_t>(a * 3 + channel)]);
  REQUIRE(records.inputs[1].mask != nullptr);
  CHECK(records.inputs[1].mask->counts[2] == 0);
  CHECK(records.inputs[0].mask->counts[2] == 1);
}

TEST_CASE("input_gradient: what belongs to features, 0 after shorter inputs and at masked positions") {
  std::vector<xt::xarray<double>> arrays{random_inputs(4, {4, 2}), random_inputs(5, {3, 2})};
  xt::xarray<bool> first = xt::ones<bool>({4}), second = xt::ones<bool>({3});
  second(1) = false;
  const Inputs<double> x(Inputs<double>(std::move(arrays)), std::vector<xt::xarray<bool>>{first, second});
  const BackwardPlan plan = plan_of(sequence, x, InputMasks::present);
  const BatchRecords<double> records(plan, x);
  BatchAdjoints<double> adjoints(records), others(records);
  const NodeId input = plan.sources[0].node;
  for (BatchAdjoints<double>* some : {&adjoints, &others})
    for (RecordAdjoint<double>& adjoint : some->inputs)
      for (Index channel = 0; channel < 2; ++channel)
        for (Index a = 0; a < adjoint.layout->positions[input]; ++a)
          adjoint.features(input, channel)[a] = static_cast<double>(10 * channel + a + 1);
  adjoints.add(others);
  const xt::xarray<double> gradient = input_gradient(plan, x, adjoints);
  REQUIRE(gradient.shape(0) == 2);
  REQUIRE(gradient.shape(1) == 4);
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t a = 0; a < 4; ++a)
      for (std::size_t channel = 0; channel < 2; ++channel) {
        const bool counts = i == 0 || (a < 3 && a != 1);
        CHECK(gradient(i, a, channel) == (counts ? 2.0 * static_cast<double>(10 * channel + a + 1) : 0.0));
      }
}

}  // namespace
}  // namespace widelimit::testing::batch_records_test
