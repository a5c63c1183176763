#include "widelimit/network/network_file.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/activation_layers.hpp"
#include "support/error_message.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/dropout.hpp"
#include "widelimit/layers/exp_normalized.hpp"
#include "widelimit/layers/graphs.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/layers/positions.hpp"
#include "widelimit/layers/recurrent.hpp"
#include "widelimit/network/field_reader.hpp"
#include "widelimit/numerics/activations.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

/// A network with every built-in kind; numbers that decimal text cannot hold shorter than in full.
Network every_kind() {
  AttentionOptions plain, encoded, sampled;
  encoded.weights = AttentionWeights::elementwise(leaky_relu(0.1));
  encoded.query_key_std = 1.0 / 3;
  encoded.mask = AttentionMask::causal;
  encoded.positions = PositionalEncodings{StructuredPositions{0.7, 2.5}, 0.25, 0.75, ValueEncodings::present};
  sampled.scaling = AttentionScaling::inverse_sqrt_width;
  sampled.samples = 17;
  sampled.seed = 5;
  AttentionOptions today, masked;
  today.weights = AttentionWeights::softmax1();
  today.sequence.rotary = RotaryPositions::with_base(10000, 7);
  today.sequence.alibi_slope = 1.0 / 3;
  today.sequence.window = 3;
  masked.mask = AttentionMask::causal;
  masked.sequence.prefix = 2;
  masked.sequence.mask_matrix = Matrix<bool>::Identity(3, 3);
  Matrix<double> covariance(2, 2);
  covariance << 1, 0.1, 0.1, 1.0 / 7;
  sampled.positions = PositionalEncodings{MatrixPositions{covariance, 0.3}, 1, 1, ValueEncodings::absent};
  sampled.positions->scale = PositionScale::mean_row_sum;
  Layers all = closed_form_activations();
  const Layers others = quadrature_activations();
  all.insert(all.end(), others.begin(), others.end());
  AttentionOptions biased = encoded;
  biased.query_bias_variance = biased.key_bias_variance = 1.0 / 3;
  biased.positions = PositionalEncodings::appended(DecayPositions{{1, 1.0 / 3, 0.1}, 1, 0.9}, 3, 2, 0.8);
  AttentionOptions decaying = encoded;
  decaying.positions = PositionalEncodings::added(DecayPositions{{1, 0.5}, 1.5, 0.9, {0, 1}});
  const StandardParametrisation standard{.input_width = 7, .width_scale = 1.0 / 3, .zero_biases = true};
  const Layers rest{dense({2.0 / 3, 0.1}),
                    dense({2.0 / 3, 0, standard}),
                    conv({{3}, {1}, Padding::same, 1, 0, standard}),
                    local_conv({{3}, {1}, Padding::same, 1, 0, standard}),
                    conv_transpose({{3}, {1}, Padding::same, 1, 0, standard}),
                    layer_norm({NormAxes::channels, 1e-5, {2, 0}}),
                    attention(biased),
                    attention(decaying),
                    concat_positions(1, {{dense()}, {}}),
                    conv({{3, 2}, {1, 2}, Padding::valid, 1.1, 0.01}),
                    local_conv({{1}, {}, Padding::circular, 1, 0}),
                    conv_transpose({{3, 3}, {2, 1}, Padding::circular, 1.5, 0.1}),
                    slice({{1, std::nullopt, 2}, {std::nullopt, -1, 1}}),
                    index_position(1, -2),
                    image_resize({{3, -1}, ResizeMethod::cubic, false}),
                    positions_map(covariance),
                    positions_map(covariance, {covariance.rows(), 1}),
                    positions_map(std::vector{covariance, covariance}),
                    average_pool({{2, 2}, {}, Padding::valid}),
                    average_pool({{2, 2}, {}, Padding::same, true}),
                    sum_pool({{3}, {2}, Padding::circular}),
                    global_average_pool(),
                    global_sum_pool(),
                    flatten(),
                    aggregate({GraphNormalisation::symmetric, true}),
                    aggregate(),
                    layer_norm({NormAxes::channels, 1e-5}),
                    rms_norm({NormAxes::channels_and_space, 0}),
                    attention(plain),
                    attention(encoded),
                    attention(sampled),
                    attention(today),
                    attention(masked),
                    sum({{0.5, {}}, {-1.5, {dense()}}}),
                    product({{1, {}}, {2, {dense(), relu()}}}),
                    concat({{0.25, {dense()}}, {0.75, {}}}),
                    dropout(0.9),
                    recurrent({1.2, 0.9, 0.3, leaky_relu(0.5), RecurrentDirection::backward}),
                    repeat(3, {dense(), relu()})};
  all.insert(all.end(), rest.begin(), rest.end());
  return {"every kind", all};
}

std::string network_error(const std::string& layers) {
  return error_message<Error>(
      [&] { static_cast<void>(parse_network(R"({"widelimit": 1, "layers": )" + layers + "}")); });
}

TEST_CASE("the round trip through JSON is exact for every kind") {
  const Network network = every_kind();
  const std::string text = to_json(network);
  CHECK(parse_network(text) == network);
  CHECK(to_json(parse_network(text)) == text);
  for (const Layer& layer : network.layers()) {
    CAPTURE(layer.kind());
    CHECK(parse_network(to_json(Network({layer}))).layers().at(0) == layer);
  }
}

TEST_CASE(
    "the power of decaying positions is any positive number; whole ones are written as they always were") {
  const auto file = [](const std::string& positions) {
    return R"({"widelimit": 1, "layers": [{"layer": "attention", "positions": {"kind": "decay", )" +
           positions + "}}]}";
  };
  const std::string old = to_json(parse_network(file(R"("power": 1, "values": [1, 0.5])")));
  CHECK(old.find("\"power\": 1,") != std::string::npos);
  CHECK(old.find("distances") == std::string::npos);
  CHECK(to_json(parse_network(file(R"("power": 1.0, "values": [1, 0.5])"))) == old);
  CHECK(parse_network(file(R"("power": 1.0, "values": [1, 0.5])")) == parse_network(old));
  CHECK(to_json(parse_network(file(R"("values": [1, 0.5])"))).find("\"power\": 2,") != std::string::npos);
  const std::string real =
      to_json(parse_network(file(R"("power": 1.5, "values": [1, 0.5], "distances": [0, 1])")));
  CHECK(real.find("\"power\": 1.5,") != std::string::npos);
  CHECK(to_json(parse_network(real)) == real);
  CHECK(network_error(
            R"([{"layer": "attention", "positions": {"kind": "decay", "power": 1.5, "values": [1]}}])")
            .find("expected `distances`, where the values stand, got none") != std::string::npos);
  CHECK(network_error(
            R"([{"layer": "attention", "positions": {"kind": "decay", "power": "1", "values": [1]}}])")
            .find("layers[0].positions.power") != std::string::npos);
}

TEST_CASE("every registered kind is in the round trip") {
  const Network network = every_kind();
  const std::string text = to_json(network);
  for (const std::string& kind : layer_kinds()) {
    CAPTURE(kind);
    CHECK(text.find("\"layer\": \"" + kind + "\"") != std::string::npos);
  }
}

TEST_CASE("defaults of the format are those of the constructors") {
  const auto one = [](const std::string& layer) {
    return parse_network(R"({"widelimit": 1, "layers": [)" + layer + "]}").layers().at(0);
  };
  CHECK(one(R"({"layer": "dense"})") == dense());
  CHECK(one(R"({"layer": "conv", "filter": [3, 3]})") == conv({{3, 3}, {1, 1}, Padding::same, 1, 0}));
  CHECK(one(R"({"layer": "average_pool", "window": [2]})") == average_pool({{2}, {2}, Padding::valid}));
  CHECK(one(R"({"layer": "sin"})") == layers::sin(1, 1, 0));
  CHECK(one(R"({"layer": "gaussian"})") == gaussian(1, -1));
  CHECK(one(R"({"layer": "rbf"})") == rbf(1));
  CHECK(one(R"({"layer": "layer_norm"})") == layer_norm({NormAxes::channels, 1e-12}));
  CHECK(one(R"({"layer": "attention", "scaling": "inverse_width"})") == attention());
  CHECK(one(R"({"layer": "attention", "scaling": "inverse_width", "weights": "relu"})") !=
        one(R"({"layer": "attention", "scaling": "inverse_width"})"));
  CHECK(one(R"({"layer": "sum", "branches": [{"layers": []}]})") == sum({{1, {}}}));
}

TEST_CASE("errors name the path of the field") {
  CHECK(network_error(R"([{"layer": "dense"}, {"layer": "dens"}])")
            .find("layers[1].layer: unknown kind \"dens\"; known are ab_relu, abs, ") == 0);
  CHECK(
      network_error(R"([{"layer": "batch_norm"}])")
          .find("layers[0].layer: \"batch_norm\" has no kernel: what it makes of an input depends on all") ==
      0);
  CHECK(network_error(R"([{"layer": "dense", "weights": 1}])") == "layers[0].weights: unknown field");
  CHECK(network_error(R"([{"layer": "conv"}])") == "layers[0].filter: expected this field, got none");
  CHECK(network_error(R"([{"weight_variance": 1}])") == "layers[0].layer: expected this field, got none");
  CHECK(network_error(R"([{"layer": "dense", "weight_variance": "2"}])") ==
        "layers[0].weight_variance: expected a number, got \"2\"");
  CHECK(network_error(R"([{"layer": "conv", "filter": [3, 2.5]}])") ==
        "layers[0].filter: expected a list of integers, got [3,2.5]");
  CHECK(network_error(R"([{"layer": "conv", "filter": [3], "padding": "full"}])") ==
        "layers[0].padding: expected one of same, valid, circular, got \"full\"");
  CHECK(network_error(R"([{"layer": "dense", "weight_variance": -1}])") ==
        "layers[0]: dense: weight_variance must be finite and not negative, got -1");
  CHECK(network_error(R"([{"layer": "average_pool", "window": [2], "padding": "full"}])") ==
        "layers[0].padding: expected one of same, valid, circular, got \"full\"");
  CHECK(network_error(R"({"layer": "dense"})") == "layers: expected a list of layers, got object");
  CHECK(network_error(R"([3])") == "layers[0]: expected a JSON object, got number");
  CHECK(network_error(R"([{"layer": "layer_norm", "axes": ["space"]}])") ==
        "layers[0].axes: expected [\"channels\"], [\"channels\", \"space\"] or [\"channels\", 0, ...] with "
        "the numbers of "
        "spatial axes, got [\"space\"]");
  CHECK(network_error(R"([{"layer": "layer_norm", "axes": ["channels", 1, 1]}])") ==
        "layers[0]: layer_norm: spatial axes must be 0, 1 or 2, each once, got [1, 1]");
  CHECK(network_error(R"([{"layer": "dense", "input_width": 3}])") ==
        "layers[0].input_width: belongs to \"parametrisation\": \"standard\" only");
  CHECK(network_error(R"([{"layer": "dense", "parametrisation": "standard"}])") ==
        "layers[0].input_width: expected this field, got none");
  CHECK(network_error(R"([{"layer": "concat", "axis": 0, "branches": [{"share": 1, "layers": []}]}])") ==
        "layers[0].branches[0].share: unknown field");
  CHECK(network_error(R"([{"layer": "repeat", "times": 2.0, "layers": []}])") ==
        "layers[0].times: expected an integer, got 2.0");
}

TEST_CASE("errors inside branches, repeats and attention name the whole path") {
  CHECK(
      network_error(
          R"([{"layer": "sum", "branches": [{"layers": [{"layer": "relu"}, {"layer": "conv", "filter": "3"}]}]}])") ==
      "layers[0].branches[0].layers[1].filter: expected a list of integers, got \"3\"");
  CHECK(network_error(R"([{"layer": "sum", "branches": [{"layers": [], "share": 1}]}])") ==
        "layers[0].branches[0].share: unknown field");
  CHECK(network_error(R"([{"layer": "concat", "branches": [{"layers": []}]}])") ==
        "layers[0].branches[0].share: expected this field, got none");
  CHECK(
      network_error(
          R"([{"layer": "repeat", "times": 2, "layers": [{"layer": "sum", "branches": [{"layers": [{"layer": "hermite"}]}]}]}])") ==
      "layers[0].layers[0].branches[0].layers[0].degree: expected this field, got none");
  const std::string attention = R"([{"layer": "attention", "scaling": "inverse_width", )";
  CHECK(network_error(attention + R"("positions": {"kind": "structured", "phy": 1}}])") ==
        "layers[0].positions.phy: unknown field");
  CHECK(network_error(attention + R"("positions": {"kind": "identity", "phi": 1}}])") ==
        "layers[0].positions.phi: unknown field");
  CHECK(network_error(attention + R"("positions": {"kind": "matrix", "matrix": [[1, 0], [0]]}}])") ==
        "layers[0].positions.matrix: expected 2 rows of 2 numbers, got 1 in row 1");
  CHECK(network_error(attention + R"("weights": {"layer": "leaky_relu"}}])") ==
        "layers[0].weights.slope: expected this field, got none");
  CHECK(network_error(attention + R"("samples": 10}])") ==
        "layers[0].samples: belongs to softmax weights with inverse_sqrt_width only");
  CHECK(network_error(attention + R"("rotary": {"frequencies": [1], "base": 2}}])") ==
        "layers[0].rotary.base: unknown field");
  CHECK(network_error(attention + R"("rotary": {"base": 100}}])") ==
        "layers[0].rotary.pairs: expected this field, got none");
  CHECK(network_error(attention + R"("mask": [[true, false], [true]]}])") ==
        "layers[0].mask: expected 2 rows of 2 values, got 1 in row 1");
  CHECK(network_error(attention + R"("mask": [[1]]}])") ==
        "layers[0].mask: expected true or false in row 0, got 1");
  CHECK(
      network_error(attention + R"("weights": "sofmax"}])")
          .starts_with(
              "layers[0].weights: unknown weights \"sofmax\"; did you mean \"softmax\"?; known are softmax, "
              "softmax1, "));
  CHECK(network_error(attention + R"("weights": "xyz"}])")
            .starts_with("layers[0].weights: unknown weights \"xyz\"; known are softmax, softmax1, "));
  CHECK(network_error(attention + R"("causal": 1}])") == "layers[0].causal: expected true or false, got 1");
}

TEST_CASE("the document itself is checked") {
  CHECK(error_message<Error>([] { static_cast<void>(parse_network(R"({"layers": []})")); }) ==
        "network.widelimit: this field is missing: expected \"widelimit\": 1, the version of the format, "
        "beside "
        "\"layers\"");
  CHECK(error_message<Error>([] { static_cast<void>(parse_network(R"({"widelimit": 2, "layers": []})")); }) ==
        "network.widelimit: expected format version 1, got 2");
  CHECK(error_message<Error>([] {
          static_cast<void>(parse_network(R"({"widelimit": 1, "layers": [], "x": 0})"));
        }) == "network.x: unknown field");
  CHECK_THROWS_WITH_AS(static_cast<void>(parse_network("{\"widelimit\": 1,")),
                       doctest::Contains("network: not JSON at line 1, column "), DataError);
}

TEST_CASE("files are written and read; a file's errors name it") {
  const auto file = std::filesystem::temp_directory_path() / "widelimit-network-file-test.json";
  write_network(file, every_kind());
  CHECK(read_network(file) == every_kind());
  std::ofstream(file) << "not json";
  CHECK_THROWS_WITH_AS(static_cast<void>(read_network(file)), doctest::Contains(file.string().c_str()),
                       DataError);
  std::filesystem::remove(file);
  CHECK_THROWS_WITH_AS(static_cast<void>(read_network(file)), doctest::Contains(file.string().c_str()),
                       DataError);
  CHECK_THROWS_AS(write_network(file / "no" / "such", every_kind()), DataError);
}

TEST_CASE("a user's kind stands in files and is never overridden") {
  const auto reader = [](FieldReader& fields) { return dense({fields.number("gain"), 0}); };
  register_layer_kind("test_gain", reader);
  const auto gain = [](const char* fields) {
    return parse_network(std::string(R"({"widelimit": 1, "layers": [{"layer": "test_gain")") + fields +
                         "}]}");
  };
  CHECK(gain(R"(, "gain": 2)").layers().at(0) == dense({2, 0}));
  CHECK(error_message<Error>([&] { gain(""); }) == "layers[0].gain: expected this field, got none");
  CHECK(error_message<Error>([&] { gain(R"(, "gain": -1)"); }) ==
        "layers[0]: dense: weight_variance must be finite and not negative, got -1");
  CHECK(error_message<Error>([&] { gain(R"(, "gain": 1, "loss": 1)"); }) == "layers[0].loss: unknown field");
  for (const char* kind : {"test_gain", "dense"}) {
    CHECK_THROWS_WITH_AS(register_layer_kind(kind, reader),
                         doctest::Contains("exists already; choose another name"), ArgumentError);
  }
}

TEST_CASE("a user's layers are written with the parameters that their maker gives, and read back") {
  const auto shifted = [](double shift) {
    return nonlinearity("test_shifted", numerics::sin(1, 1, shift), nlohmann::ordered_json{{"shift", shift}});
  };
  const Network network(
      {dense(), sum({{1, {repeat(2, {shifted(1.0 / 3), dense()})}}}), shifted(0.5), dense()});
  CHECK(
      error_message<Error>([&] { static_cast<void>(to_json(network)); }) ==
      "layers[1].branches[0].layers[0].layers[0] (test_shifted): cannot be written, because it could not be "
      "read back; register the kind with register_layer_kind()");
  register_layer_kind("test_shifted", [&](FieldReader& fields) { return shifted(fields.number("shift")); });
  CHECK(parse_network(to_json(network)) == network);
  CHECK(shifted(0.5) == shifted(0.5));
  CHECK_FALSE(shifted(0.5) == shifted(0.25));
}

TEST_CASE("a user's layer without parameters cannot be written") {
  const auto activation = numerics::sin(1, 1, 0.3);
  const Layer layer = nonlinearity("test_unknown", activation);
  AttentionOptions attends;
  attends.weights = AttentionWeights::elementwise(layer);
  const std::string rest =
      " (test_unknown): cannot be written, because it is a layer of your own, made from a function or object "
      "that no "
      "file can hold; in C++, give pair_layer(), row_layer() or nonlinearity() its parameters; in Python, "
      "keep the "
      "code that makes the network";
  CHECK(error_message<Error>([&] {
          static_cast<void>(to_json(Network({dense(), layer})));
        }) == "layers[1]" + rest);
  CHECK(error_message<Error>([&] { static_cast<void>(to_json(Network({attention(attends)}))); }) ==
        "layers[0].weights" + rest);
  // It still prints, and equals its copies.
  CHECK(layer == nonlinearity("test_unknown", activation));
  CHECK_FALSE(layer == nonlinearity("test_unknown", numerics::sin(1, 1, 0.3)));
  // Prints number the objects of a kind in the order in which they were first made into layers, without addresses.
  const auto printed = [](const Layer& shown) {
    std::ostringstream text;
    text << Network({shown});
    return text.str();
  };
  const auto first = numerics::sin(1, 1, 0.5), second = numerics::sin(1, 1, 0.6);
  const Layer numbered = nonlinearity("test_numbered", first), other = nonlinearity("test_numbered", second);
  CHECK(printed(numbered).find("activation=1") != std::string::npos);
  CHECK(printed(other).find("activation=2") != std::string::npos);
  CHECK(printed(nonlinearity("test_numbered", first)) == printed(numbered));
}

}  // namespace
}  // namespace widelimit::testing
