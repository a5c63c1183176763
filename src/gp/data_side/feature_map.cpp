#include "widelimit/gp/feature_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "gp/checks.hpp"
#include "kernel/inputs/copied_inputs.hpp"
#include "widelimit/error.hpp"

namespace widelimit::gp {

namespace {

/// The function of a channel at a number. Values are places with what is added to them, so that a function that changes
/// nothing leaves every bit.
double through_knots(const Matrix<double>& knots, Index channel, double number) {
  const Index count = knots.rows() / 2;
  const auto place = [&](Index k) { return knots(k, channel); };
  const auto value = [&](Index k) { return knots(count + k, channel); };
  if (!(number > place(0))) return value(0);
  if (number >= place(count - 1)) return value(count - 1);
  // The first place behind the number.
  Index low = 0, high = count - 1;
  while (high - low > 1) {
    const Index middle = (low + high) / 2;
    (place(middle) > number ? high : low) = middle;
  }
  const double share = (number - place(low)) / (place(high) - place(low));
  return number + (1 - share) * (value(low) - place(low)) + share * (value(high) - place(high));
}

/// Of a matrix that only picks channels, each perhaps times a factor: which one each column takes; else nothing.
std::vector<Index> picked_channels(const Matrix<double>& factors) {
  std::vector<Index> picked;
  for (Index c = 0; c < factors.cols(); ++c) {
    if ((factors.col(c).array() != 0).count() != 1) return {};
    Index row = 0;
    factors.col(c).cwiseAbs().maxCoeff(&row);
    picked.push_back(row);
  }
  return picked;
}

/// The functions and factors of a map, for one input after another.
class ChannelMap {
 public:
  ChannelMap(const Matrix<double>& knots, const Matrix<double>& factors)
      : knots_{knots}, factors_{factors}, channels_{channels_of(knots, factors)} {
    if (factors.rows() > 1) picked_ = picked_channels(factors);
  }

  [[nodiscard]] static Index channels_of(const Matrix<double>& knots, const Matrix<double>& factors) {
    return factors.rows() > 1 ? factors.rows() : std::max(factors.cols(), knots.cols());
  }
  [[nodiscard]] Index outputs() const { return factors_.size() > 0 ? factors_.cols() : channels_; }

  /// An input's positions, one after another, to `out`.
  template <typename Scalar>
  void write(std::span<const Scalar> input, Scalar* out) const {
    const Index positions = static_cast<Index>(input.size()) / channels_;
    Matrix<double> from =
        Eigen::Map<const Matrix<Scalar>>(input.data(), positions, channels_).template cast<double>();
    if (knots_.size() > 0)
      for (Index p = 0; p < positions; ++p)
        for (Index c = 0; c < channels_; ++c) from(p, c) = through_knots(knots_, c, from(p, c));
    Eigen::Map<Matrix<Scalar>> to(out, positions, outputs());
    if (factors_.size() == 0)
      to = from.template cast<Scalar>();
    else if (factors_.rows() == 1)
      to = (from * factors_.row(0).asDiagonal()).template cast<Scalar>();
    else if (picked_.empty())
      to = (from * factors_).template cast<Scalar>();
    else
      for (Index c = 0; c < outputs(); ++c) {
        const Index place = picked_[static_cast<std::size_t>(c)];
        to.col(c) = (from.col(place) * factors_(place, c)).template cast<Scalar>();
      }
  }

 private:
  const Matrix<double>& knots_;
  const Matrix<double>& factors_;
  Index channels_;
  std::vector<Index> picked_;  ///< Empty unless the factors are a matrix that only picks channels.
};

template <typename Scalar>
Inputs<Scalar> mapped_numbers(const Inputs<Scalar>& x, const ChannelMap& map) {
  const auto extents = [&](const Shape& shape) {
    std::vector<std::size_t> sizes(shape.begin(), shape.end());
    sizes.push_back(static_cast<std::size_t>(map.outputs()));
    return sizes;
  };
  if (x.is_ragged()) {
    std::vector<xt::xarray<Scalar>> arrays;
    for (Index i = 0; i < x.size(); ++i) {
      arrays.push_back(xt::xarray<Scalar>::from_shape(extents(x.shape(i))));
      map.write(x[i], arrays.back().data());
    }
    return Inputs<Scalar>(std::move(arrays));
  }
  std::vector<std::size_t> sizes = extents(x.shape());
  sizes.insert(sizes.begin(), static_cast<std::size_t>(x.size()));
  xt::xarray<Scalar> array = xt::xarray<Scalar>::from_shape(sizes);
  Scalar* next = array.data();
  for (Index i = 0; i < x.size(); ++i) {
    map.write(x[i], next);
    next += static_cast<Index>(x[i].size()) / x.channels() * map.outputs();
  }
  return Inputs<Scalar>(std::move(array));
}

/// The numbers of every channel of vectors, ascending.
std::vector<std::vector<double>> sorted_channels(const Inputs<double>& x, const char* where) {
  if (x.size() < 1 || x.is_ragged() || x.axes() != 0)
    throw ArgumentError(fmt::format("{}: expected vectors [n, channels], at least one", where));
  std::vector<std::vector<double>> channels(static_cast<std::size_t>(x.channels()));
  for (Index i = 0; i < x.size(); ++i)
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const double number = x[i][c];
      if (!std::isfinite(number))
        throw ArgumentError(fmt::format("{}: x must be finite, got {} in input {}", where, number, i));
      channels[c].push_back(number);
    }
  for (std::vector<double>& channel : channels) std::ranges::sort(channel);
  return channels;
}

/// Places and values of one function.
struct Knots {
  std::vector<double> places;
  std::vector<double> values;
};

Matrix<double> joined(const std::vector<Knots>& channels) {
  std::size_t most = 1;
  for (const Knots& channel : channels) most = std::max(most, channel.places.size());
  const auto count = static_cast<Index>(most);
  Matrix<double> knots(2 * count, static_cast<Index>(channels.size()));
  for (Index c = 0; c < knots.cols(); ++c) {
    const Knots& channel = channels[static_cast<std::size_t>(c)];
    for (Index k = 0; k < count; ++k) {
      const auto at = std::min(static_cast<std::size_t>(k), channel.places.size() - 1);
      knots(k, c) = channel.places[at];
      knots(count + k, c) = channel.values[at];
    }
  }
  return knots;
}

/// Values, each so often, with this mean and deviation.
void standardise(std::vector<double>& values, const std::vector<double>& counts, double mean,
                 double deviation) {
  double sum = 0, own_mean = 0, squares = 0;
  for (const double count : counts) sum += count;
  for (std::size_t j = 0; j < values.size(); ++j) own_mean += counts[j] / sum * values[j];
  for (std::size_t j = 0; j < values.size(); ++j)
    squares += counts[j] / sum * (values[j] - own_mean) * (values[j] - own_mean);
  for (double& value : values) value = mean + deviation * ((value - own_mean) / std::sqrt(squares));
}

Knots normal_scores_of(const std::vector<double>& sorted) {
  constexpr std::size_t most = 1024;
  Knots knots;
  std::vector<double> counts;
  for (const double number : sorted) {
    if (knots.places.empty() || number != knots.places.back()) {
      knots.places.push_back(number);
      counts.push_back(0);
    }
    ++counts.back();
  }
  knots.values = knots.places;
  if (knots.places.size() <= 2) return knots;
  const auto n = static_cast<double>(sorted.size());
  // Moments about the first number, in units of the range: neither offsets nor units cost digits.
  const double first = sorted.front(), range = sorted.back() - first;
  double mean = 0, squares = 0;
  for (const double number : sorted) mean += (number - first) / range / n;
  for (const double number : sorted) squares += std::pow((number - first) / range - mean, 2) / n;
  double below = 0;
  for (std::size_t j = 0; j < counts.size(); ++j) {
    knots.values[j] = boost::math::quantile(boost::math::normal(), (below + counts[j] / 2) / n);
    below += counts[j];
  }
  standardise(knots.values, counts, first + range * mean, range * std::sqrt(squares));
  if (knots.places.size() <= most) return knots;
  Knots fewer;
  for (std::size_t k = 0; k < most; ++k) {
    const std::size_t at = k * (knots.places.size() - 1) / (most - 1);
    fewer.places.push_back(knots.places[at]);
    fewer.values.push_back(knots.values[at]);
  }
  return fewer;
}

}  // namespace

FeatureMap FeatureMap::through(Matrix<double> knots) {
  const Index count = knots.rows() / 2;
  if (knots.size() == 0 || knots.rows() != 2 * count)
    throw ArgumentError(
        fmt::format("FeatureMap: expected knots [2 k, channels], k places and k values, got [{}, {}]",
                    knots.rows(), knots.cols()));
  require_finite(knots, "FeatureMap", "the knots");
  for (Index c = 0; c < knots.cols(); ++c)
    for (Index k = 1; k < count; ++k)
      if (knots(k, c) < knots(k - 1, c))
        throw ArgumentError(
            fmt::format("FeatureMap: expected ascending places, got {} behind {} of channel {}", knots(k, c),
                        knots(k - 1, c), c));
  FeatureMap map;
  map.knots_ = std::move(knots);
  return map;
}

FeatureMap FeatureMap::clipped(const Inputs<double>& x) {
  std::vector<Knots> channels;
  for (const std::vector<double>& sorted : sorted_channels(x, "FeatureMap::clipped"))
    channels.push_back({{sorted.front(), sorted.back()}, {sorted.front(), sorted.back()}});
  return through(joined(channels));
}

FeatureMap FeatureMap::normal_scores(const Inputs<double>& x) {
  std::vector<Knots> channels;
  for (const std::vector<double>& sorted : sorted_channels(x, "FeatureMap::normal_scores"))
    channels.push_back(normal_scores_of(sorted));
  return through(joined(channels));
}

FeatureMap FeatureMap::without(std::span<const Index> left_out, Index channels) {
  std::vector<bool> stays(static_cast<std::size_t>(std::max<Index>(channels, 0)), true);
  for (const Index place : left_out) {
    if (place < 0 || place >= channels)
      throw ArgumentError(
          fmt::format("FeatureMap::without: expected channels 0 to {}, got {}", channels - 1, place));
    stays[static_cast<std::size_t>(place)] = false;
  }
  const auto count = static_cast<Index>(std::ranges::count(stays, true));
  if (count == 0)
    throw ArgumentError(
        fmt::format("FeatureMap::without: expected a channel that stays, got all {}", channels));
  if (count == channels) return {};
  Matrix<double> factors = Matrix<double>::Zero(channels, count);
  Index next = 0;
  for (Index c = 0; c < channels; ++c)
    if (stays[static_cast<std::size_t>(c)]) factors(c, next++) = 1;
  return FeatureMap(std::move(factors));
}

Index FeatureMap::channels() const { return ChannelMap::channels_of(knots_, factors_); }

FeatureMap FeatureMap::then(const FeatureMap& other) const {
  if (is_identity()) return other;
  if (other.is_identity()) return *this;
  const Index between = factors_.size() > 0 ? factors_.cols() : knots_.cols(), expected = other.channels();
  if (between != expected)
    throw ArgumentError(
        fmt::format("FeatureMap::then: expected a map of {} channels, got one of {}", between, expected));
  FeatureMap both = *this;
  if (other.knots_.size() > 0) both.knots_ = knots_before(other.knots_);
  both.factors_ = factors_and(other.factors_);
  return both;
}

Matrix<double> FeatureMap::knots_before(const Matrix<double>& knots) const {
  const std::vector<Index> picked = factors_.rows() > 1 ? picked_channels(factors_) : std::vector<Index>();
  const bool only_leaves_out =
      knots_.size() == 0 && !picked.empty() && (factors_.array() == 0 || factors_.array() == 1).all();
  if (!only_leaves_out)
    throw ArgumentError(
        "FeatureMap::then: expected a map without functions of channels behind one that changes them");
  Matrix<double> before = Matrix<double>::Zero(knots.rows(), factors_.rows());
  for (std::size_t c = 0; c < picked.size(); ++c) before.col(picked[c]) = knots.col(static_cast<Index>(c));
  return before;
}

Matrix<double> FeatureMap::factors_and(const Matrix<double>& next) const {
  if (factors_.size() == 0) return next;
  if (next.size() == 0) return factors_;
  if (is_diagonal()) {
    const auto own = factors_.row(0);
    return next.rows() == 1 ? Matrix<double>(own.cwiseProduct(next.row(0)))
                            : Matrix<double>(own.asDiagonal() * next);
  }
  return next.rows() == 1 ? Matrix<double>(factors_ * next.row(0).asDiagonal())
                          : Matrix<double>(factors_ * next);
}

FeatureMap::FeatureMap(Matrix<double> factors) : factors_{std::move(factors)} {
  if (factors_.size() == 0) return;
  if (factors_.rows() != 1 && factors_.rows() < factors_.cols())
    throw ArgumentError(
        fmt::format("FeatureMap: expected factors [1, channels] or [channels, at most as many], got [{}, {}]",
                    factors_.rows(), factors_.cols()));
  require_finite(factors_, "FeatureMap", "the factors");
}

template <typename Scalar>
Inputs<Scalar> FeatureMap::apply(const Inputs<Scalar>& x) const {
  if (is_identity()) return x;
  if (x.channels() != channels())
    throw ArgumentError(
        fmt::format("FeatureMap: expected inputs of {} channels, got {}", channels(), x.channels()));
  Inputs<Scalar> mapped = mapped_numbers(x, ChannelMap(knots_, factors_));
  if (x.is_masked())
    return mapped.is_ragged() ? Inputs<Scalar>(mapped, joined_mask_list<Scalar>({&x}))
                              : Inputs<Scalar>(mapped, joined_masks<Scalar>({&x}));
  return x.graphs().empty() ? mapped : Inputs<Scalar>(mapped, joined_graphs<Scalar>({&x}));
}

template Inputs<float> FeatureMap::apply(const Inputs<float>&) const;
template Inputs<double> FeatureMap::apply(const Inputs<double>&) const;

}  // namespace widelimit::gp
