// What the backward pass keeps of an input.
#include "kernel/backends/cpu/backward/planes/input_record.hpp"

#include <doctest/doctest.h>

#include <random>
#include <set>

#include "kernel/backends/cpu/backward/planes/backward_program.hpp"
#include "widelimit/error.hpp"

namespace widelimit::testing::input_record_test {
namespace {

const std::string layers =
    R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "average_pool", "window": [2], "strides": [2]},
        {"layer": "attention", "scaling": "inverse_width"}, {"layer": "conv", "filter": [3]}, {"layer": "erf"},
        {"layer": "global_average_pool"}, {"layer": "dense"}, {"layer": "relu"}])";

TEST_CASE("RecordLayout: arrays of all nodes one after the other, without gaps") {
  const EngineProgram engine(layers, {8}, 3);
  const RecordLayout layout =
      make_record_layout(engine.program, node_shapes(engine.program.graph, {8}), {8}, 3);
  InputRecord<double> record(layout);
  RecordAdjoint<double> adjoint(layout);
  std::set<const double*> values, adjoints;
  const auto take = [](std::set<const double*>& taken, const double* first, Index count) {
    for (Index i = 0; i < count; ++i) CHECK(taken.insert(first + i).second);
  };
  for (NodeId id = 0; id < engine.program.graph.nodes.size(); ++id) {
    const Index positions = layout.positions[id];
    for (Index k = 0; k < layout.channels[id]; ++k) {
      take(values, record.features(id, k), positions);
      take(adjoints, adjoint.features(id, k), positions);
    }
    if (layout.channels[id] > 0 || positions == 0) continue;
    take(values, record.variances(id), positions);
    take(adjoints, adjoint.variances(id), positions);
    for (Index k = 0; k < layout.auxiliaries[id]; ++k) take(values, record.auxiliary(id, k), positions);
    take(values, record.state(id), layout.states[id]);
    take(adjoints, adjoint.state(id), layout.states[id]);
  }
  CHECK(values.size() == record.values.size());
  CHECK(adjoints.size() == adjoint.values.size());
  CHECK(*values.begin() == record.values.data());
}

TEST_CASE("prepare_row_stage: the auxiliary arrays of the stage, and the range of variances") {
  const EngineProgram engine(layers, {8}, 3);
  const RecordLayout layout =
      make_record_layout(engine.program, node_shapes(engine.program.graph, {8}), {8}, 3);
  std::mt19937 generator(2);
  InputRecord<double> record = random_record(engine.program, layout, generator);
  for (NodeId id = 0; id < engine.program.graph.nodes.size(); ++id) {
    const auto* row = std::get_if<RowNode>(&engine.program.graph.nodes[id].operation);
    if (row == nullptr) continue;
    const auto positions = static_cast<std::size_t>(layout.positions[id]);
    std::vector<std::vector<double>> expected(row->stage->auxiliary_count(), std::vector<double>(positions));
    std::vector<double*> arrays;
    for (std::vector<double>& array : expected) arrays.push_back(array.data());
    row->stage->prepare(record.variances(id), positions, arrays.data());
    for (std::size_t k = 0; k < expected.size(); ++k)
      CHECK(std::equal(expected[k].begin(), expected[k].end(), record.auxiliary(id, static_cast<Index>(k))));
    record.variances(id)[0] = 1e-320;
    CHECK_THROWS_AS(prepare_row_stage(record, id, *row->stage), NumericalError);
  }
}

}  // namespace
}  // namespace widelimit::testing::input_record_test
