// What lies behind rows in memory decides nothing: planes shorter than a vector, beside features that are no variances.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/activation_layers.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit::testing {
namespace {

using namespace layers;

Layer width_attention() {
  AttentionOptions options;
  options.scaling = AttentionScaling::inverse_width;
  return attention(options);
}

/// One position is left behind the convolution, and the rows of the nonlinearity are vectors all the same.
Network to_one_position(const Layer& nonlinearity) {
  return Network({conv({.filter = {4, 4}, .padding = Padding::valid}), width_attention(), nonlinearity,
                  average_pool({.window = {1, 1}, .padding = Padding::circular}), global_average_pool()});
}

/// For the same kernel by layers of vectors.
template <typename Scalar>
xt::xarray<Scalar> flattened(const xt::xarray<Scalar>& images) {
  xt::xarray<Scalar> vectors = images;
  vectors.reshape({images.shape(0), images.size() / images.shape(0)});
  return vectors;
}

template <typename Scalar>
void check_one_position(double tolerance) {
  for (const Layer& nonlinearity : testing::quadrature_activations())
    for (const Index channels : {1, 2, 15, 16, 17, 31, 33, 65})
      for (unsigned seed = 0; seed < 6; ++seed) {
        CAPTURE(nonlinearity.kind());
        CAPTURE(channels);
        CAPTURE(seed);
        const xt::xarray<Scalar> images = random_inputs<Scalar>(seed, {3, 4, 4, channels});
        GramOptions options;
        options.threads = 1;
        const auto found = gram<Scalar>(to_one_position(nonlinearity), images, options);
        const Network by_vectors({dense(), dense(), nonlinearity});
        const auto expected = gram<Scalar>(by_vectors, flattened(images), options);
        CHECK((found.nngp - expected.nngp).cwiseAbs().maxCoeff() < tolerance);
      }
}

TEST_CASE("padding: one position left, any number of channels") {
  check_one_position<double>(1e-12);
  check_one_position<float>(1e-5);
}

}  // namespace
}  // namespace widelimit::testing
