#include "widelimit/gp/input_range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

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

}  // namespace

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
