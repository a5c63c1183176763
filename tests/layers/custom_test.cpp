#include "widelimit/layers/custom.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "layers/layer_errors.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/numerics/activations.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

TEST_CASE("stages of a user's own") {
  CHECK(error_of([] { return pair_layer("mine", nullptr); }) == "mine: expected a stage, got a null pointer");
  CHECK(error_of([] { return row_layer("mine", nullptr); }) == "mine: expected a stage, got a null pointer");
}

/// They would be taken for the library's.
TEST_CASE("layers of a user's own cannot be called like the library's") {
  const auto activation = numerics::tanh();
  for (const std::string kind : {"identity", "relu", "dense", "flatten", "attention", "repeat", "softplus",
                                 "softmax", "softmax1", "Relu", " relu"}) {
    CAPTURE(kind);
    const std::string refused =
        kind + ": this kind is a layer of the library; choose another name for your own";
    CHECK(error_of([&] { return nonlinearity(kind, activation); }) == refused);
    CHECK(error_of([&] { return pair_layer(kind, nullptr); }) == refused);
    CHECK(error_of([&] { return row_layer(kind, nullptr); }) == refused);
  }
  for (const std::string& kind : layer_kinds())
    if (kind.find("test") == std::string::npos)
      CHECK(error_of([&] { return nonlinearity(kind, activation); }) != "no error");
  CHECK(error_of([&] { return nonlinearity("", activation); }) ==
        "a layer of your own needs a kind, got an empty name");
  const LayerReader reader = [](FieldReader&) { return relu(); };
  for (const char* kind : {"softmax", "Dense", "", " "})
    CHECK_THROWS_AS(register_layer_kind(kind, reader), ArgumentError);
  CHECK(error_of([&] { return nonlinearity("mine", activation, 5); }) ==
        "mine: parameters must be a JSON object, got 5");
  CHECK(error_of([&] {
          return nonlinearity("mine", activation, nlohmann::ordered_json{{"layer", "relu"}});
        }) == "mine: parameters must not have a member \"layer\", which names the kind");
}

}  // namespace
}  // namespace widelimit::testing
