// Inference with kernels that a device makes in every product, against kernels in memory from the CPU. The device is
// PoCL's, which executes OpenCL on the CPU.
#include "widelimit/gp/device_gram.hpp"

#include <doctest/doctest.h>

#include <optional>

#include "problem.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/inference.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/dense.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;

namespace {

struct Data {
  Network network{{layers::dense({.weight_variance = 2, .bias_variance = 0.1}), layers::relu(),
                   layers::dense({.weight_variance = 2, .bias_variance = 0.1}), layers::relu(),
                   layers::dense({.weight_variance = 1, .bias_variance = 0})}};
  Matrix<double> train = random_matrix(170, 8, 1), validation = random_matrix(30, 8, 2),
                 test = random_matrix(20, 8, 3);
  Matrix<double> train_targets = targets_of(train), validation_targets = targets_of(validation);
  std::optional<Matrix<double>> test_targets = targets_of(test);

  static Matrix<double> targets_of(const Matrix<double>& x) {
    Matrix<double> y(x.rows(), 2);
    y.col(0) = (x.col(0).array() * x.col(1).array()).tanh();
    y.col(1) = x.col(2).array().sin() + 0.1 * x.col(3).array();
    return y;
  }

  [[nodiscard]] std::vector<KernelPrediction> inferred(GramSources grams) const {
    InferenceOptions options;
    options.fit.criterion = Criterion::mean_squared_error;
    options.fit.residual = 1e-11;
    return infer(
        {.targets = train_targets, .validation = validation_targets}, test_targets, options, std::move(grams),
        [](const std::string& kernel, GramSources& sources, const SolverTargets& targets,
           const SolverOptions& solver, bool) { return iterative_solver(kernel, sources, targets, solver); });
  }
};

Vector<double> variances(const Network& network, const Matrix<double>& x) {
  return gram_diagonal(network, Inputs<double>(x), {.kernels = Kernels::nngp}).nngp.col(0);
}

}  // namespace

TEST_CASE("gram on a device: the whole inference is that of kernels in memory") {
  const Data data;
  const Inputs<double> train(data.train), validation(data.validation), test(data.test);
  GramSources in_memory;
  in_memory.train = gram_in_memory(gram(data.network, train));
  in_memory.validation = gram_in_memory(gram(data.network, validation, train));
  in_memory.test = gram_in_memory(gram(data.network, test, train));
  GramOptions options;
  options.device = "pocl";
  const KernelProducts<double> products(data.network, train, options);
  GramSources on_device;
  on_device.train = gram_on_device(products);
  on_device.validation = gram_on_device(products, validation);
  on_device.test = gram_on_device(products, test);
  for (GramSources* sources : {&in_memory, &on_device}) {
    sources->validation_variances = variances(data.network, data.validation);
    sources->test_variances = variances(data.network, data.test);
  }
  const auto expected = data.inferred(std::move(in_memory)), found = data.inferred(std::move(on_device));
  REQUIRE(found.size() == 2);
  for (std::size_t k = 0; k < found.size(); ++k) {
    CAPTURE(found[k].name);
    CHECK(found[k].name == expected[k].name);
    CHECK(found[k].regulariser == expected[k].regulariser);
    CHECK(relative_difference(found[k].amplitude, expected[k].amplitude) < 1e-7);
    CHECK(relative_difference(found[k].mean, expected[k].mean) < 1e-7);
    CHECK(relative_difference(found[k].variance, expected[k].variance) < 1e-7);
    CHECK(found[k].iterations->relative_residual <= 1e-11);
  }
}

TEST_CASE("gram on a device: whole kernels and rows can be asked for") {
  const Data data;
  const Inputs<double> train(data.train), test(data.test);
  GramOptions options;
  options.device = "pocl";
  const KernelProducts<double> products(data.network, train, options);
  const auto own = gram_on_device(products), cross = gram_on_device(products, test);
  const GramResult<double> exact = gram(data.network, train), pairs = gram(data.network, test, train);
  CHECK(relative_difference(own->matrix("ntk").matrix(), exact.ntk) < 1e-13);
  CHECK(relative_difference(own->as_cross("nngp").block(5, 3), exact.nngp.middleRows(5, 3)) < 1e-13);
  CHECK(relative_difference(cross->matrix("nngp").matrix(), pairs.nngp) < 1e-13);
  const CrossGram rows = cross->as_cross("ntk");
  CHECK(relative_difference(rows.block(7, 9), pairs.ntk.middleRows(7, 9)) < 1e-13);
  const Matrix<double> x = random_matrix(170, 3, 9);
  CHECK(relative_difference(rows.multiply(x), pairs.ntk * x) < 1e-12);
  CHECK_THROWS_AS(static_cast<void>(cross->as_operator("ntk")), ArgumentError);
}
