#include "widelimit/network/network.hpp"

#include <doctest/doctest.h>

#include <sstream>

#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

TEST_CASE("describe gives one line a layer with the shape after it") {
  const Network network("block", {conv({{3, 3}, {}, Padding::same, 1, 0}),
                                  sum({{0.5, {}}, {1, {relu(), conv({{3, 3}, {}, Padding::same, 1, 0})}}}),
                                  repeat(2, {relu(), dense()}), flatten()});
  CHECK(network.describe({4, 4}) ==
        "block  input 4x4\n"
        "  4x4           conv  filter=[3,3]  strides=[1,1]  padding=\"same\"  weight_variance=1.0  "
        "bias_variance=0.0\n"
        "  4x4           sum\n"
        "  4x4             branch 0\n"
        "  4x4             branch 1\n"
        "  4x4               relu\n"
        "  4x4               conv  filter=[3,3]  strides=[1,1]  padding=\"same\"  weight_variance=1.0  "
        "bias_variance=0.0\n"
        "  4x4           repeat  times=2\n"
        "  4x4             relu\n"
        "  4x4             dense  weight_variance=1.0  bias_variance=0.0\n"
        "  4x4             relu\n"
        "  4x4             dense  weight_variance=1.0  bias_variance=0.0\n"
        "  no positions  flatten\n");
}

TEST_CASE("printing needs no shape") {
  std::ostringstream stream;
  stream << Network({dense({2, 0.1}), sum({{0.5, {}}, {1, {relu(), dense()}}})});
  CHECK(stream.str() ==
        "network\n"
        "  0  dense  weight_variance=2.0  bias_variance=0.1\n"
        "  1  sum\n"
        "     branch  scale=0.5\n"
        "     branch  scale=1.0\n"
        "          0  relu\n"
        "          1  dense  weight_variance=1.0  bias_variance=0.0\n");
}

TEST_CASE("networks differ by name and order") {
  CHECK(Network("a", {dense()}) != Network("b", {dense()}));
  CHECK(Network({dense(), relu()}) != Network({relu(), dense()}));
}

TEST_CASE("networks have at most 100,000 layers, in a list as in repeats") {
  const Layers many(200'001, dense());
  CHECK_THROWS_WITH_AS(
      static_cast<void>(gram<double>(Network("long", many), xt::xarray<double>(xt::ones<double>({2, 1})))),
      "network 'long': expected at most 100000 layers in all, repeats written out, got 200001", NetworkError);
}

}  // namespace
}  // namespace widelimit::testing
