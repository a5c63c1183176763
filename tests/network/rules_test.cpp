// What may follow what, what shapes fit, and what lowering says where they do not.
#include <doctest/doctest.h>

#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/dropout.hpp"
#include "widelimit/layers/layer_norm.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

const Shape image{4, 4};

Layer conv3() { return conv({{3, 3}, {}, Padding::same, 1, 0}); }
Layer pool2() { return average_pool({{2, 2}, {}, Padding::valid}); }

/// The error of lowering, or "accepted".
std::string lowered(const Layers& layers, const Shape& shape = image) {
  try {
    static_cast<void>(Network(layers).describe(shape));
    return "accepted";
  } catch (const NetworkError& error) {
    return error.what();
  }
}

const std::string insert_weights = "insert a dense or convolutional layer before it";

TEST_CASE("layers with weights accept anything") {
  for (const Layer& weights :
       {dense(), conv3(), local_conv({{2, 2}, {}, Padding::same, 1, 0}), attention()}) {
    CAPTURE(weights.kind());
    CHECK(lowered({weights}) == "accepted");                                    // raw
    CHECK(lowered({dense(), weights}) == "accepted");                           // Gaussian
    CHECK(lowered({dense(), relu(), weights}) == "accepted");                   // not Gaussian
    CHECK(lowered({dense(), concat({{1, {relu()}}}), weights}) == "accepted");  // mixture
    CHECK(lowered({weights, relu()}) == "accepted");                            // leaves Gaussian
    CHECK(lowered({dropout(0.5), weights, relu()}) == "accepted");
  }
}

TEST_CASE("a nonlinearity accepts Gaussian channels only") {
  CHECK(lowered({dense(), relu()}) == "accepted");
  CHECK(lowered({relu()}) ==
        "layers[0] (relu): expected Gaussian channels, got raw inputs; " + insert_weights);
  CHECK(lowered({pool2(), layers::tanh()}) ==
        "layers[1] (tanh): expected Gaussian channels, got raw inputs; " + insert_weights);
  CHECK(lowered({dense(), relu(), relu()}) ==
        "layers[2] (relu): expected Gaussian channels, got channels that are not Gaussian; " +
            insert_weights);
  CHECK(lowered({dense(), dropout(0.9), relu()}) ==
        "layers[2] (relu): expected Gaussian channels, got channels that are not Gaussian; " +
            insert_weights);
}

TEST_CASE("pooling, flatten and norms leave the distribution as it was") {
  for (const Layer& layer : {pool2(), flatten(), global_average_pool(), global_sum_pool(), rms_norm()}) {
    CAPTURE(layer.kind());
    CHECK(lowered({layer}) == "accepted");
    CHECK(lowered({dense(), layer, relu()}) == "accepted");
    CHECK(lowered({dense(), relu(), layer}) == "accepted");
    CHECK(lowered({dense(), relu(), layer, relu()}).find("layers[3] (relu): expected Gaussian") == 0);
  }
  CHECK(lowered({rms_norm(), relu()}).find("layers[1] (relu): expected Gaussian") == 0);
}

TEST_CASE("layer norm accepts Gaussian channels and raw inputs") {
  CHECK(lowered({layer_norm()}) == "accepted");
  CHECK(lowered({pool2(), layer_norm(), dense()}) == "accepted");
  CHECK(lowered({dense(), layer_norm(), relu()}) == "accepted");
  CHECK(lowered({dense(), relu(), layer_norm()}) ==
        "layers[2] (layer_norm): expected Gaussian channels, got channels that are not Gaussian; " +
            insert_weights);
  CHECK(lowered({layer_norm(), relu()}).find("layers[1] (relu): expected Gaussian") == 0);
}

TEST_CASE("a sum is Gaussian if all branches are") {
  CHECK(lowered({dense(), sum({{1, {}}, {1, {relu(), dense()}}}), relu()}) == "accepted");
  CHECK(lowered({dense(), relu(), sum({{1, {}}, {1, {dense()}}}), relu()})
            .find("layers[3] (relu): expected Gaussian") == 0);
  CHECK(lowered({dense(), relu(), sum({{1, {}}, {1, {dense()}}}), layer_norm()})
            .find("layers[3] (layer_norm): expected Gaussian") == 0);
  for (const Layer& next : {dense(), conv3(), attention(), rms_norm(), pool2()})
    CHECK(lowered({sum({{1, {}}, {1, {dense()}}}), next}) == "accepted");
  CHECK(lowered({sum({{1, {}}, {1, {dense()}}}), relu()}).find("layers[1] (relu): expected Gaussian") == 0);
}

TEST_CASE("a product is not Gaussian") {
  CHECK(lowered({dense(), product({{1, {}}, {1, {dense()}}}), dense()}) == "accepted");
  CHECK(lowered({dense(), product({{1, {dense()}}, {1, {dense()}}}), relu()})
            .find("layers[2] (relu): expected Gaussian") == 0);
}

TEST_CASE("all branches but one need fresh weights") {
  for (const auto& join : {+[](std::vector<Branch> branches) { return sum(std::move(branches)); },
                           +[](std::vector<Branch> branches) { return product(std::move(branches)); }}) {
    const auto two = [&](const Layers& first, const Layers& second) {
      return lowered({dense(), join({{1, first}, {1, second}})});
    };
    CHECK(two({}, {dense()}) == "accepted");
    CHECK(two({relu()}, {dense()}) == "accepted");
    CHECK(two({}, {dense(), pool2(), average_pool({{1, 1}, {}, Padding::valid})})
              .find("expected branches of equal shape") != std::string::npos);
    CHECK(two({}, {dense(), layer_norm()}) == "accepted");
    CHECK(two({}, {attention()}) == "accepted");
    for (const Layers& second : {Layers{}, Layers{relu()}, Layers{rms_norm()}}) {
      const std::string message = two({}, second);
      CHECK(message.find("layers[1] (") == 0);
      CHECK(message.find("branches 0 and 1 carry their input") != std::string::npos);
      CHECK(message.find("all but one of them") != std::string::npos);
      CHECK(message.find("a dense, convolutional or attention layer") != std::string::npos);
    }
  }
}

TEST_CASE("what follows the weights of a branch has the mean 0 in sums, and is anything in products") {
  const std::vector<Branch> branches{{1, {relu()}}, {1, {dense(), relu()}}};
  CHECK(lowered({dense(), sum(branches)}).find("end all but one of them with a dense") != std::string::npos);
  CHECK(lowered({dense(), product(branches), dense()}) == "accepted");
  CHECK(lowered({product({{1, {dense(), relu()}}, {1, {dense(), relu()}}}), dense()}) == "accepted");
  // The mean of such a product is not 0.
  const Layer positive = product(branches);
  CHECK(lowered({dense(), sum({{1, {positive}}, {1, {dense()}}})}) == "accepted");
  CHECK(lowered({dense(), sum({{1, {positive}}, {1, {positive}}})}).find("branches 0 and 1") !=
        std::string::npos);
}

TEST_CASE("weights before a branching are not fresh inside it") {
  // The inner sum's weights make the inner skip's branch independent of the inner input, but not ...
  const Layer inner = sum({{1, {}}, {1, {dense()}}});
  CHECK(lowered({dense(), sum({{1, {}}, {1, {inner}}})}).find("branches 0 and 1") != std::string::npos);
  // ... unless something fresh stands after both inner branches, or before the inner branching.
  CHECK(lowered({dense(), sum({{1, {}}, {1, {inner, dense()}}})}) == "accepted");
  CHECK(lowered({dense(), sum({{1, {}}, {1, {dense(), inner}}})}) == "accepted");
  CHECK(lowered({dense(), sum({{1, {}}, {1, {sum({{1, {dense()}}, {1, {dense()}}})}}})}) == "accepted");
  CHECK(lowered({dense(), sum({{1, {}}, {1, {repeat(2, {dense(), relu()})}}})}).find("branches 0 and 1") !=
        std::string::npos);
}

TEST_CASE("a concatenation is a mixture of groups") {
  const Layer groups = concat({{0.5, {dense()}}, {0.5, {conv3()}}});
  const Layer mixed = concat({{0.5, {dense()}}, {0.5, {dense(), relu()}}});
  CHECK(lowered({groups, relu()}) == "accepted");
  CHECK(lowered({groups, pool2(), relu(), dense()}) == "accepted");
  CHECK(lowered({groups, flatten(), relu()}) == "accepted");
  CHECK(lowered({groups, relu(), relu()}).find("layers[2] (relu): expected Gaussian") == 0);
  CHECK(lowered({mixed, relu()}) ==
        "layers[1] (relu): expected Gaussian channels, got a mixture of channel groups; " + insert_weights);
  CHECK(lowered({mixed, rms_norm(), dense()}) == "accepted");
  CHECK(lowered({groups, layer_norm(), dense()}) == "accepted");
  // After a norm over all channels the groups' channels are no longer Gaussian by themselves.
  CHECK(lowered({groups, layer_norm(), relu()}).find("layers[2] (relu): expected Gaussian") == 0);
  CHECK(lowered({groups, rms_norm(), relu()}).find("layers[2] (relu): expected Gaussian") == 0);
  CHECK(lowered({concat({{0.5, {groups}}, {0.5, {dense()}}}), relu()}) == "accepted");
}

TEST_CASE("a nonlinearity after a concatenation acts group by group") {
  Matrix<double> x(3, 2);
  x << 1, 2, -0.5, 0.3, 0.2, -2;
  const Layers a{dense({8, 0.1})}, b{dense({0.1, 2})};
  const auto with = [](Layers layers) {
    layers.push_back(relu());
    return layers;
  };
  const Network behind({concat({{0.25, a}, {0.75, b}}), relu(), dense()});
  const Network inside({concat({{0.25, with(a)}, {0.75, with(b)}}), dense()});
  const auto pushed = gram<double>(behind, x), written = gram<double>(inside, x);
  CHECK(pushed.nngp == written.nngp);
  CHECK(pushed.ntk == written.ntk);
  // Not what the nonlinearity would do to one Gaussian with the merged covariance.
  const Network merged({dense({0.25 * 8 + 0.75 * 0.1, 0.25 * 0.1 + 0.75 * 2}), relu(), dense()});
  CHECK((gram<double>(merged, x).nngp - pushed.nngp).norm() > 1e-3 * pushed.nngp.norm());
}

TEST_CASE("errors name the path through branches and repeats") {
  CHECK(lowered({dense(), sum({{1, {}}, {1, {dense(), relu(), layers::abs(), dense()}}})})
            .find("layers[1].branches[1].layers[2] (abs): expected Gaussian") == 0);
  CHECK(lowered({dense(), repeat(2, {relu(), layers::abs()})})
            .find("layers[1].layers[1] (abs): expected Gaussian") == 0);
}

TEST_CASE("shapes are checked") {
  CHECK(lowered({conv({{3}, {}, Padding::same, 1, 0})}) ==
        "layers[0] (conv): expected inputs with 1 spatial axis (one window size an axis), got 2 axes of "
        "sizes 4x4");
  CHECK(lowered({conv({{5, 3}, {}, Padding::valid, 1, 0})}) ==
        "layers[0] (conv): expected at least 5 positions along axis 0 for the window, got 4");
  CHECK(lowered({dense(), pool2(), pool2(), pool2()}) ==
        "layers[3] (average_pool): expected at least 2 positions along axis 0 for the window, got 1");
  const std::string vectors =
      "expected inputs with positions, got vectors; leave the layer out (named networks: axes=0)";
  CHECK(lowered({flatten()}, {}) == "layers[0] (flatten): " + vectors);
  CHECK(lowered({flatten(), global_average_pool()}) == "layers[1] (global_average_pool): " + vectors);
  CHECK(
      lowered({dense(), flatten(), attention()})
          .find("layers[2] (attention): expected inputs with positions, got vectors; put attention before") ==
      0);
  CHECK(lowered({conv3()}, {}) ==
        "layers[0] (conv): expected inputs with 2 spatial axes (one window size an axis), got no positions");
  CHECK(lowered({sum({{1, {conv({{1, 1}, {2, 2}, Padding::same, 1, 0})}}, {1, {dense()}}})}) ==
        "layers[0] (sum): expected branches of equal shape, got 2 axes of sizes 2x2 (branch 0) and 2 axes of "
        "sizes 4x4 (branch 1)");
  CHECK(lowered({concat({{0.5, {dense(), flatten()}}, {0.5, {dense()}}})}) ==
        "layers[0] (concat): expected branches of equal shape, got no positions (branch 0) and 2 axes of "
        "sizes 4x4 (branch 1)");
  CHECK(lowered({dense()}, {4, 0}) == "input: sizes must be positive, got 4x0");
  AttentionOptions options;
  options.positions =
      PositionalEncodings{MatrixPositions{Matrix<double>::Identity(9, 9), 1}, 1, 1, ValueEncodings::absent};
  CHECK(lowered({attention(options)}) ==
        "layers[0] (attention): expected a positions' matrix of 16 x 16 for inputs of 4x4, got 9 x 9");
}

TEST_CASE("a Gram matrix needs a network that ends without positions") {
  const xt::xarray<double> x = xt::ones<double>({2, 4, 4, 1});
  CHECK_THROWS_WITH_AS(
      static_cast<void>(gram<double>(Network("open", {dense()}), x)),
      "network 'open': expected no positions after the last layer, got 2 axes of sizes 4x4; add flatten, "
      "global_average_pool or global_sum_pool",
      NetworkError);
}

}  // namespace
}  // namespace widelimit::testing
