// The standard error that sampled softmax attention reports, against exact values.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/reference_case.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/network/network_file.hpp"

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
        CHECK(check->ratio(i, j) == doctest::Approx(1).epsilon(tolerance));
      }
}

// The ratio over n seeds scatters by 1 / sqrt(2 n): 7 % and 3.5 %.
TEST_CASE("the reported standard error is right: 100 seeds of few samples") { check_errors(256, 100, 0.2); }

TEST_CASE("the reported standard error is right within 10 %: 400 seeds of the reference case [slow]") {
  check_errors(4096, 400, 0.1);
}

}  // namespace
}  // namespace widelimit::layers
