#include <cmath>
#include <cstdio>
#include <widelimit/widelimit.hpp>

// Two orthogonal vectors through one ReLU layer: the arc-cosine kernel says 1 / (2 pi).
int main() {
  using namespace widelimit;
  const Network network({layers::dense(), layers::relu(), layers::dense()});
  const Matrix<double> x = Matrix<double>::Identity(2, 2) * std::sqrt(2.0);
  const auto kernels = gram<double>(network, x);
  std::printf("widelimit %s: %.6f\n", version, kernels.nngp(0, 1));
  return std::abs(kernels.nngp(0, 1) - 0.159155) < 1e-6 ? 0 : 1;
}
