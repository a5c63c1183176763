#include "widelimit/gp/input_range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace widelimit::gp {
namespace {

struct NumberRange {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  [[nodiscard]] double largest() const { return std::max(std::abs(low), std::abs(high)); }
  [[nodiscard]] std::string text() const { return fmt::format("from {:.4g} to {:.4g}", low, high); }
};

template <typename Scalar>
NumberRange number_range(const Inputs<Scalar>& x) {
  NumberRange range;
  for (Index i = 0; i < x.size(); ++i)
    for (const Scalar number : x[i]) {
      range.low = std::min(range.low, static_cast<double>(number));
      range.high = std::max(range.high, static_cast<double>(number));
    }
  return range;
}

/// Whether numbers reach ten times as far from the middle of the training inputs' range as that range itself does.
bool is_far_outside(const NumberRange& x, const NumberRange& train) {
  constexpr double factor = 10;
  const double middle = (train.low + train.high) / 2, half = (train.high - train.low) / 2;
  return half > 0 && std::max(x.high - middle, middle - x.low) > factor * half;
}

/// Whether all numbers are fifty times smaller than those of the training. Nothing can be said of numbers that are all
/// 0, such as those of black images.
bool is_far_smaller(const NumberRange& x, const NumberRange& train) {
  constexpr double factor = 50;
  return x.largest() > 0 && x.largest() * factor < train.largest();
}

/// What rounding leaves of some numbers.
class RoundedNumbers {
 public:
  void add(double number) {
    const auto rounded = static_cast<float>(number);
    if (!has_first_) {
      has_first_ = true;
      first_ = number;
      first_rounded_ = rounded;
    }
    has_numbers_ |= number != 0;
    keeps_numbers_ |= rounded != 0;
    has_differences_ |= number != first_;
    keeps_differences_ |= rounded != first_rounded_;
  }

  [[nodiscard]] bool vanished() const { return has_numbers_ && !keeps_numbers_; }
  [[nodiscard]] bool became_equal() const { return has_differences_ && !keeps_differences_; }

 private:
  bool has_first_ = false;
  double first_ = 0;
  float first_rounded_ = 0;
  bool has_numbers_ = false, keeps_numbers_ = false;
  bool has_differences_ = false, keeps_differences_ = false;
};

constexpr const char* remedy_in_float = "rescale the inputs, standardise them (channel), or use double";

/// Adds the numbers of input i to those of its channels, and tells what is lost of it.
std::optional<FloatLoss> lost_of_input(std::span<const double> numbers, Index i,
                                       std::vector<RoundedNumbers>& channels) {
  RoundedNumbers own;
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    // Numbers that are not finite before are not lost here, and whoever reads inputs refuses them.
    if (std::isfinite(numbers[k]) && !std::isfinite(static_cast<float>(numbers[k])))
      return FloatLoss{fmt::format("{:.6g} is beyond the range of float: {}", numbers[k], remedy_in_float),
                       i};
    own.add(numbers[k]);
    channels[k % channels.size()].add(numbers[k]);
  }
  if (!own.vanished()) return std::nullopt;
  return FloatLoss{fmt::format("all numbers are rounded to 0 in float: {}", remedy_in_float), i};
}

}  // namespace

std::optional<FloatLoss> lost_in_float(const Inputs<double>& x, bool is_training) {
  std::vector<RoundedNumbers> channels(static_cast<std::size_t>(x.channels()));
  for (Index i = 0; i < x.size(); ++i)
    if (auto lost = lost_of_input(x[i], i, channels)) return lost;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    if (channels[c].vanished())
      return FloatLoss{
          fmt::format("all numbers of channel {} (from 0) are rounded to 0 in float: {}", c, remedy_in_float),
          {}};
    if (is_training && channels[c].became_equal())
      return FloatLoss{
          fmt::format("the numbers of channel {} (from 0) differ, and are rounded to one in float: {}", c,
                      remedy_in_float),
          {}};
  }
  return std::nullopt;
}

template <typename Train, typename Scalar>
std::string range_warning(const Inputs<Train>& train, const Inputs<Scalar>& x,
                          const Preprocessing& preprocessing) {
  const NumberRange of_train = number_range(train), of_x = number_range(x);
  if (!is_far_outside(of_x, of_train) && !(x.axes() > 0 && is_far_smaller(of_x, of_train))) return "";
  const std::string after =
      preprocessing.kind() == PreprocessingKind::none
          ? ""
          : fmt::format(" after the preprocessing ({})", to_string(preprocessing.kind()));
  return fmt::format(
      "the numbers of the inputs run {}, those of the training inputs {}{}: are both scaled alike?",
      of_x.text(), of_train.text(), after);
}

template std::string range_warning(const Inputs<float>&, const Inputs<float>&, const Preprocessing&);
template std::string range_warning(const Inputs<float>&, const Inputs<double>&, const Preprocessing&);
template std::string range_warning(const Inputs<double>&, const Inputs<float>&, const Preprocessing&);
template std::string range_warning(const Inputs<double>&, const Inputs<double>&, const Preprocessing&);

}  // namespace widelimit::gp
