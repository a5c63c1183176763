// What is kept of one input, against the variances straight from their formulas.
#include "kernel/run/state_worker.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "kernel/run/recorded_batch.hpp"
#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"

namespace widelimit::testing::state_worker_test {
namespace {

template <typename Scalar>
xt::xarray<Scalar> one_vector(std::initializer_list<double> numbers) {
  xt::xarray<Scalar> x = xt::zeros<Scalar>({std::size_t{1}, numbers.size()});
  std::size_t next = 0;
  for (const double number : numbers) x(0, next++) = static_cast<Scalar>(number);
  return x;
}

/// Runs a worker on the only input of a batch.
template <typename Scalar>
std::string error_of(const std::string& layers, const Inputs<Scalar>& x, Kernel kernel = Kernel::nngp_only) {
  const GramPlan plan = plan_for(layers, x);
  StateBlock<Scalar> block({&plan.any_layout()}, 0);
  StateWorker<Scalar> worker(plan, StopRequest(), kernel);
  return error_message<NumericalError>([&] {
    worker.run(x[0], block[0]);
    return 0;
  });
}

/// The auxiliary arrays that row stage `number` of a program keeps of positions of these variances.
std::vector<std::vector<double>> arrays_of(const RowStage& stage, const std::vector<double>& variances) {
  std::vector<std::vector<double>> arrays(stage.auxiliary_count(), std::vector<double>(variances.size()));
  std::vector<double*> places;
  for (std::vector<double>& array : arrays) places.push_back(array.data());
  stage.prepare(variances.data(), variances.size(), places.data());
  return arrays;
}

std::vector<NodeId> row_stages(const GramPlan& plan) {
  std::vector<NodeId> rows;
  for (NodeId id = 0; id < plan.program.graph.nodes.size(); ++id)
    if (std::holds_alternative<RowNode>(plan.program.graph.nodes[id].operation)) rows.push_back(id);
  return rows;
}

TEST_CASE("StateWorker: of vectors the numbers, their variance, and what each stage makes of the variances") {
  const Inputs<double> x(random_inputs(61, {3, 5}));
  const GramPlan plan = plan_for(
      R"([{"layer": "dense", "weight_variance": 1.7, "bias_variance": 0.2}, {"layer": "relu"},
          {"layer": "dense", "weight_variance": 0.6}, {"layer": "erf"}])",
      x);
  const RecordedInputs<double> states(plan, x);
  const std::vector<NodeId> rows = row_stages(plan);
  REQUIRE(rows.size() == 2);
  for (Index i = 0; i < 3; ++i) {
    double sum = 0;
    for (const double number : x[i]) sum += number * number / 5;
    CHECK(std::equal(x[i].begin(), x[i].end(), states[i].array(0, 0)));
    CHECK(states[i].extra(0)[0] == doctest::Approx(sum).epsilon(1e-14));
    const double before_relu = 1.7 * sum + 0.2, before_erf = 0.6 * before_relu / 2;
    for (std::size_t k = 0; k < 2; ++k) {
      const auto& stage = *std::get<RowNode>(plan.program.graph.nodes[rows[k]].operation).stage;
      const auto expected = arrays_of(stage, {k == 0 ? before_relu : before_erf});
      for (std::size_t n = 0; n < expected.size(); ++n)
        CHECK(states[i].array(rows[k], static_cast<Index>(n))[0] ==
              doctest::Approx(expected[n][0]).epsilon(1e-13));
    }
  }
}

TEST_CASE("StateWorker: of sequences all positions, channel by channel") {
  const Inputs<double> x(random_inputs(62, {2, 6, 2}));
  const GramPlan plan = plan_for(
      R"([{"layer": "conv", "filter": [3], "weight_variance": 1.3}, {"layer": "erf"}, {"layer": "global_average_pool"}])",
      x);
  const RecordedInputs<double> states(plan, x);
  const std::vector<NodeId> rows = row_stages(plan);
  REQUIRE(rows.size() == 1);
  for (Index i = 0; i < 2; ++i) {
    const auto number = [&](Index a, Index c) { return x[i][static_cast<std::size_t>(2 * a + c)]; };
    std::vector<double> variances;
    for (Index a = 0; a < 6; ++a) {
      double sum = 0;
      for (Index o = std::max<Index>(a - 1, 0); o <= std::min<Index>(a + 1, 5); ++o)
        for (Index c = 0; c < 2; ++c) sum += number(o, c) * number(o, c) / 2 / 3;
      variances.push_back(1.3 * sum);
      for (Index c = 0; c < 2; ++c)
        CHECK(states[i].array(0, c)[states[i].layout().planes[0].at(0, 0) + a] == number(a, c));
    }
    const auto expected =
        arrays_of(*std::get<RowNode>(plan.program.graph.nodes[rows[0]].operation).stage, variances);
    for (std::size_t n = 0; n < expected.size(); ++n)
      for (Index a = 0; a < 6; ++a)
        CHECK(states[i].array(rows[0],
                              static_cast<Index>(n))[states[i].layout().planes[rows[0]].at(0, 0) + a] ==
              doctest::Approx(expected[n][static_cast<std::size_t>(a)]).epsilon(1e-13));
  }
}

const std::string plain = R"([{"layer": "dense"}, {"layer": "relu"}, {"layer": "dense"}])";

TEST_CASE("StateWorker: an input of zeros has a state, one that is too small for the precision has not") {
  CHECK(error_of<float>(plain, one_vector<float>({0, 0, 0})) == "no error");
  CHECK(error_of<double>(plain, one_vector<double>({1e-30, 0, 0})) == "no error");
  const std::string small = error_of<float>(plain, one_vector<float>({1e-30, 0, 0}));
  CHECK(small.find("variances above 0 are rounded to 0") != std::string::npos);
  CHECK(small.find("float") != std::string::npos);
}

TEST_CASE("StateWorker: variances that leave the range name the layer") {
  // The variance after the third layer is the square of that before.
  const std::string large = error_of<float>(
      R"([{"layer": "dense"}, {"layer": "monomial", "degree": 2}, {"layer": "dense"}, {"layer": "relu"}])",
      one_vector<float>({1e12, 0, 0}));
  CHECK(large.find("layers[") == 0);
  CHECK(large.find("float") != std::string::npos);
  CHECK(
      error_of<double>(
          R"([{"layer": "dense"}, {"layer": "monomial", "degree": 2}, {"layer": "dense"}, {"layer": "relu"}])",
          one_vector<double>({1e12, 0, 0})) == "no error");
}

TEST_CASE("StateWorker: with the NTK it finds the layer where that alone leaves the range") {
  // Every layer of exp multiplies the NTK of an input with itself by its large variance; norms hide it from the NNGP.
  std::string layers = "[";
  for (int i = 0; i < 12; ++i)
    layers += R"({"layer": "dense", "weight_variance": 1e30}, {"layer": "sin", "a": 1, "b": 1, "c": 0}, )";
  layers += R"({"layer": "dense"}])";
  const Inputs<double> x(one_vector<double>({1, 2, 3}));
  CHECK(error_of<double>(layers, x) == "no error");
  const std::string found = error_of<double>(layers, x, Kernel::with_ntk);
  CHECK(found.find("layers[") == 0);
  CHECK(found.find("the ntk is not finite") != std::string::npos);
}

TEST_CASE("StateWorker: a stop is heeded") {
  const Inputs<double> x(random_inputs(63, {1, 6, 2}));
  const GramPlan plan = plan_for(
      R"([{"layer": "conv", "filter": [3]}, {"layer": "erf"}, {"layer": "global_average_pool"}])", x);
  std::stop_source source;
  const std::stop_token token = source.get_token();
  StateBlock<double> block({&plan.any_layout()}, 0);
  StateWorker<double> worker(plan, StopRequest(token));
  worker.run(x[0], block[0]);
  source.request_stop();
  CHECK_THROWS_AS(worker.run(x[0], block[0]), Cancelled);
}

}  // namespace
}  // namespace widelimit::testing::state_worker_test
