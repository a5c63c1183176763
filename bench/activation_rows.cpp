// What the map of a nonlinearity takes, NNGP and NTK, next to ReLU's: nanoseconds an entry of a row in the first-level
// cache, the best of several measured in turns within one run. Prints a table.
//
//     activation_rows [NAME...]     all nonlinearities without arguments
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "timing.hpp"
#include "widelimit/numerics/activations.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"

namespace {

using namespace benchmarks;
using namespace widelimit;
using numerics::ActivationPtr;

struct Measured {
  const char* name;
  ActivationPtr activation;
  double aim;          ///< Of the ratio to ReLU.
  double most = 0.95;  ///< Correlations of the row lie within +- this.
};

/// A function of somebody's own, without a closed form.
ActivationPtr softsign() {
  return numerics::quadrature_activation([](double x) { return x / std::sqrt(1 + x * x); },
                                         [](double x) { return std::pow(1 + x * x, -1.5); });
}

std::vector<Measured> measured() {
  using namespace numerics;
  return {{"relu", relu(), 1},
          {"leaky_relu", leaky_relu(0.1), 2},
          {"abs", numerics::abs(), 2},
          {"erf", numerics::erf(), 2.5},
          {"sigmoid_like", sigmoid_like(), 2.5},
          {"gelu", gelu(), 2.5},
          {"gaussian", gaussian(), 2},
          {"sin", numerics::sin(), 2},
          {"cos with a phase", numerics::cos(1, 1.2, 0.3), 2},
          {"rbf", rbf(), 2},
          {"exp", exponential(1, 0.5), 2},
          {"tanh", numerics::tanh(), 4},
          {"sigmoid", sigmoid(), 4},
          {"silu", silu(), 4},
          {"softplus", softplus(), 4},
          {"x / sqrt(1 + x^2)", softsign(), 4},
          {"tanh, up to 0.6", numerics::tanh(), 4, 0.6},
          {"silu, up to 0.6", silu(), 4, 0.6}};
}

/// A row of entries and what the nonlinearity prepares of its positions.
template <typename Scalar>
class PreparedRow {
 public:
  PreparedRow(ActivationPtr activation, double most) : activation_{std::move(activation)} {
    std::mt19937 generator(1);
    std::uniform_real_distribution<double> variance(0.6, 1.6), correlation(-most, most);
    std::vector<Scalar> p(size), q(size);
    for (std::size_t i = 0; i < size; ++i) {
      p[i] = static_cast<Scalar>(variance(generator));
      q[i] = static_cast<Scalar>(variance(generator));
      covariance_[i] =
          static_cast<Scalar>(correlation(generator) * std::sqrt(static_cast<double>(p[i] * q[i])));
    }
    left_ = prepared(p, left_numbers_);
    right_ = prepared(q, right_numbers_);
  }

  /// Seconds of `repeats` rows, NNGP and NTK; without the map only what copies its arguments.
  [[nodiscard]] double seconds(int repeats, bool with_map) {
    return seconds_of([&] {
      for (int i = 0; i < repeats; ++i) {
        std::copy(covariance_.begin(), covariance_.end(), nngp_.begin());
        std::copy(covariance_.begin(), covariance_.end(), ntk_.begin());
        if (with_map) activation_->apply({nngp_.data(), ntk_.data(), left_.data(), right_.data(), size});
      }
    });
  }

  static constexpr std::size_t size = 512;

 private:
  [[nodiscard]] std::vector<const Scalar*> prepared(const std::vector<Scalar>& variance,
                                                    std::vector<Scalar>& numbers) const {
    const std::size_t count = activation_->auxiliary_count();
    // Guards lie between the planes of the engine: their places in the cache differ.
    constexpr std::size_t stride = size + 64 / sizeof(Scalar);
    numbers.resize(count * stride);
    std::vector<Scalar*> rows;
    for (std::size_t k = 0; k < count; ++k) rows.push_back(numbers.data() + k * stride);
    activation_->prepare(variance.data(), rows.data(), size);
    return {rows.begin(), rows.end()};
  }

  ActivationPtr activation_;
  std::vector<Scalar> covariance_ = std::vector<Scalar>(size), nngp_ = covariance_, ntk_ = covariance_;
  std::vector<Scalar> left_numbers_, right_numbers_;
  std::vector<const Scalar*> left_, right_;
};

/// Nanoseconds an entry, the best of its turns.
template <typename Scalar>
class Timed {
 public:
  explicit Timed(const Measured& measured) : row_(measured.activation, measured.most) {
    while (repeats_ < 1 << 20 && row_.seconds(repeats_, true) < 2e-3) repeats_ *= 2;
  }

  void turn() {
    copies_ = std::min(copies_, row_.seconds(repeats_, false));
    all_ = std::min(all_, row_.seconds(repeats_, true));
  }

  [[nodiscard]] double nanoseconds() const {
    return 1e9 * (all_ - copies_) / (repeats_ * static_cast<double>(PreparedRow<Scalar>::size));
  }

 private:
  PreparedRow<Scalar> row_;
  int repeats_ = 1;
  double copies_ = std::numeric_limits<double>::infinity();
  double all_ = copies_;
};

/// ReLU's time and that of another nonlinearity, in turns.
template <typename Scalar>
struct Beside {
  Timed<Scalar> relu, other;

  explicit Beside(const Measured& measured) : relu({"relu", numerics::relu(), 1}), other(measured) {
    for (int turn = 0; turn < 25; ++turn) {
      relu.turn();
      other.turn();
    }
  }
  [[nodiscard]] double ratio() const { return other.nanoseconds() / relu.nanoseconds(); }
};

void print_row(const Measured& measured) {
  const Beside<float> narrow(measured);
  const Beside<double> wide(measured);
  fmt::print("{:<20} {:>9.3f} {:>9.3f} {:>6.2f} {:>9.3f} {:>9.3f} {:>6.2f} {:>6.1f}\n", measured.name,
             narrow.other.nanoseconds(), narrow.relu.nanoseconds(), narrow.ratio(), wide.other.nanoseconds(),
             wide.relu.nanoseconds(), wide.ratio(), measured.aim);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> wanted(argv + 1, argv + argc);
  fmt::print("{:<20} {:>9} {:>9} {:>6} {:>9} {:>9} {:>6} {:>6}\n", "nonlinearity", "float ns", "ReLU's",
             "ratio", "double ns", "ReLU's", "ratio", "aim");
  for (const Measured& one : measured())
    if (wanted.empty() || std::count(wanted.begin(), wanted.end(), one.name) > 0) print_row(one);
}
