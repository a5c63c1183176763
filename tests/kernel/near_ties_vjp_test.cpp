// Derivatives between inputs that are multiples of each other or nearly so, in float and double: slopes of sign and of
// ReLU's NTK are infinite at correlations of 1 and -1, and next to them they have only the digits of 1 - |correlation|.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "kernel/backends/cpu/backward/plan/steep_stages.hpp"
#include "layers/activation_layer.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/kernel/gram_gradient.hpp"
#include "widelimit/kernel/gram_vjp.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/network/network.hpp"
#include "widelimit/numerics/activations.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;
using Vector = std::vector<long double>;

const Layer dense_alone = dense({.weight_variance = 1, .bias_variance = 0});

long double norm(const Vector& x) {
  long double square = 0;
  for (const long double entry : x) square += entry * entry;
  return std::sqrt(square);
}

/// The angle between two vectors, without a difference of nearly equal numbers (Kahan).
long double angle(const Vector& x, const Vector& y) {
  Vector sum, difference;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const long double u = x[k] / norm(x), v = y[k] / norm(y);
    sum.push_back(u + v);
    difference.push_back(u - v);
  }
  return 2 * std::atan2(norm(difference), norm(sum));
}

/// One hidden layer, by hand: the NNGP of sign, of the step, and the NTK of ReLU.
long double sign_nngp(const Vector& x, const Vector& y) {
  return 1 - 2 * angle(x, y) / std::numbers::pi_v<long double>;
}
long double step_nngp(const Vector& x, const Vector& y) {
  return 0.5L - angle(x, y) / (2 * std::numbers::pi_v<long double>);
}
long double relu_ntk(const Vector& x, const Vector& y) {
  const long double theta = angle(x, y), rest = std::numbers::pi_v<long double> - theta;
  const long double product = norm(x) * norm(y) / static_cast<long double>(x.size());
  return product * (std::sin(theta) + 2 * rest * std::cos(theta)) / (2 * std::numbers::pi_v<long double>);
}

struct Hidden {
  std::string name;
  Layer layer;
  bool with_ntk;
  long double (*kernel)(const Vector&, const Vector&);
};

std::vector<Hidden> hidden_layers() {
  return {{"sign", sign(), false, sign_nngp},
          {"step", rectified_monomial(0), false, step_nngp},
          {"relu", relu(), true, relu_ntk}};
}

template <typename Scalar>
KernelCotangents<Scalar> one_of(bool with_ntk) {
  const Matrix<Scalar> one = Matrix<Scalar>::Ones(1, 1);
  return with_ntk ? KernelCotangents<Scalar>{{}, one} : KernelCotangents<Scalar>{one, {}};
}

template <typename Scalar>
xt::xarray<Scalar> as_batch(const Vector& x) {
  xt::xarray<Scalar> batch = xt::zeros<Scalar>({std::size_t{1}, x.size()});
  std::transform(x.begin(), x.end(), batch.begin(),
                 [](long double entry) { return static_cast<Scalar>(entry); });
  return batch;
}

template <typename Scalar>
std::vector<double> derivative(const Network& network, const Vector& x, const Vector& y, bool with_ntk) {
  const auto gradient = gram_vjp<Scalar>(network, as_batch<Scalar>(x), as_batch<Scalar>(y),
                                         one_of<Scalar>(with_ntk), VjpInputs::x1);
  return {gradient.x1.begin(), gradient.x1.end()};
}

/// By central differences of fourth order, whose step is small against the angle.
std::vector<double> difference(const Hidden& hidden, const Vector& x, const Vector& y) {
  const long double step =
      1e-3L * std::min(angle(x, y), std::numbers::pi_v<long double> - angle(x, y)) * norm(x);
  std::vector<double> gradient;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const auto at = [&](long double shift) {
      Vector moved = x;
      moved[k] += shift;
      return hidden.kernel(moved, y);
    };
    const long double near = (at(step) - at(-step)) / (2 * step),
                      far = (at(2 * step) - at(-2 * step)) / (4 * step);
    gradient.push_back(static_cast<double>((4 * near - far) / 3));
  }
  return gradient;
}

double worst(const std::vector<double>& left, const std::vector<double>& right) {
  double largest = 0;
  for (std::size_t k = 0; k < left.size(); ++k) {
    // NaN must not pass as small.
    if (!std::isfinite(left[k])) return left[k];
    largest = std::max(largest, std::abs(left[k] - right[k]));
  }
  return largest;
}

Vector rounded_to_float(Vector x) {
  for (long double& entry : x) entry = static_cast<float>(entry);
  return x;
}

/// A vector, and `sign` times it, moved by this share of it in a random direction.
std::pair<Vector, Vector> near_tie(unsigned seed, std::size_t channels, double sign, double share) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  Vector x, y;
  for (std::size_t k = 0; k < channels; ++k) {
    const double entry = normal(generator);
    x.push_back(static_cast<float>(entry));
    y.push_back(sign * x.back() + share * normal(generator));
  }
  return {x, rounded_to_float(y)};
}

}  // namespace

TEST_CASE("gram_vjp: beside a tie, the derivatives of sign, step and ReLU's NTK are those of the angle") {
  const Vector x{.1F, .2F, .3F}, y{.1F, .2F, .3001F};
  for (const Hidden& hidden : hidden_layers()) {
    CAPTURE(hidden.name);
    const Network network({dense_alone, hidden.layer, dense_alone});
    const std::vector<double> expected = difference(hidden, x, y);
    CHECK(worst(derivative<float>(network, x, y, hidden.with_ntk), expected) < 1e-6);
    CHECK(worst(derivative<double>(network, x, y, hidden.with_ntk), expected) < 1e-6);
  }
}

TEST_CASE("gram_vjp: near ties drawn at random, of either sign and from one to 300 channels") {
  unsigned seed = 1;
  for (const Hidden& hidden : hidden_layers()) {
    const Network network({dense_alone, hidden.layer, dense_alone});
    for (const double sign : {1.0, -1.0, 3.0})
      for (const double share : {1e-1, 3e-2, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6})
        for (const std::size_t channels : {2, 3, 20, 300}) {
          const auto [x, y] = near_tie(seed++, channels, sign, share);
          const long double theta = angle(x, y),
                            distance = std::min(theta, std::numbers::pi_v<long double> - theta);
          CAPTURE(hidden.name);
          CAPTURE(sign);
          CAPTURE(share);
          CAPTURE(channels);
          const std::vector<double> expected = difference(hidden, x, y);
          double largest = 0;
          for (const double entry : expected) largest = std::max(largest, std::abs(entry));
          // What double loses of 1 - |correlation|, and what float does where it is far enough from a tie.
          const double lost = static_cast<double>(1e-15L / (distance * distance));
          CHECK(worst(derivative<double>(network, x, y, hidden.with_ntk), expected) <=
                (1e-8 + lost) * largest);
          CHECK(worst(derivative<float>(network, x, y, hidden.with_ntk), expected) <=
                (1e-3 + lost) * largest);
        }
  }
}

TEST_CASE_TEMPLATE("gram_vjp: at a tie, what an infinite slope multiplies counts as 0", Scalar, float,
                   double) {
  for (const Hidden& hidden : hidden_layers())
    for (const std::size_t channels : {1, 2, 7, 300, 3000})
      for (const double factor : {1.0, -1.0, 2.0, -3.0, 0.1}) {
        Vector x = near_tie(static_cast<unsigned>(channels), channels, 1, 0).first, y;
        for (const long double entry : x) y.push_back(static_cast<Scalar>(factor * entry));
        CAPTURE(hidden.name);
        CAPTURE(channels);
        CAPTURE(factor);
        const Network network({dense_alone, hidden.layer, dense_alone});
        // The kernel is constant for jumps. ReLU's NTK has the derivatives of c g and of the NNGP: g x' + g x', / C.
        std::vector<double> expected;
        for (const long double entry : y)
          expected.push_back(
              hidden.with_ntk && factor > 0 ? static_cast<double>(entry) / static_cast<double>(channels) : 0);
        double scale = 0;
        for (const double entry : expected) scale = std::max(scale, std::abs(entry));
        const double least = 1 / static_cast<double>(norm(x));
        CHECK(worst(derivative<Scalar>(network, x, y, hidden.with_ntk), expected) <=
              (sizeof(Scalar) == 4 ? 1e-5 : 1e-7) * std::max(scale, least));
      }
}

TEST_CASE("gram_vjp: inputs of one channel have constant kernels of sign, also in one batch") {
  auto x = random_inputs<float>(1, {6, 1});
  x(1, 0) = x(0, 0);
  x(2, 0) = -x(0, 0);
  x(3, 0) = 1e-6F;
  x(4, 0) = -7e5F;
  for (const Layer& layer : {sign(), rectified_monomial(0)}) {
    const Network network({dense_alone, layer, dense_alone, layer, dense_alone});
    const Matrix<float> ones = Matrix<float>::Ones(6, 6);
    for (const float entry : gram_vjp<float>(network, x, {ones, ones})) CHECK(entry == 0);
    for (const double number : gram_number_vjp<float>(network, x, {ones, {}}, {"layers[0].weight_variance"}))
      CHECK(number == doctest::Approx(0));
  }
}

namespace {

/// Largest difference of float from double, relative to the largest entry.
double float_beside_double(const Network& network, const xt::xarray<float>& x, bool with_ntk) {
  const xt::xarray<double> wide = xt::cast<double>(x);
  const auto size = static_cast<Index>(x.shape(0));
  Matrix<double> weights(size, size);
  for (Index i = 0; i < size; ++i)
    for (Index j = 0; j < size; ++j) weights(i, j) = std::cos(static_cast<double>(3 * i + j));
  const KernelCotangents<double> cotangents{weights, with_ntk ? weights : Matrix<double>()};
  const KernelCotangents<float> narrow{cotangents.nngp.cast<float>(), cotangents.ntk.cast<float>()};
  const auto of_float = gram_vjp<float>(network, x, narrow);
  const auto of_double = gram_vjp<double>(network, wide, cotangents);
  double largest = 0, worst_entry = 0;
  for (std::size_t i = 0; i < of_float.size(); ++i) {
    if (!std::isfinite(of_float.flat(i))) return of_float.flat(i);
    largest = std::max(largest, std::abs(of_double.flat(i)));
    worst_entry = std::max(worst_entry, std::abs(of_double.flat(i) - static_cast<double>(of_float.flat(i))));
  }
  const std::vector<std::string> numbers{"layers[0].weight_variance", "layers[0].bias_variance"};
  const auto numbers_of_float = gram_number_vjp<float>(network, x, narrow, numbers);
  const auto numbers_of_double = gram_number_vjp<double>(network, wide, cotangents, numbers);
  double largest_number = 0, worst_number = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    largest_number = std::max(largest_number, std::abs(numbers_of_double[i]));
    worst_number = std::max(worst_number, std::abs(numbers_of_double[i] - numbers_of_float[i]));
  }
  return std::max(worst_entry / largest, worst_number / largest_number);
}

}  // namespace

TEST_CASE("gram_vjp: in float, near ties after biases, between layers and between positions") {
  const Layer biased = dense({.weight_variance = 1.3, .bias_variance = 1});
  for (const Hidden& hidden : hidden_layers()) {
    CAPTURE(hidden.name);
    auto x = random_inputs<float>(3, {9, 5});
    // A large bias brings all inputs together; two of them are duplicates and two nearly so.
    x *= 1e-2F;
    for (std::size_t k = 0; k < 5; ++k) {
      x(1, k) = x(0, k);
      x(3, k) = x(2, k) * (1 + 1e-4F * static_cast<float>(k));
    }
    CHECK(float_beside_double(Network({biased, hidden.layer, dense_alone}), x, hidden.with_ntk) < 1e-5);
    CHECK(float_beside_double(Network({biased, relu(), biased, hidden.layer, dense_alone}), x,
                              hidden.with_ntk) < 1e-5);
    // Nearly equal images, images that coincide in half of their positions, and an image of one colour.
    auto images = random_inputs<float>(4, {5, 4, 6, 2});
    for (std::size_t i = 0; i < 48; ++i) {
      images.flat(48 + i) = images.flat(i) + 1e-4F * images.flat(96 + i);
      if (i < 24) images.flat(144 + i) = images.flat(i);
      images.flat(192 + i) = 1;
    }
    const Layer filter = conv({.filter = {3, 3}, .weight_variance = 1.5, .bias_variance = 0.1});
    CHECK(float_beside_double(Network({filter, hidden.layer, flatten(), dense_alone}), images,
                              hidden.with_ntk) < 1e-4);
    CHECK(float_beside_double(
              Network({filter, hidden.layer, filter, hidden.layer, global_average_pool(), dense_alone}),
              images, hidden.with_ntk) < 1e-4);
  }
}

TEST_CASE("steep stages are found by their slopes: kinks with the NTK, jumps without it") {
  const auto of = [](const numerics::ActivationPtr& activation) {
    return steepness_of(ActivationStage(activation));
  };
  using namespace numerics;
  for (const ActivationPtr& jump : {numerics::sign(), numerics::rectified_monomial(0)})
    CHECK(of(jump) == Steepness::of_both);
  const auto kinked = [](double x) { return std::min(1.0, std::max(-1.0, x)); };
  const auto slope = [](double x) { return std::abs(x) < 1 ? 1.0 : 0.0; };
  for (const ActivationPtr& kink :
       {numerics::relu(), numerics::leaky_relu(0.1), numerics::abs(),
        ActivationPtr(quadrature_activation(kinked, slope, {.breakpoints = {-1, 1}}))})
    CHECK(of(kink) == Steepness::of_ntk);
  for (const ActivationPtr& smooth :
       {numerics::erf(), numerics::gelu(), numerics::identity(), numerics::exponential(1, 1),
        numerics::rectified_monomial(2), numerics::tanh()})
    CHECK(of(smooth) == Steepness::bounded);
}

}  // namespace widelimit::testing
