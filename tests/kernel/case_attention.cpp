#include <algorithm>
#include <cmath>

#include "kernel/case_composer.hpp"

namespace widelimit::testing {

using Json = nlohmann::json;

namespace {

/// exp(-.3 r) for every distance that a pair of these shapes has.
std::vector<double> decay_values(const std::vector<Shape>& shapes, Index power) {
  Index largest = 0;
  for (std::size_t axis = 0; axis < shapes.front().size(); ++axis) {
    Index longest = 0;
    for (const Shape& shape : shapes) longest = std::max(longest, shape[axis] - 1);
    largest += power == 1 ? longest : longest * longest;
  }
  std::vector<double> values;
  for (Index r = 0; r <= largest; ++r) values.push_back(std::exp(-0.3 * static_cast<double>(r)));
  return values;
}

}  // namespace

Json CaseComposer::encodings() {
  Json positions{{"rho", draws_.number(0.5, 1.5)},
                 {"input_weight", draws_.number(0, 1)},
                 {"position_weight", draws_.number(0, 1)}};
  switch (draws_.below(4)) {
    case 0:
      positions["kind"] = "identity";
      break;
    case 1:
      positions["kind"] = "structured";
      positions["phi"] = draws_.number(0.5, 3);
      break;
    case 2: {
      const Index power = 1 + draws_.below(2);
      positions["kind"] = "decay";
      positions["power"] = power;
      positions["values"] = decay_values(shapes_, power);
      break;
    }
    default: {
      if (!equal_shapes()) {
        positions["kind"] = "identity";
        break;
      }
      // Positive semidefinite: of random walks, min(i, j).
      const Index d = position_count(shapes_.front());
      Json rows = Json::array();
      for (Index i = 0; i < d; ++i) {
        Json row = Json::array();
        for (Index j = 0; j < d; ++j)
          row.push_back(static_cast<double>(std::min(i, j) + 1) / static_cast<double>(d));
        rows.push_back(row);
      }
      positions["kind"] = "matrix";
      positions["matrix"] = rows;
    }
  }
  // Row sums of the same size as variances: logits stay where the other cases have them.
  if (draws_.one_in(3)) positions["scale"] = "mean_row_sum";
  return positions;
}

void CaseComposer::add_sequence_options(Json& layer) {
  if (axes() != 1) return;
  if (draws_.one_in(4)) layer["rotary"] = {{"frequencies", {1.0, draws_.number(0.1, 0.9)}}};
  const bool softmax = layer["weights"] == "softmax" || layer["weights"] == "softmax1";
  if (softmax && draws_.one_in(4)) layer["alibi"] = draws_.number(0, 0.8);
  if (draws_.one_in(4)) layer["window"] = 1 + draws_.below(4);
  if (layer["causal"] == true && draws_.one_in(3)) layer["prefix"] = 1 + draws_.below(3);
  if (!draws_.one_in(6)) return;
  // Every position sees itself: softmax over nothing is an error.
  Json rows = Json::array();
  for (Index a = 0; a < longest(0); ++a) {
    Json row = Json::array();
    for (Index c = 0; c < longest(0); ++c) row.push_back(a == c || draws_.one_in(2));
    rows.push_back(row);
  }
  layer["mask"] = rows;
}

Json CaseComposer::attention() {
  constexpr Index most_positions_of_sums = 6;
  Json layer{{"layer", "attention"},
             {"query_key_std", draws_.one_in(12) ? 0 : draws_.number(0.3, 1.2)},
             {"output_value_variance", draws_.number(0.5, 2)},
             {"bias_variance", draws_.one_in(2) ? 0 : 0.1},
             {"causal", draws_.one_in(3)}};
  const bool gaussian_logits = most_positions() <= most_positions_of_sums && draws_.one_in(2);
  if (gaussian_logits) {
    layer["scaling"] = "inverse_sqrt_width";
    layer["weights"] = draws_.one_of<Json>({"relu",
                                            "identity",
                                            "abs",
                                            "erf",
                                            "gelu",
                                            "cos",
                                            "relu",
                                            {{"layer", "leaky_relu"}, {"slope", 0.3}},
                                            {{"layer", "polynomial"}, {"coefficients", {0.3, 0.7}}}});
    if (draws_.one_in(4)) layer["query_bias_variance"] = draws_.number(0.1, 0.6);
    if (draws_.one_in(4)) layer["key_bias_variance"] = draws_.number(0.1, 0.6);
  } else {
    layer["scaling"] = "inverse_width";
    // A sign of logits that are 0 would be one of roundings.
    layer["weights"] = draws_.one_of<Json>({"softmax",
                                            "softmax",
                                            "softmax",
                                            "softmax1",
                                            "relu",
                                            "identity",
                                            "abs",
                                            "erf",
                                            "gelu",
                                            "sigmoid",
                                            "tanh",
                                            {{"layer", "leaky_relu"}, {"slope", -0.3}},
                                            {{"layer", "exp"}, {"a", 0.5}, {"b", 0.3}}});
    const bool softmax = layer["weights"] == "softmax" || layer["weights"] == "softmax1";
    if (softmax && draws_.one_in(5)) layer["tied"] = false;
    if (draws_.one_in(4)) layer["query_bias_variance"] = layer["key_bias_variance"] = draws_.number(0.1, 0.6);
    if (layer["weights"] == "softmax1" && draws_.one_in(2)) layer.erase("tied");
    if (layer.contains("tied")) {
      layer.erase("query_bias_variance");
      layer.erase("key_bias_variance");
    }
  }
  if (draws_.one_in(2)) {
    layer["positions"] = encodings();
    layer["positions"]["in_values"] = draws_.one_in(2) && !(setting_.masked && gaussian_logits);
  }
  add_sequence_options(layer);
  channels_ = Channels::gaussian;
  width_ = 0;
  return layer;
}

}  // namespace widelimit::testing
