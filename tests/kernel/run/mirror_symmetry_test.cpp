// Networks that do not tell left from right.
#include "kernel/run/mirror_symmetry.hpp"

#include <doctest/doctest.h>

#include "support/random_inputs.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::mirror_symmetry_test {
namespace {

/// Exchanges left and right of images of one shape.
Inputs<double> flipped(const Inputs<double>& x) {
  const Index height = x.shape(0)[0], width = x.shape(0)[1], channels = x.channels();
  xt::xarray<double> array =
      xt::xarray<double>::from_shape({static_cast<std::size_t>(x.size()), static_cast<std::size_t>(height),
                                      static_cast<std::size_t>(width), static_cast<std::size_t>(channels)});
  double* next = array.data();
  for (Index i = 0; i < x.size(); ++i)
    for (Index row = 0; row < height; ++row)
      for (Index column = width; column-- > 0;)
        for (Index k = 0; k < channels; ++k)
          *next++ = x[i][static_cast<std::size_t>((row * width + column) * channels + k)];
  return Inputs<double>(std::move(array));
}

MirrorSymmetry symmetry_of(const std::string& layers, const Inputs<double>& like) {
  return {parse_network(R"({"widelimit": 1, "layers": )" + layers + "}"), like, flipped, GramOptions{}};
}

const std::string conv = R"({"layer": "conv", "filter": [3, 3]}, {"layer": "relu"}, )";

TEST_CASE("MirrorSymmetry: of networks whose layers look to both sides alike") {
  const Inputs<double> x(random_inputs(1, {2, 4, 5, 2}));
  CHECK(symmetry_of("[" + conv + R"({"layer": "global_average_pool"}, {"layer": "dense"}])", x).holds_for(x));
  CHECK(symmetry_of("[" + conv + R"({"layer": "flatten"}, {"layer": "dense"}])", x).holds_for(x));
  // A stride that leaves both ends out alike.
  CHECK(symmetry_of(
            R"([{"layer": "conv", "filter": [3, 3], "strides": [1, 2], "padding": "valid"}, {"layer": "relu"},
                        {"layer": "global_average_pool"}])",
            x)
            .holds_for(x));
}

TEST_CASE("MirrorSymmetry: not of networks that tell left from right, although data may not say so") {
  const Inputs<double> even(random_inputs(2, {2, 4, 6, 2}));
  const std::string strided = R"([{"layer": "conv", "filter": [3, 3], "strides": [1, 2], "padding": "same"},
                                  {"layer": "relu"}, {"layer": "global_average_pool"}])";
  CHECK_FALSE(symmetry_of(strided, even).holds_for(even));
  // Images that are their own mirror images.
  const Inputs<double> zeros(xt::xarray<double>(xt::zeros<double>({2, 4, 6, 2})));
  CHECK_FALSE(symmetry_of(strided, zeros).holds_for(zeros));
}

TEST_CASE("MirrorSymmetry: of the shapes alone that were asked about") {
  const Inputs<double> x(random_inputs(1, {2, 4, 5, 2})), wider(random_inputs(1, {2, 4, 6, 2}));
  const MirrorSymmetry symmetry = symmetry_of("[" + conv + R"({"layer": "global_average_pool"}])", x);
  CHECK(symmetry.holds_for(x));
  CHECK_FALSE(symmetry.holds_for(wider));
  const Inputs<double> masked(x, xt::xarray<bool>(xt::ones<bool>({2, 4, 5})));
  CHECK_FALSE(symmetry.holds_for(masked));
}

TEST_CASE("MirrorSymmetry: a network that refuses the inputs counts as one that tells left from right") {
  const Inputs<double> x(random_inputs(1, {2, 4, 5, 2}));
  CHECK_FALSE(symmetry_of(R"([{"layer": "conv", "filter": [9, 9], "padding": "valid"}, {"layer": "relu"},
                              {"layer": "global_average_pool"}])",
                          x)
                  .holds_for(x));
}

}  // namespace
}  // namespace widelimit::testing::mirror_symmetry_test
