// Layers of which only a part is trained: their NTK, and that of finite networks.
#include <doctest/doctest.h>

#include <string>

#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/finite/check_limit.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/laws.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::trainable_test {
namespace {

using namespace widelimit::layers;

constexpr double w = 1.4, b = 0.3;

Layer dense_of(Trainable trainable, bool standard = false) {
  DenseOptions options{.weight_variance = w, .bias_variance = b, .trainable = trainable};
  if (standard) options.standard = StandardParametrisation{.input_width = 3, .width_scale = 2};
  return dense(options);
}

TEST_CASE("the NTK of one layer is what its trained parameters add") {
  const auto x = random_inputs(1, {4, 3});
  const Matrix<double> k = gram<double>(Network({dense({1, 0})}), x).nngp, ones = Matrix<double>::Ones(4, 4);
  const auto ntk = [&](Trainable trainable, bool standard = false) {
    const auto found = gram<double>(Network({dense_of(trainable, standard)}), x);
    CHECK((found.nngp - (w * k + b * ones)).norm() < 1e-14 * found.nngp.norm());
    return found.ntk;
  };
  CHECK((ntk(Trainable::weights) - w * k).norm() < 1e-14 * k.norm());
  CHECK((ntk(Trainable::biases) - b * ones).norm() < 1e-14 * ones.norm());
  CHECK(ntk(Trainable::none) == Matrix<double>::Zero(4, 4));
  CHECK((ntk(Trainable::weights, true) - 1.5 * k).norm() < 1e-14 * k.norm());
  CHECK((ntk(Trainable::biases, true) - ones).norm() < 1e-14 * ones.norm());
  CHECK(ntk(Trainable::none, true) == Matrix<double>::Zero(4, 4));
}

TEST_CASE("the NTKs of the layers of a network add up to the whole one") {
  const auto x = random_inputs(2, {5, 3});
  const auto network = [&](int trained) {
    const auto at = [&](int i) { return trained == -1 || trained == i ? Trainable::all : Trainable::none; };
    return Network({dense_of(at(0)), relu(), dense_of(at(1)), erf(), dense_of(at(2))});
  };
  Matrix<double> sum = Matrix<double>::Zero(5, 5);
  for (int i = 0; i < 3; ++i) sum += gram<double>(network(i), x).ntk;
  const Matrix<double> whole = gram<double>(network(-1), x).ntk;
  CHECK((sum - whole).norm() < 1e-13 * whole.norm());
  // The last layer alone is what the NNGP has as well.
  const auto last = gram<double>(network(2), x);
  CHECK((last.ntk - last.nngp).norm() < 1e-14 * last.nngp.norm());
}

TEST_CASE("networks of finite width have gradients of the trained parameters only") {
  for (const Trainable trainable : {Trainable::weights, Trainable::biases, Trainable::none}) {
    CAPTURE(static_cast<int>(trainable));
    ConvolutionOptions options{
        .filter = {3}, .weight_variance = w, .bias_variance = b, .trainable = trainable};
    for (const Layer& layer :
         {dense_of(trainable), dense_of(trainable, true), conv(options), local_conv(options)}) {
      CAPTURE(layer.kind());
      const auto laws = check_laws(layer);
      CHECK_MESSAGE(laws.passed(), to_string(laws));
    }
    for (const Layer& layer : {dense_of(trainable), conv(options), local_conv(options)}) {
      CAPTURE(layer.kind());
      const auto limit = finite::check_limit(layer);
      CHECK_MESSAGE(limit.passed(), to_string(limit));
    }
  }
}

TEST_CASE("trainable in files") {
  const std::string text =
      R"({"widelimit": 1, "layers": [{"layer": "conv", "filter": [3], "trainable": "biases"}, {"layer": "relu"},
         {"layer": "global_average_pool"}, {"layer": "dense", "trainable": "weights"}]})";
  const Network network = parse_network(text);
  CHECK(to_json(network).find("\"trainable\": \"biases\"") != std::string::npos);
  CHECK(parse_network(to_json(network)) == network);
  CHECK(to_json(Network({dense()})).find("trainable") == std::string::npos);
  CHECK(error_message<Error>([] {
          static_cast<void>(
              parse_network(R"({"widelimit": 1, "layers": [{"layer": "dense", "trainable": "bias"}]})"));
        }).find("trainable") != std::string::npos);
}

}  // namespace
}  // namespace widelimit::testing::trainable_test
