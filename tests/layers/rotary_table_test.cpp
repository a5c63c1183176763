#include "layers/rotary_table.hpp"

#include <doctest/doctest.h>

#include <utility>

using namespace widelimit;
using namespace widelimit::layers;
using doctest::Approx;

namespace {

AttentionOptions rotary_options(double base, Index pairs) {
  AttentionOptions options;
  options.sequence.rotary = RotaryPositions::with_base(base, pairs);
  return options;
}

/// w_k(c - a) of a wave at all pairs of positions.
Matrix<double> wave(const RotaryWaves& waves, std::size_t k, Index positions) {
  return waves.turned(k, Matrix<double>::Ones(positions, positions));
}

}  // namespace

TEST_CASE("rotary waves: their products sum to rho of the difference of two distances") {
  for (const auto& [base, pairs] : {std::pair<double, Index>{10000, 32}, {500, 4}, {1e6, 64}, {10, 1}}) {
    const AttentionOptions options = rotary_options(base, pairs);
    constexpr Index positions = 12;
    const RotaryWaves waves(options, positions);
    const RotaryTable rho(*options.sequence.rotary, 2 * positions);
    CHECK(waves.count() == static_cast<std::size_t>(2 * pairs));
    for (Index a = 0; a < positions; a += 3)
      for (Index b = 0; b < positions; ++b)
        for (Index i = 0; i < positions; i += 2)
          for (Index j = 0; j < positions; j += 5) {
            double sum = 0;
            for (std::size_t k = 0; k < waves.count(); ++k)
              sum += wave(waves, k, positions)(a, i) * wave(waves, k, positions)(b, j);
            CHECK(sum == Approx(rho((i - a) - (j - b))).epsilon(1e-10).scale(1));
          }
  }
}

TEST_CASE("rotary waves: equal frequencies share theirs, and the frequency 0 has one") {
  AttentionOptions options;
  options.sequence.rotary = RotaryPositions{{0.3, 0.0, 0.3, 0.0, -0.3, 0.7, 0.0, 0.0}};
  const RotaryWaves waves(options, 6);
  CHECK(waves.count() == 5);
  const RotaryTable rho(*options.sequence.rotary, 12);
  for (Index i = 0; i < 6; ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < waves.count(); ++k) sum += wave(waves, k, 6)(0, i) * wave(waves, k, 6)(2, 1);
    CHECK(sum == Approx(rho(i + 1)).epsilon(1e-12));
  }
}

TEST_CASE("rotary waves: without rotary positions there is one, which changes nothing") {
  const RotaryWaves none({}, 4);
  CHECK(none.count() == 1);
  CHECK(wave(none, 0, 4) == Matrix<double>::Ones(4, 4));
}
