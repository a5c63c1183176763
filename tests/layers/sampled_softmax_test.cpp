// The standard error that sampled softmax attention reports, against exact values.
#include <doctest/doctest.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "layers/covariance_roots.hpp"
#include "support/random_inputs.hpp"
#include "support/reference_case.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::layers {
namespace {

/// Two tokens, where the exact kernels are two-dimensional integrals.
class TwoTokens {
 public:
  TwoTokens() {
    for (const auto& reference : testing::reference_cases(testing::small_reference_folder()))
      if (reference.name == "attention-sqrt-softmax-two-tokens") folder_ = reference.folder;
    network_ = nlohmann::json::parse(std::ifstream(folder_ / "network.json"));
    x_ = read("x1");
    nngp_ = read("nngp");
    ntk_ = read("ntk");
  }

  [[nodiscard]] GramResult<double> sampled(std::int64_t samples, std::int64_t seed) const {
    nlohmann::json network = network_;
    network["layers"][1]["samples"] = samples;
    network["layers"][1]["seed"] = seed;
    return gram<double>(parse_network(network.dump()), x_);
  }

  [[nodiscard]] const xt::xarray<double>& nngp() const { return nngp_; }
  [[nodiscard]] const xt::xarray<double>& ntk() const { return ntk_; }

 private:
  [[nodiscard]] xt::xarray<double> read(const std::string& name) const {
    return data::read_npy<double>(folder_ / (name + ".npy"));
  }

  std::filesystem::path folder_;
  nlohmann::json network_;
  xt::xarray<double> x_;
  xt::xarray<double> nngp_;
  xt::xarray<double> ntk_;
};

/// Squares of deviations from the exact value and of reported errors, summed over seeds for every entry.
class ErrorCheck {
 public:
  void add(const Matrix<double>& value, const Matrix<double>& error, const xt::xarray<double>& exact) {
    if (deviations_.size() == 0) deviations_ = reported_ = Matrix<double>::Zero(value.rows(), value.cols());
    const Eigen::Map<const Matrix<double>> target(exact.data(), value.rows(), value.cols());
    deviations_ += (value - target).cwiseAbs2();
    reported_ += error.cwiseAbs2();
  }

  /// Root mean square deviation over the reported one, for entry (i, j).
  [[nodiscard]] double ratio(Index i, Index j) const {
    return std::sqrt(deviations_(i, j) / reported_(i, j));
  }
  [[nodiscard]] Index size() const { return deviations_.rows(); }

 private:
  Matrix<double> deviations_;
  Matrix<double> reported_;
};

void check_errors(std::int64_t samples, int seeds, double tolerance) {
  const TwoTokens exact;
  ErrorCheck nngp, ntk;
  for (int seed = 0; seed < seeds; ++seed) {
    const auto result = exact.sampled(samples, seed);
    nngp.add(result.nngp, result.nngp_error, exact.nngp());
    ntk.add(result.ntk, result.ntk_error, exact.ntk());
  }
  for (const ErrorCheck* check : {&nngp, &ntk})
    for (Index i = 0; i < check->size(); ++i)
      for (Index j = i; j < check->size(); ++j) {
        CAPTURE(i);
        CAPTURE(j);
        CHECK(check->ratio(i, j) == doctest::Approx(1).epsilon(tolerance).scale(0));
      }
}

// The ratio over n seeds scatters by 1 / sqrt(2 n): 7 % and 3.5 %.
TEST_CASE("the reported standard error is right: 100 seeds of few samples") { check_errors(256, 100, 0.2); }

TEST_CASE("the reported standard error is right within 10 %: 400 seeds of the reference case [slow]") {
  check_errors(4096, 400, 0.1);
}

/// x x^T / C of the positions of both inputs, one after the other.
Matrix<double> joint_covariance(const xt::xarray<double>& x) {
  const auto positions = static_cast<Index>(x.shape(0) * x.shape(1)),
             channels = static_cast<Index>(x.shape(2));
  const Eigen::Map<const Matrix<double>> rows(x.data(), positions, channels);
  return rows * rows.transpose() / static_cast<double>(channels);
}

Matrix<double> softmax_of_rows(const Matrix<double>& logits, double query_key_std) {
  Matrix<double> weights = (query_key_std * logits).array().exp();
  for (Index a = 0; a < weights.rows(); ++a) weights.row(a) /= weights.row(a).sum();
  return weights;
}

/// The mean of samples of a matrix, and its standard error.
struct Sampled {
  Matrix<double> mean;
  Matrix<double> error;
};

/// E[A K A'^T] between both inputs, d positions each: all logits are drawn at once, L Z L^T with the Cholesky
/// factor of the joint covariance.
Sampled dense_joint_samples(const Matrix<double>& covariance, Index d, double query_key_std, int samples) {
  const Matrix<double> factor = Eigen::LLT<Matrix<double>>(covariance).matrixL();
  const Matrix<double> cross = covariance.topRightCorner(d, d);
  Matrix<double> sum = Matrix<double>::Zero(d, d), squares = sum, normals(2 * d, 2 * d);
  numerics::RandomStream random(77);
  for (int sample = 0; sample < samples; ++sample) {
    for (Index i = 0; i < normals.size(); ++i) normals.data()[i] = random.normal();
    const Matrix<double> logits = factor * normals * factor.transpose();
    const Matrix<double> value = softmax_of_rows(logits.topLeftCorner(d, d), query_key_std) * cross *
                                 softmax_of_rows(logits.bottomRightCorner(d, d), query_key_std).transpose();
    sum += value;
    squares += value.cwiseAbs2();
  }
  const Matrix<double> mean = sum / samples;
  return {mean, ((squares / samples - mean.cwiseAbs2()) / samples).cwiseSqrt()};
}

/// Six positions and twelve channels: no covariance is singular, so that every quadrant of the draws counts.
TEST_CASE("two inputs: joint draws agree with dense samples of all logits") {
  constexpr double query_key_std = 2;
  constexpr Index d = 3;
  const auto x = testing::random_inputs(21, {2, d, 12});
  AttentionOptions options;
  options.scaling = AttentionScaling::inverse_sqrt_width;
  options.query_key_std = query_key_std;
  options.samples = 40000;
  const auto kernels = gram<double>(Network({dense(), attention(options), flatten()}), x);
  // Flatten takes the mean of the diagonal.
  const Sampled expected = dense_joint_samples(joint_covariance(x), d, query_key_std, 400000);
  const double mean = expected.mean.trace() / d;
  const double error = std::hypot(kernels.nngp_error(0, 1), expected.error.diagonal().sum() / d);
  CAPTURE(kernels.nngp(0, 1));
  CAPTURE(mean);
  CAPTURE(error);
  CHECK(std::abs(kernels.nngp(0, 1) - mean) <= 4 * error);
  // Sharp enough to tell faults: 1 % of the kernel of an input with itself.
  CHECK(error <= 0.01 * kernels.nngp(0, 0));
}

TEST_CASE("joint roots reproduce the joint covariance, singular ones too") {
  for (const Index channels : {12, 6, 4, 2, 1}) {
    CAPTURE(channels);
    const Index d = 3;
    const Matrix<double> covariance = joint_covariance(testing::random_inputs(22, {2, d, channels}));
    const CovarianceRoot left = covariance_root(covariance.topLeftCorner(d, d));
    Matrix<double> root = Matrix<double>::Zero(2 * d, 2 * d);
    root.topLeftCorner(d, d) = left.root;
    root.bottomRows(d) =
        joint_right_root(left.inverse, covariance.topRightCorner(d, d), covariance.bottomRightCorner(d, d));
    CHECK((root * root.transpose() - covariance).norm() <= 1e-12 * covariance.norm());
  }
  // Inputs of different length.
  const Matrix<double> covariance = joint_covariance(testing::random_inputs(23, {1, 5, 9}));
  const CovarianceRoot left = covariance_root(covariance.topLeftCorner(2, 2));
  const Matrix<double> right =
      joint_right_root(left.inverse, covariance.topRightCorner(2, 3), covariance.bottomRightCorner(3, 3));
  CHECK((right * right.transpose() - covariance.bottomRightCorner(3, 3)).norm() <= 1e-13);
  CHECK((right.leftCols(2) * left.root.transpose() - covariance.bottomLeftCorner(3, 2)).norm() <= 1e-13);
}

}  // namespace
}  // namespace widelimit::layers
