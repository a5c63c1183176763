// Masks behind transposed convolutions, against plain loops over taps.
#include <doctest/doctest.h>

#include <vector>

#include "support/random_inputs.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

constexpr Index positions_in_front = 6, inputs = 3, channel_count = 2;

struct TransposedCase {
  Index filter;
  Index stride;
  Padding padding;
  Index front;  ///< Tap o of position i goes to stride i + o - front.
  Index new_size;
};

/// The inputs behind, tap by tap, and which of their positions read no masked one.
class TransposedInputs {
 public:
  TransposedInputs(const TransposedCase& which, const xt::xarray<double>& x, const xt::xarray<bool>& mask)
      : which_{which}, taps_(static_cast<std::size_t>(which.filter)), counts_(inputs, which.new_size) {
    counts_.setOnes();
    for (Matrix<double>& tap : taps_) tap = Matrix<double>::Zero(inputs * which.new_size, channel_count);
    for (Index k = 0; k < inputs; ++k)
      for (Index i = 0; i < positions_in_front; ++i)
        for (Index o = 0; o < which.filter; ++o) read(k, i, o, x, mask);
  }

  /// K' of positions a of input k and b of input l.
  [[nodiscard]] double kernel(Index k, Index a, Index l, Index b) const {
    if (counts_(k, a) == 0 || counts_(l, b) == 0) return 0;
    double sum = 0;
    for (const Matrix<double>& tap : taps_)
      sum += tap.row(k * which_.new_size + a).dot(tap.row(l * which_.new_size + b));
    return 0.2 + 1.3 * sum / static_cast<double>(which_.filter * channel_count);
  }
  [[nodiscard]] double counted(Index k) const { return counts_.row(k).sum(); }

 private:
  void read(Index k, Index i, Index o, const xt::xarray<double>& x, const xt::xarray<bool>& mask) {
    Index place = which_.stride * i + o - which_.front;
    if (which_.padding == Padding::circular)
      place = ((place % which_.new_size) + which_.new_size) % which_.new_size;
    if (place < 0 || place >= which_.new_size) return;
    if (!mask(k, i)) {
      counts_(k, place) = 0;
      return;
    }
    for (Index c = 0; c < channel_count; ++c)
      taps_[static_cast<std::size_t>(o)](k * which_.new_size + place, c) += x(k, i, c);
  }

  TransposedCase which_;
  std::vector<Matrix<double>> taps_;
  Matrix<double> counts_;
};

TEST_CASE("behind transposed convolutions a position is masked if one that it reads is") {
  const auto x = random_inputs(31, {inputs, positions_in_front, channel_count});
  xt::xarray<bool> mask = xt::ones<bool>({inputs, positions_in_front});
  mask(0, 0) = mask(0, 3) = mask(1, 5) = false;
  for (const TransposedCase& which : {TransposedCase{3, 2, Padding::same, 0, 12},
                                      {2, 3, Padding::valid, 0, 18},
                                      {1, 3, Padding::same, 0, 18},
                                      {3, 2, Padding::circular, 0, 12}}) {
    CAPTURE(which.filter);
    const TransposedInputs expected(which, x, mask);
    const Layer layer = conv_transpose({{which.filter}, {which.stride}, which.padding, 1.3, 0.2});
    const Inputs<double> masked{Inputs<double>(x), mask};
    const auto pooled = gram(Network({layer, global_average_pool()}), masked),
               flat = gram(Network({layer, flatten()}), masked);
    for (Index k = 0; k < inputs; ++k)
      for (Index l = 0; l < inputs; ++l) {
        double sum = 0, trace = 0;
        for (Index a = 0; a < which.new_size; ++a) {
          trace += expected.kernel(k, a, l, a);
          for (Index b = 0; b < which.new_size; ++b) sum += expected.kernel(k, a, l, b);
        }
        const double pairs = expected.counted(k) * expected.counted(l);
        CHECK(pooled.nngp(k, l) == doctest::Approx(sum / pairs).epsilon(1e-13).scale(1));
        CHECK(flat.nngp(k, l) ==
              doctest::Approx(trace / static_cast<double>(which.new_size)).epsilon(1e-13).scale(1));
        CHECK(pooled.ntk(k, l) == pooled.nngp(k, l));
      }
  }
}

}  // namespace
}  // namespace widelimit::testing
