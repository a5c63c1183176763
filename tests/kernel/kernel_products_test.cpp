// Products with vectors whose kernels a device makes, against matrices of the CPU engine times the vectors. The device
// is PoCL's, which executes OpenCL on the CPU: there is one wherever these tests run.
#include "widelimit/kernel/kernel_products.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>
#include <xtensor/xview.hpp>

#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/device_error.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::kernel_products_test {
namespace {

constexpr double float_error = 3e-6, double_error = 1e-12;

GramOptions on_device() {
  GramOptions options;
  options.device = "pocl";
  return options;
}

Network network_of(const std::string& layers) {
  return parse_network(R"({"widelimit": 1, "layers": [)" + layers + "]}");
}

const std::string dense = R"({"layer": "dense", "weight_variance": 1.9, "bias_variance": 0.1})",
                  unbiased = R"({"layer": "dense", "weight_variance": 1.9, "bias_variance": 0})",
                  relu = R"({"layer": "relu"})";

/// Numbers of floats: equal inputs, opposed ones, one that is 0, and one that is three times another.
xt::xarray<double> inputs_of(Index count, Index channels) {
  xt::xarray<double> x = xt::cast<double>(random_inputs<float>(5, {count, channels}));
  xt::view(x, 1) = xt::view(x, 0);
  xt::view(x, 2) = -xt::view(x, 0);
  xt::view(x, 3) = 0;
  xt::view(x, 5) = 3 * xt::view(x, 4);
  return x;
}

Matrix<double> vectors_of(Index rows, Index columns) {
  const auto numbers = random_inputs<double>(11, {rows, columns});
  return Eigen::Map<const Matrix<double>>(numbers.data(), rows, columns);
}

template <typename Scalar>
Inputs<Scalar> as(const xt::xarray<double>& x) {
  return Inputs<Scalar>(xt::xarray<Scalar>(xt::cast<Scalar>(x)));
}

const Matrix<double>& of(const GramResult<double>& both, Kernels kernel) {
  return kernel == Kernels::nngp ? both.nngp : both.ntk;
}

/// The largest error of products, relative to what rounding every kernel at its inputs' own ones could make.
double error_of(const Matrix<double>& products, const Matrix<double>& kernel, const Vector<double>& own_left,
                const Vector<double>& own_right, const Matrix<double>& v) {
  const Matrix<double> exact = kernel * v;
  const Matrix<double> scale = own_left.cwiseSqrt() * (own_right.cwiseSqrt().transpose() * v.cwiseAbs());
  double worst = 0;
  for (Index i = 0; i < exact.rows(); ++i)
    for (Index j = 0; j < exact.cols(); ++j) {
      const double error = std::abs(products(i, j) - exact(i, j));
      if (error > 0 && !(error <= worst * scale(i, j))) worst = error / scale(i, j);
    }
  return worst;
}

/// The kernels of both batches on the CPU, in double.
struct Exact {
  GramResult<double> whole, pairs, own, own1;

  Exact(const Network& network, const xt::xarray<double>& x, const xt::xarray<double>& x1)
      : whole{gram(network, Inputs<double>(x))},
        pairs{gram(network, Inputs<double>(x1), Inputs<double>(x))},
        own{gram_diagonal(network, Inputs<double>(x))},
        own1{gram_diagonal(network, Inputs<double>(x1))} {}
};

template <typename Scalar>
void check_products(const Network& network, const xt::xarray<double>& x, const xt::xarray<double>& x1,
                    const Exact& exact, double most) {
  const KernelProducts<Scalar> products(network, as<Scalar>(x), on_device());
  const auto rows = products.rows_of(as<Scalar>(x1));
  const Index n = products.size();
  const Matrix<double> v = vectors_of(n, 3);
  for (const Kernels kernel : {Kernels::nngp, Kernels::ntk}) {
    CAPTURE(static_cast<int>(kernel));
    const Vector<double> own = of(exact.own, kernel).col(0), own1 = of(exact.own1, kernel).col(0);
    CHECK(error_of(products.multiply(kernel, v), of(exact.whole, kernel), own, own, v) < most);
    CHECK(error_of(products.multiply(kernel, rows, v), of(exact.pairs, kernel), own1, own, v) < most);
    // Single entries, which sums would hide.
    const std::vector<Index> some{n - 1, 0, 2, 3, 5, 4};
    const Matrix<double> columns = products.columns(kernel, some),
                         pairs = products.entries(kernel, rows, 1, rows.size() - 1);
    double worst = 0;
    const auto note = [&](double computed, double expected, double scale) {
      if (computed != expected) worst = std::max(worst, std::abs(computed - expected) / scale);
    };
    for (Index i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < some.size(); ++j)
        note(columns(i, static_cast<Index>(j)), of(exact.whole, kernel)(i, some[j]),
             std::sqrt(own(i) * own(some[j])));
      for (Index j = 0; j + 1 < rows.size(); ++j)
        note(pairs(j, i), of(exact.pairs, kernel)(j + 1, i), std::sqrt(own(i) * own1(j + 1)));
    }
    CHECK(worst < most);
    const Vector<double> diagonal = products.diagonal(kernel);
    CHECK((diagonal - own).cwiseAbs().maxCoeff() <= most * own.maxCoeff());
    CHECK(diagonal(n - 1) == columns(n - 1, 0));
  }
}

struct NetworkCase {
  std::string name;
  std::string layers;
};

std::vector<NetworkCase> network_cases() {
  return {{"biases", dense + "," + relu + "," + dense + "," + relu + "," + dense},
          {"multiples through ReLU", unbiased + "," + relu + "," + unbiased +
                                         R"(, {"layer": "leaky_relu", "slope": 0.2}, )" + unbiased},
          {"norms make multiples equal",
           unbiased + R"(, {"layer": "layer_norm"}, )" + relu + "," + dense + "," + relu},
          {"dropout", dense + "," + relu + R"(, {"layer": "dropout", "keep": 0.7}, )" + dense},
          {"sums and products",
           dense + R"(, {"layer": "sum", "branches": [{"layers": [)" + relu + "," + dense +
               R"(]}, {"layers": []}]}, {"layer": "erf"}, {"layer": "product", "branches": [{"layers": [)" +
               dense + R"(]}, {"layers": [)" + dense + "," + relu + "]}]}," + dense},
          {"smooth nonlinearities",
           dense + R"(, {"layer": "gelu"}, )" + dense + R"(, {"layer": "sin"}, )" + dense}};
}

TEST_CASE("kernel products: those of matrices of the CPU") {
  const xt::xarray<double> x = inputs_of(70, 35), x1 = inputs_of(9, 35);
  for (const NetworkCase& one : network_cases()) {
    CAPTURE(one.name);
    const Network network = network_of(one.layers);
    const Exact exact(network, x, x1);
    check_products<float>(network, x, x1, exact, float_error);
    check_products<double>(network, x, x1, exact, double_error);
  }
}

TEST_CASE("kernel products: many columns are added up in shares, and images are vectors behind flatten") {
  const Network network = network_of(R"({"layer": "flatten"}, )" + dense + "," + relu + "," + dense);
  xt::xarray<double> x = inputs_of(1100, 12);
  x.reshape({1100, 2, 2, 3});
  const xt::xarray<double> x1 = xt::view(x, xt::range(0, 3));
  check_products<double>(network, x, x1, Exact(network, x, x1), double_error);
}

TEST_CASE(
    "kernel products: results do not depend on what is multiplied together, and matrices are symmetric") {
  const Network network =
      network_of(unbiased + "," + relu + "," + unbiased + R"(, {"layer": "gelu"}, )" + dense);
  const xt::xarray<double> x = inputs_of(150, 20);
  const KernelProducts<float> products(network, as<float>(x), on_device());
  const Matrix<double> v = vectors_of(150, 70), all = products.multiply(Kernels::ntk, v);
  CHECK(products.multiply(Kernels::ntk, v.leftCols(20)) == all.leftCols(20));
  CHECK(products.multiply(Kernels::ntk, v.col(69)) == all.col(69));
  const auto rows = products.rows_of(as<float>(xt::view(x, xt::range(100, 103))));
  const Matrix<double> of_some = products.multiply(Kernels::ntk, rows, v);
  CHECK((of_some - all.middleRows(100, 3)).cwiseAbs().maxCoeff() <= 1e-5 * all.cwiseAbs().maxCoeff());
  std::vector<Index> every(150);
  for (Index i = 0; i < 150; ++i) every[static_cast<std::size_t>(i)] = i;
  const Matrix<double> matrix = products.columns(Kernels::ntk, every);
  CHECK(matrix == matrix.transpose());
  CHECK(matrix.diagonal() == products.diagonal(Kernels::ntk));
  CHECK(products.columns(Kernels::ntk, std::vector<Index>{7, 140}).col(1) == matrix.col(140));
  // Equal inputs have equal kernels, bit by bit.
  CHECK(matrix(0, 1) == matrix(0, 0));
  CHECK(matrix(1, 9) == matrix(0, 9));
}

TEST_CASE("kernel products: a deep network of floats is computed in double") {
  std::string layers;
  for (int i = 0; i < 30; ++i) layers += dense + "," + relu + ",";
  const Network network = network_of(layers + dense);
  const xt::xarray<double> x = inputs_of(20, 6);
  const KernelProducts<float> products(network, as<float>(x), on_device());
  // Three times a float is not always one.
  const xt::xarray<double> rounded = xt::cast<double>(xt::cast<float>(x));
  const GramResult<double> exact = gram(network, Inputs<double>(rounded));
  const std::vector<Index> first{0};
  CHECK((products.columns(Kernels::ntk, first) - exact.ntk.col(0)).cwiseAbs().maxCoeff() <
        double_error * exact.ntk.maxCoeff());
}

TEST_CASE("kernel products: what cannot be computed is an error that says what to do") {
  const Inputs<float> x = as<float>(inputs_of(8, 5));
  const auto error_of_network = [&](const std::string& layers, const Inputs<float>& inputs,
                                    GramOptions options) {
    return error_message<DeviceError>(
        [&] { return KernelProducts<float>(network_of(layers), inputs, options).size(); });
  };
  GramOptions cpu;
  CHECK(error_of_network(dense, x, cpu).find("devices only") != std::string::npos);
  const std::string growing =
      error_of_network(dense + R"(, {"layer": "gaussian", "b": 0.01}, )" + dense, x, on_device());
  CHECK(growing.find("layers[1] (gaussian) has a formula that devices cannot read") != std::string::npos);
  CHECK(growing.find("choose the device cpu") != std::string::npos);
  const Inputs<float> images(xt::xarray<float>(xt::ones<float>({2, 4, 4, 2})));
  const std::string positions = R"({"layer": "conv", "filter": [3, 3]}, {"layer": "global_average_pool"})";
  CHECK(error_of_network(positions, images, on_device()).find("networks without positions") !=
        std::string::npos);
  CHECK(!KernelProducts<float>::are_for(network_of(positions), images));
  CHECK(KernelProducts<float>::are_for(network_of(dense), x));

  const KernelProducts<float> products(network_of(dense), x, on_device());
  const auto argument = [&](const auto& body) { return error_message<ArgumentError>(body); };
  CHECK(argument([&] { return products.multiply(Kernels::both, vectors_of(8, 1)); }).find("one kernel") !=
        std::string::npos);
  CHECK(argument([&] {
          return products.multiply(Kernels::nngp, vectors_of(7, 1));
        }).find("[8, any], got [7, 1]") != std::string::npos);
  CHECK(argument([&] {
          return products.columns(Kernels::nngp, std::vector<Index>{8});
        }).find("from 0 to 7, got 8") != std::string::npos);
  CHECK_THROWS_AS(static_cast<void>(products.rows_of(as<float>(inputs_of(8, 4)))), ArgumentError);
}

TEST_CASE("kernel products: a stop is heard, and numbers out of range are errors") {
  std::stop_source stop;
  GramOptions options = on_device();
  options.stop = stop.get_token();
  const KernelProducts<float> products(network_of(dense + "," + relu), as<float>(inputs_of(8, 5)), options);
  stop.request_stop();
  CHECK_THROWS_AS(static_cast<void>(products.multiply(Kernels::nngp, vectors_of(8, 1))), Cancelled);

  xt::xarray<float> large = xt::ones<float>({70, 2});
  large(69, 0) = 1e18F;
  large(69, 1) = 1e18F;
  // Variances of floats are checked before; the NTK adds them up.
  const std::string steep = R"({"layer": "dense", "weight_variance": 300, "bias_variance": 0},
                               {"layer": "dense", "weight_variance": 1, "bias_variance": 0})";
  const KernelProducts<float> out_of_range(network_of(steep), Inputs<float>(large), on_device());
  CHECK(error_message<NumericalError>([&] {
          return out_of_range.multiply(Kernels::ntk, vectors_of(70, 1));
        }).find("leaves the range of float") != std::string::npos);
}

}  // namespace
}  // namespace widelimit::testing::kernel_products_test
