// What the engine knows of every kind of operation.
#include "kernel/plan/primitives.hpp"

#include <doctest/doctest.h>

#include "kernel/plan/demand.hpp"
#include "kernel/readouts/pull_back.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::primitives_test {
namespace {

/// The operations of a network, readouts as they are written.
std::vector<Operation> operations_of(const std::string& layers, const Shape& shape) {
  std::vector<Operation> operations;
  const Network network = parse_network(R"({"widelimit": 1, "layers": )" + layers + "}");
  for (const Node& node : lower_with_readouts(network, shape, Replicate{}, {}, Readouts::as_written).nodes)
    operations.push_back(node.operation);
  return operations;
}

/// The operation of the last of some layers.
Operation last_of(const std::string& layers, const Shape& shape = {6}) {
  const std::vector<Operation> all = operations_of("[" + layers + R"(, {"layer": "flatten"}])", shape);
  return all[all.size() - 2];
}

Operation convolution(const std::string& fields) {
  return last_of(R"({"layer": "conv", "filter": [3])" + fields + "}");
}

const char* const attention = R"({"layer": "dense"}, {"layer": "attention", "scaling": "inverse_width"})";

TEST_CASE("reads_of: every kind, and how windows go") {
  CHECK(reads_of(InputNode{}) == Reads::inputs);
  CHECK(reads_of(last_of(R"({"layer": "dense"})")) == Reads::entries);
  CHECK(reads_of(convolution("")) == Reads::windows);
  CHECK(reads_of(convolution(R"(, "strides": [2])")) == Reads::windows);
  CHECK(reads_of(convolution(R"(, "padding": "circular")")) == Reads::kept_windows);
  CHECK(reads_of(last_of(R"({"layer": "local_conv", "filter": [3]})")) == Reads::kept_windows);
  CHECK(reads_of(SumNode{{1, 1}}) == Reads::entries);
  CHECK(reads_of(ProductNode{1}) == Reads::entries);
  CHECK(reads_of(PoolNode{{{2}, {2}, Padding::valid}, PoolKind::average}) == Reads::pooled);
  CHECK(reads_of(ReadoutNode{ReadoutKind::flatten}) == Reads::equal_positions);
  CHECK(reads_of(ReadoutNode{ReadoutKind::average}) == Reads::all_positions);
  CHECK(reads_of(ReadoutNode{ReadoutKind::sum}) == Reads::all_positions);
  CHECK(reads_of(last_of(attention)) == Reads::matrix);
  // Maps of images are mapped plane by plane, those of sequences as matrices.
  CHECK(reads_of(last_of(R"({"layer": "conv", "filter": [3]}, {"layer": "image_resize", "size": [4]})")) ==
        Reads::matrix);
  CHECK(reads_of(last_of(R"({"layer": "conv", "filter": [3, 3]}, {"layer": "image_resize", "size": [5, 3]})",
                         {3, 4})) == Reads::mapped);
}

TEST_CASE("recorded_of: what states have") {
  CHECK(recorded_of(InputNode{}) == Recorded::features);
  CHECK(recorded_of(last_of(R"({"layer": "dense"}, {"layer": "relu"})")) == Recorded::auxiliaries);
  CHECK(recorded_of(last_of(attention)) == Recorded::pair_state);
  CHECK(recorded_of(SumNode{{1, 1}}) == Recorded::nothing);
  CHECK(needs_variances(last_of(attention)));
  CHECK_FALSE(needs_variances(InputNode{}));
}

TEST_CASE("read_back: what the backward pass needs, and more of it for derivatives by numbers") {
  const auto reads = [](const Operation& operation, bool with_numbers) {
    const ReadBack back = read_back(operation, with_numbers);
    return std::pair(back.values, back.result);
  };
  CHECK(reads(ProductNode{2}, false) == std::pair(true, false));
  CHECK(reads(ProductNode{2}, true) == std::pair(true, true));
  CHECK(reads(SumNode{{1, 2}}, false) == std::pair(false, false));
  CHECK(reads(SumNode{{1, 2}}, true) == std::pair(true, false));
  CHECK(reads(AffineNode{{}, 1, 0}, true) == std::pair(false, true));
}

TEST_CASE("degree_after and stays_positive: sums, products and layers") {
  const std::vector<Degree> equal{2, 2}, other{1, 2}, none{1, Degree{}};
  CHECK(degree_after(SumNode{{1, 1}}, equal) == 2);
  CHECK_FALSE(degree_after(SumNode{{1, 1}}, other).has_value());
  CHECK(degree_after(ProductNode{1}, other) == 3);
  CHECK_FALSE(degree_after(ProductNode{1}, none).has_value());
  CHECK(degree_after(AffineNode{{}, 1, 0}, std::vector<Degree>{1}) == 1);
  CHECK_FALSE(degree_after(AffineNode{{}, 1, 0.5}, std::vector<Degree>{1}).has_value());
  CHECK(degree_after(AffineNode{{}, 1, 0.5}, std::vector<Degree>{0}) == 0);
  const std::vector<Positive> mixed{Positive::all, Positive::none};
  CHECK(stays_positive(SumNode{{1, 1}}, mixed));
  CHECK_FALSE(stays_positive(SumNode{{0, 1}}, mixed));
  CHECK_FALSE(stays_positive(ProductNode{1}, mixed));
  CHECK_FALSE(stays_positive(AffineNode{{}, 0, 1}, std::vector<Positive>{Positive::all}));
}

TEST_CASE("has_numbers_only: false where an operation has other numbers") {
  for (const Operation& operation : operations_of(R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"},
                                       {"layer": "average_pool", "window": [2]},
                                       {"layer": "conv", "filter": [3]}, {"layer": "layer_norm"},
                                       {"layer": "erf"},
                                       {"layer": "global_average_pool"}])",
                                                  {6}))
    CHECK(has_numbers_only(operation) != std::holds_alternative<RowNode>(operation));
  CHECK(has_numbers_only(InputNode{}));
  CHECK_FALSE(has_numbers_only(InputNode{{FeatureNorm{{}, Centring::none, 0.1}}}));
}

}  // namespace
}  // namespace widelimit::testing::primitives_test
