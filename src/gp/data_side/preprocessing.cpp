#include "widelimit/gp/preprocessing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "data/standardised_values.hpp"
#include "gp/solvers/linear_algebra.hpp"
#include "json/json_value.hpp"
#include "widelimit/error.hpp"

namespace widelimit::gp {
namespace {

using Extents = std::vector<std::size_t>;

/// Keeps constant positions and images at 0.
constexpr double deviation_offset = 1e-5;
/// Inputs that are whitened together: enough for a matrix product to be fast, few beside the inputs.
constexpr std::size_t block_size = 512;

constexpr std::array<std::pair<PreprocessingKind, std::string_view>, 5> kinds{
    {{PreprocessingKind::none, "none"},
     {PreprocessingKind::pixel, "pixel"},
     {PreprocessingKind::image, "image"},
     {PreprocessingKind::channel, "channel"},
     {PreprocessingKind::zca, "zca"}}};

constexpr bool is_fitted(PreprocessingKind kind) {
  return kind == PreprocessingKind::channel || kind == PreprocessingKind::zca;
}

std::size_t value_count(const Extents& extents) {
  std::size_t result = 1;
  for (const std::size_t extent : extents) result *= extent;
  return result;
}

template <typename Scalar>
Extents input_shape_of(const xt::xarray<Scalar>& x) {
  if (x.dimension() < 2)
    throw ArgumentError(
        fmt::format("preprocessing: expected inputs [n, spatial..., channels], got {} axes", x.dimension()));
  return {x.shape().begin() + 1, x.shape().end()};
}

template <typename Scalar>
void require_finite_inputs(const xt::xarray<Scalar>& x) {
  const auto bad = std::find_if_not(x.begin(), x.end(), [](Scalar value) { return std::isfinite(value); });
  if (bad != x.end())
    throw ArgumentError(
        fmt::format("preprocessing: inputs must be finite, got {} at entry {}", *bad, bad - x.begin()));
}

void require_regulariser(double regulariser) {
  if (!(regulariser > 0) || !std::isfinite(regulariser))
    throw ArgumentError(
        fmt::format("preprocessing: zca_regulariser must be positive and finite, got {}", regulariser));
}

void require_channels(PreprocessingKind kind, std::size_t channels) {
  if (kind == PreprocessingKind::pixel && channels < 2)
    throw ArgumentError(fmt::format(
        "preprocessing: pixel needs two or more channels, got {}; use image, channel or zca", channels));
}

/// Every `size` numbers on their own.
template <typename Scalar>
xt::xarray<Scalar> standardised(const xt::xarray<Scalar>& x, std::size_t size) {
  xt::xarray<Scalar> result = xt::xarray<Scalar>::from_shape(x.shape());
  for (std::size_t at = 0; at < x.size(); at += size)
    data::write_standardised(std::span(x.data() + at, size), result.data() + at, deviation_offset);
  return result;
}

/// Inputs first .. first + count - 1, a row each.
template <typename Scalar>
auto rows_of_inputs(const xt::xarray<Scalar>& x, std::size_t first, std::size_t count) {
  const std::size_t size = x.size() / x.shape(0);
  const Eigen::Map<const Matrix<Scalar>> rows(x.data() + first * size, static_cast<Eigen::Index>(count),
                                              static_cast<Eigen::Index>(size));
  return rows.template cast<double>();
}

/// body(first, count) for blocks of inputs.
template <typename Body>
void for_each_block(std::size_t inputs, const Body& body) {
  for (std::size_t first = 0; first < inputs; first += block_size)
    body(first, std::min(block_size, inputs - first));
}

/// (C + eps mean(C_ii) I)^{-1/2}.
Matrix<double> whitening(Matrix<double> covariance, double regulariser) {
  const double added = regulariser * covariance.diagonal().mean();
  // Identical inputs have no directions to whiten.
  if (!(added > 0)) throw ArgumentError("preprocessing: zca needs training inputs that differ");
  SymmetricEigen eigen = symmetric_eigen(std::move(covariance), "preprocessing: zca");
  // Rounding leaves some of the eigenvalues that are 0 slightly negative. Row k of eigen.vectors is eigenvector k: with
  // its power -1/4 on each side the product below has the power -1/2.
  const Vector<double> roots = (eigen.values.array().max(0) + added).pow(-0.25);
  eigen.vectors = roots.asDiagonal() * eigen.vectors;
  Matrix<double> result = Matrix<double>::Zero(roots.size(), roots.size());
  add_scaled_gram(result, 1, eigen.vectors.transpose());
  return result;
}

/// Where the numbers of an input [spatial..., C] go when it is reversed along its last spatial axis.
std::vector<Eigen::Index> mirrored_places(const Extents& input_shape) {
  const std::size_t channels = input_shape.back(), width = input_shape[input_shape.size() - 2];
  std::vector<Eigen::Index> places;
  for (std::size_t i = 0; i < value_count(input_shape); ++i) {
    const std::size_t position = i / channels, column = position % width;
    places.push_back(
        static_cast<Eigen::Index>((position - column + width - 1 - column) * channels + i % channels));
  }
  return places;
}

/// (A + S A S^T) / 2, S being the reversal: exactly as it is in a mirror.
Matrix<double> mirror_mean(const Matrix<double>& matrix, const std::vector<Eigen::Index>& places) {
  return (matrix + matrix(places, places)) / 2;
}

/// `mirrored`: where numbers go in mirror images, which are then fitted to as well; empty: they are not. The covariance
/// of inputs and mirror images about their common mean is a mean over both, and so is what follows from it.
template <typename Scalar>
std::pair<Vector<double>, Matrix<double>> fit_zca(const xt::xarray<Scalar>& train, double regulariser,
                                                  const std::vector<Eigen::Index>& mirrored) {
  const auto n = static_cast<double>(train.shape(0));
  Vector<double> means = rows_of_inputs(train, 0, train.shape(0)).colwise().sum().transpose() / n;
  // eval() makes a copy first, because the right-hand side reads the means in another order.
  if (!mirrored.empty()) means = ((means + means(mirrored)) / 2).eval();
  Matrix<double> covariance = Matrix<double>::Zero(means.size(), means.size());
  for_each_block(train.shape(0), [&](std::size_t first, std::size_t count) {
    const Matrix<double> rows = rows_of_inputs(train, first, count).rowwise() - means.transpose();
    add_scaled_gram(covariance, 1 / n, rows.transpose());
  });
  // Exactly, the whitening of a mirror-symmetric covariance is symmetric too; the second mean
  // removes what rounding leaves.
  if (mirrored.empty()) return {std::move(means), whitening(std::move(covariance), regulariser)};
  Matrix<double> factors = whitening(mirror_mean(covariance, mirrored), regulariser);
  return {std::move(means), mirror_mean(factors, mirrored)};
}

template <typename Scalar>
xt::xarray<Scalar> whitened(const xt::xarray<Scalar>& x, const Vector<double>& offsets,
                            const Matrix<double>& factors) {
  xt::xarray<Scalar> result = xt::xarray<Scalar>::from_shape(x.shape());
  for_each_block(x.shape(0), [&](std::size_t first, std::size_t count) {
    const Matrix<double> centred = rows_of_inputs(x, first, count).rowwise() - offsets.transpose();
    const Matrix<double> rows = multiply(centred, Transpose::no, factors, Transpose::no);
    std::transform(rows.data(), rows.data() + rows.size(),
                   result.data() + first * static_cast<std::size_t>(rows.cols()),
                   [](double value) { return static_cast<Scalar>(value); });
  });
  return result;
}

/// body(channel, number) for every number.
template <typename Scalar, typename Body>
void for_each_number(const xt::xarray<Scalar>& x, const Body& body) {
  const std::size_t channels = x.shape().back();
  for (std::size_t i = 0; i < x.size(); ++i)
    body(static_cast<Eigen::Index>(i % channels), static_cast<double>(x.data()[i]));
}

/// Sums run over differences, from the first number for means and in units of the largest one for deviations: neither
/// large offsets nor the ends of the range of double cost digits.
template <typename Scalar>
std::pair<Vector<double>, Matrix<double>> fit_channels(const xt::xarray<Scalar>& train) {
  const auto columns = static_cast<Eigen::Index>(train.shape().back());
  const double count = static_cast<double>(train.size()) / static_cast<double>(columns);
  const Vector<double> first =
      Eigen::Map<const Eigen::Vector<Scalar, Eigen::Dynamic>>(train.data(), columns).template cast<double>();
  Vector<double> means = first, largest = Vector<double>::Zero(columns), squares = largest;
  for_each_number(train, [&](Eigen::Index c, double value) { means(c) += (value - first(c)) / count; });
  for_each_number(train, [&](Eigen::Index c, double value) {
    largest(c) = std::max(largest(c), std::abs(value - means(c)));
  });
  // A channel that does not vary has no scale of its own and keeps the factor 1: divided by its rounding, another value
  // in a new input would become huge.
  constexpr double roundings = 64;
  const Vector<double> units =
      (largest.array() > (roundings * std::numeric_limits<double>::epsilon()) * means.array().abs())
          .select(largest, 0);
  for_each_number(train, [&](Eigen::Index c, double value) {
    if (units(c) > 0) squares(c) += std::pow((value - means(c)) / units(c), 2) / count;
  });
  Matrix<double> factors(1, columns);
  for (Eigen::Index c = 0; c < columns; ++c)
    factors(0, c) = units(c) > 0 ? 1 / (units(c) * std::sqrt(squares(c))) : 1;
  if (!means.allFinite() || !factors.allFinite() || !(factors.array() > 0).all())
    throw ArgumentError(
        "preprocessing: channel needs numbers whose differences lie within the range of double; rescale the "
        "inputs");
  return {std::move(means), std::move(factors)};
}

template <typename Scalar>
xt::xarray<Scalar> scaled_channels(const xt::xarray<Scalar>& x, const Vector<double>& offsets,
                                   const Matrix<double>& factors) {
  xt::xarray<Scalar> result = xt::xarray<Scalar>::from_shape(x.shape());
  const auto channels = static_cast<std::size_t>(offsets.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto c = static_cast<Eigen::Index>(i % channels);
    result.data()[i] = static_cast<Scalar>((static_cast<double>(x.data()[i]) - offsets(c)) * factors(0, c));
  }
  return result;
}

/// Numbers of offsets, and rows and columns of factors, that a preprocessing has.
struct ArraySizes {
  std::size_t offsets = 0, rows = 0, columns = 0;
};

ArraySizes sizes_of(PreprocessingKind kind, const Extents& input_shape) {
  if (kind == PreprocessingKind::channel) return {input_shape.back(), 1, input_shape.back()};
  const std::size_t values = value_count(input_shape);
  if (kind == PreprocessingKind::zca) return {values, values, values};
  return {};
}

void check_arrays(const ArraySizes& sizes, const Vector<double>& offsets, const Matrix<double>& factors,
                  const std::string& name) {
  const auto rows = static_cast<std::size_t>(factors.rows()),
             columns = static_cast<std::size_t>(factors.cols());
  if (static_cast<std::size_t>(offsets.size()) != sizes.offsets || rows != sizes.rows ||
      columns != sizes.columns)
    throw DataError(fmt::format("{}: expected offsets [{}] and factors [{}, {}], got [{}] and [{}, {}]", name,
                                sizes.offsets, sizes.rows, sizes.columns, offsets.size(), rows, columns));
  if (!offsets.allFinite() || !factors.allFinite())
    throw DataError(fmt::format("{}: offsets and factors must be finite", name));
}

Extents read_input_shape(const JsonValue& value, bool fitted) {
  Extents shape;
  // What is left of the bound is divided by each size, because their product may overflow.
  std::size_t left = std::size_t{1} << 31;
  for (const Index extent : value.get<std::vector<Index>>()) {
    if (extent < 1 || static_cast<std::size_t>(extent) > left)
      value.fail("expected positive sizes whose product is below 2^31");
    shape.push_back(static_cast<std::size_t>(extent));
    left /= shape.back();
  }
  if (shape.empty() == fitted) value.fail(fitted ? "expected the shape of an input" : "expected []");
  return shape;
}

PreprocessingKind read_kind(const JsonValue& value) {
  const auto word = value.get<std::string>();
  try {
    return preprocessing_kind(word);
  } catch (const ArgumentError& error) {
    value.fail(error.what());
  }
}

}  // namespace

std::string to_string(PreprocessingKind kind) {
  const auto found =
      std::find_if(kinds.begin(), kinds.end(), [&](const auto& one) { return one.first == kind; });
  return std::string(found->second);
}

PreprocessingKind preprocessing_kind(std::string_view word) {
  const auto found =
      std::find_if(kinds.begin(), kinds.end(), [&](const auto& one) { return one.second == word; });
  if (found == kinds.end())
    throw ArgumentError(
        fmt::format("preprocessing: expected none, pixel, image, channel or zca, got '{}'", cut_text(word)));
  return found->first;
}

template <typename Scalar>
Preprocessing Preprocessing::fit(PreprocessingKind kind, const xt::xarray<Scalar>& train,
                                 double zca_regulariser, bool mirror_images) {
  Preprocessing result;
  result.kind_ = kind;
  const Extents shape = input_shape_of(train);
  if (train.size() == 0)
    throw ArgumentError("preprocessing: there are no training inputs, or they are empty");
  require_channels(kind, shape.back());
  require_finite_inputs(train);
  if (mirror_images && shape.size() < 2)
    throw ArgumentError(
        "preprocessing: mirror images need inputs [n, spatial..., channels] with a spatial axis");
  if (is_fitted(kind)) result.input_shape_ = shape;
  if (kind == PreprocessingKind::channel) std::tie(result.offsets_, result.factors_) = fit_channels(train);
  if (kind == PreprocessingKind::zca) {
    // Only zca keeps its regulariser: files with one for another kind are damaged (from_json).
    require_regulariser(zca_regulariser);
    result.zca_regulariser_ = zca_regulariser;
    std::tie(result.offsets_, result.factors_) =
        fit_zca(train, zca_regulariser, mirror_images ? mirrored_places(shape) : std::vector<Eigen::Index>());
  }
  return result;
}

bool Preprocessing::keeps_mirror_images() const {
  if (kind_ != PreprocessingKind::zca) return true;
  // Without a spatial axis there are no mirror images.
  if (input_shape_.size() < 2) return false;
  constexpr double tolerance = 1e-9;
  const auto places = mirrored_places(input_shape_);
  const double change = (factors_ - factors_(places, places)).cwiseAbs().maxCoeff(),
               shift = (offsets_ - offsets_(places)).cwiseAbs().maxCoeff();
  return change <= tolerance * factors_.cwiseAbs().maxCoeff() &&
         shift <= tolerance * offsets_.cwiseAbs().maxCoeff();
}

template <typename Scalar>
xt::xarray<Scalar> Preprocessing::apply(const xt::xarray<Scalar>& x) const {
  const Extents shape = input_shape_of(x);
  if (is_fitted(kind_) && shape != input_shape_)
    throw ArgumentError(fmt::format("preprocessing: expected inputs of shape [{}] as in training, got [{}]",
                                    fmt::join(input_shape_, ", "), fmt::join(shape, ", ")));
  require_channels(kind_, shape.back());
  require_finite_inputs(x);
  if (kind_ == PreprocessingKind::pixel) return standardised(x, shape.back());
  if (kind_ == PreprocessingKind::image) return standardised(x, value_count(shape));
  if (kind_ == PreprocessingKind::channel) return scaled_channels(x, offsets_, factors_);
  if (kind_ == PreprocessingKind::zca) return whitened(x, offsets_, factors_);
  return x;
}

nlohmann::json Preprocessing::to_json() const {
  return {{"kind", to_string(kind_)}, {"input_shape", input_shape_}, {"zca_regulariser", zca_regulariser_}};
}

Preprocessing Preprocessing::from_json(const nlohmann::json& json, Vector<double> offsets,
                                       Matrix<double> factors, const std::string& name) {
  const JsonValue value(json, name);
  Preprocessing result;
  result.kind_ = read_kind(value.at("kind"));
  result.input_shape_ = read_input_shape(value.at("input_shape"), is_fitted(result.kind_));
  result.zca_regulariser_ = value.at("zca_regulariser");
  if (result.kind_ == PreprocessingKind::zca ? !(result.zca_regulariser_ > 0) : result.zca_regulariser_ != 0)
    value.at("zca_regulariser").fail("expected a positive number for zca, and 0 for others");
  check_arrays(sizes_of(result.kind_, result.input_shape_), offsets, factors, name);
  result.offsets_ = std::move(offsets);
  result.factors_ = std::move(factors);
  return result;
}

template Preprocessing Preprocessing::fit(PreprocessingKind, const xt::xarray<float>&, double, bool);
template Preprocessing Preprocessing::fit(PreprocessingKind, const xt::xarray<double>&, double, bool);
template xt::xarray<float> Preprocessing::apply(const xt::xarray<float>&) const;
template xt::xarray<double> Preprocessing::apply(const xt::xarray<double>&) const;

}  // namespace widelimit::gp
