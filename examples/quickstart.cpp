// The README's example: the kernel of a small convolutional network between two images.
#include <cstdio>
#include <widelimit/kernels.hpp>
#include <xtensor/xrandom.hpp>

int main() {
  using namespace widelimit;
  const Network network("two convolutions",
                        {layers::conv({.filter = {3, 3}, .weight_variance = 2}), layers::relu(),
                         layers::conv({.filter = {3, 3}, .weight_variance = 2}), layers::relu(),
                         layers::attention(), layers::flatten(), layers::dense()});
  xt::random::seed(1);
  const xt::xarray<float> images = xt::random::randn<float>({3, 8, 8, 3});
  const auto [nngp, ntk, nngp_error, ntk_error] = gram<float>(network, images);
  for (Index i = 0; i < 3; ++i) std::printf("%.4f %.4f %.4f\n", ntk(i, 0), ntk(i, 1), ntk(i, 2));
}
