#include "layers/common/attention_positions.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "layers/common/checks.hpp"
#include "widelimit/error.hpp"

namespace widelimit::layers {
namespace {

/// exp(-phi r^2) between the positions of one axis, with r in units of the axis. Positions are counted from 1, which
/// matters between sequences of different length. The squared distance adds up over axes, so that the covariance is a
/// Kronecker product.
Matrix<double> axis_decay(double phi, Index left, Index right) {
  Matrix<double> decay(left, right);
  for (Index i = 0; i < left; ++i)
    for (Index j = 0; j < right; ++j) {
      const double distance = static_cast<double>(i + 1) / static_cast<double>(left) -
                              static_cast<double>(j + 1) / static_cast<double>(right);
      decay(i, j) = std::exp(-phi * distance * distance);
    }
  return decay;
}

Matrix<double> kronecker(const Matrix<double>& outer, const Matrix<double>& inner) {
  Matrix<double> product(outer.rows() * inner.rows(), outer.cols() * inner.cols());
  for (Index i = 0; i < outer.rows(); ++i)
    for (Index j = 0; j < outer.cols(); ++j)
      product.block(i * inner.rows(), j * inner.cols(), inner.rows(), inner.cols()) = outer(i, j) * inner;
  return product;
}

Matrix<double> axis_distances(double power, Index left, Index right) {
  Matrix<double> distances(left, right);
  for (Index i = 0; i < left; ++i)
    for (Index j = 0; j < right; ++j) distances(i, j) = std::pow(static_cast<double>(std::abs(i - j)), power);
  return distances;
}

/// The same blocks as kronecker(), with sums in place of products: distances add up over axes.
Matrix<double> outer_sum(const Matrix<double>& outer, const Matrix<double>& inner) {
  Matrix<double> sum(outer.rows() * inner.rows(), outer.cols() * inner.cols());
  for (Index i = 0; i < outer.rows(); ++i)
    for (Index j = 0; j < outer.cols(); ++j)
      sum.block(i * inner.rows(), j * inner.cols(), inner.rows(), inner.cols()) =
          (inner.array() + outer(i, j)).matrix();
  return sum;
}

/// Between the positions of two inputs, [d, d'].
Matrix<double> position_distances(double power, const Shape& left, const Shape& right) {
  Matrix<double> distances = Matrix<double>::Zero(1, 1);
  for (std::size_t axis = 0; axis < left.size(); ++axis)
    distances = outer_sum(distances, axis_distances(power, left[axis], right[axis]));
  return distances;
}

/// All different distances between positions of one input, from 0 upwards.
std::vector<double> different_distances(double power, const Shape& shape) {
  const Shape corner(shape.size(), 1);
  const Matrix<double> from_first = position_distances(power, corner, shape);
  std::vector<double> distances(from_first.data(), from_first.data() + from_first.size());
  std::sort(distances.begin(), distances.end());
  distances.erase(std::unique(distances.begin(), distances.end()), distances.end());
  return distances;
}

/// The value at the distance of two positions; nothing where the decay has none.
std::optional<double> decay_at(const DecayPositions& positions, double distance) {
  const std::vector<double>&values = positions.values, &distances = positions.distances;
  if (distances.empty()) {
    const auto place = static_cast<std::size_t>(distance);
    return place < values.size() ? std::optional(values[place]) : std::nullopt;
  }
  // Powers and sums that were rounded elsewhere may be a little off.
  constexpr double tolerance = 1e-9;
  const auto above = std::lower_bound(distances.begin(), distances.end(), distance * (1 - tolerance));
  std::optional<double> value;
  double nearest = tolerance * distance;
  for (auto at = above; at != distances.end() && *at <= distance * (1 + tolerance); ++at)
    if (std::abs(*at - distance) <= nearest) {
      nearest = std::abs(*at - distance);
      value = values[static_cast<std::size_t>(at - distances.begin())];
    }
  return value;
}

/// R between the positions of two inputs [d, d'], for each kind of encoding (the table of docs/theory/attention.md,
/// section 1). Axes are flattened row-major, so the first axis is the outer factor.
struct Covariance {
  const Shape& left;
  const Shape& right;

  Matrix<double> operator()(const IdentityPositions& positions) const {
    Matrix<double> r = Matrix<double>::Constant(1, 1, positions.rho);
    for (std::size_t axis = 0; axis < left.size(); ++axis)
      r = kronecker(r, Matrix<double>::Identity(left[axis], right[axis]));
    return r;
  }

  Matrix<double> operator()(const StructuredPositions& positions) const {
    Matrix<double> r = Matrix<double>::Constant(1, 1, positions.rho);
    for (std::size_t axis = 0; axis < left.size(); ++axis)
      r = kronecker(r, axis_decay(positions.phi, left[axis], right[axis]));
    return r;
  }

  Matrix<double> operator()(const MatrixPositions& positions) const {
    return positions.rho * positions.covariance.topLeftCorner(position_count(left), position_count(right));
  }

  Matrix<double> operator()(const DecayPositions& positions) const {
    return positions.rho * position_distances(positions.power, left, right).unaryExpr([&](double distance) {
      return decay_at(positions, distance).value();
    });
  }
};

/// Whether no eigenvalue is below -1e-10 times the largest variance, by a Cholesky factorisation of the matrix
/// shifted by that much.
bool is_semidefinite(const Matrix<double>& covariance) {
  const double scale = covariance.diagonal().maxCoeff();
  if (scale <= 0) return covariance.isZero(0);
  const Matrix<double> shifted =
      covariance + 1e-10 * scale * Matrix<double>::Identity(covariance.rows(), covariance.rows());
  return Eigen::LLT<Matrix<double>>(shifted).info() == Eigen::Success;
}

/// Remembers decays that were found positive semidefinite between inputs of some shapes. Every Gram matrix asks
/// again, several times, and the factorisation of 1,024 positions takes longer than all the rest of a pair.
class KnownDecays {
 public:
  struct Decay {
    double power;
    double rho;
    std::vector<double> values;
    std::vector<double> distances;
    Shape left;
    Shape right;
    friend bool operator==(const Decay&, const Decay&) = default;
  };

  /// True if the decay is known, or if check() is true, which is then remembered.
  template <typename Check>
  bool is_fine(Decay decay, const Check& check) {
    {
      const std::scoped_lock lock(mutex_);
      if (std::find(known_.begin(), known_.end(), decay) != known_.end()) return true;
    }
    if (!check()) return false;
    const std::scoped_lock lock(mutex_);
    known_.push_front(std::move(decay));
    if (known_.size() > most) known_.pop_back();
    return true;
  }

 private:
  static constexpr std::size_t most = 64;

  std::mutex mutex_;
  std::deque<Decay> known_;  ///< The latest one first.
};

/// Throws ArgumentError unless the covariance that make() returns is positive semidefinite. It is that of the
/// positions of one input, or of two together.
template <typename Make>
void require_semidefinite(const std::string& what, const DecayPositions& positions, const Shape& left,
                          const Shape& right, const Make& make) {
  static KnownDecays known;
  if (!known.is_fine({positions.power, positions.rho, positions.values, positions.distances, left, right},
                     [&] { return is_semidefinite(make()); }))
    throw ArgumentError(fmt::format("expected {} with a positive semidefinite covariance", what));
}

double largest_distance(const DecayPositions& positions, const Shape& shape) {
  double distance = 0;
  for (const Index size : shape) distance += std::pow(static_cast<double>(size - 1), positions.power);
  return distance;
}

/// Throws ArgumentError unless the decay has a value at every distance within `shape`; `inputs` says of what.
void require_reach(const DecayPositions& positions, const Shape& shape, const std::string& inputs) {
  // Beyond it not all whole numbers are doubles.
  constexpr double largest_place = 9007199254740992;
  const double largest = largest_distance(positions, shape);
  if (!std::isfinite(largest) || (positions.distances.empty() && largest > largest_place))
    throw ArgumentError(fmt::format(
        "the power of distances of positions' decay, {:g}, makes the largest distance {} {:.3g}: expected "
        "at most {}; take a smaller power",
        positions.power, inputs, largest,
        positions.distances.empty() ? "2^53, or `distances` where the values stand" : "1.8e308"));
  if (positions.distances.empty()) {
    if (!(static_cast<double>(positions.values.size()) > largest))
      throw ArgumentError(fmt::format("expected {:.0f} values of positions' decay {}, got {}", largest + 1,
                                      inputs, positions.values.size()));
    return;
  }
  for (const double distance : different_distances(positions.power, shape))
    if (!decay_at(positions, distance))
      throw ArgumentError(
          fmt::format("expected a value of positions' decay at the distance {:.12g} {}, got none among {}",
                      distance, inputs, positions.distances.size()));
}

struct FitCheck {
  const Shape& input;

  void operator()(const IdentityPositions&) const {}
  void operator()(const StructuredPositions&) const {}

  void operator()(const MatrixPositions& positions) const {
    const Index given = positions.covariance.rows(), needed = position_count(input);
    // A sequence may be shorter than the longest one that the matrix is made for; an image has one size.
    if (given < needed || (input.size() > 1 && given != needed))
      throw ArgumentError(fmt::format("expected a positions' matrix of {} x {} for inputs of {}, got {} x {}",
                                      needed, needed, to_string(input), given, given));
  }

  void operator()(const DecayPositions& positions) const {
    require_reach(positions, input, fmt::format("for inputs of {}", to_string(input)));
    require_semidefinite("positions' decay", positions, input, input, [&] {
      return Covariance{input, input}(positions);
    });
  }
};

/// The shorter and the longer sizes along every axis.
std::pair<Shape, Shape> sorted_sizes(const Shape& left, const Shape& right) {
  Shape shorter = left, longer = left;
  for (std::size_t axis = 0; axis < left.size(); ++axis) {
    shorter[axis] = std::min(left[axis], right[axis]);
    longer[axis] = std::max(left[axis], right[axis]);
  }
  return {shorter, longer};
}

/// R of the positions of both inputs together.
Matrix<double> joint_covariance(const DecayPositions& positions, const Shape& left, const Shape& right) {
  const Index d = position_count(left), e = position_count(right);
  Matrix<double> joint(d + e, d + e);
  joint.topLeftCorner(d, d) = Covariance{left, left}(positions);
  joint.topRightCorner(d, e) = Covariance{left, right}(positions);
  joint.bottomLeftCorner(e, d) = joint.topRightCorner(d, e).transpose();
  joint.bottomRightCorner(e, e) = Covariance{right, right}(positions);
  return joint;
}

/// The check of two inputs each of which passes FitCheck.
struct PairCheck {
  const Shape& left;
  const Shape& right;

  void operator()(const IdentityPositions&) const {}
  void operator()(const StructuredPositions&) const {}

  /// Rows of the matrix are numbers of positions. In images of different shapes, one number is at different places.
  void operator()(const MatrixPositions&) const {
    if (left.size() > 1 && left != right)
      throw ArgumentError(fmt::format("expected images of one shape for a positions' matrix, got {} and {}",
                                      to_string(left), to_string(right)));
  }

  void operator()(const DecayPositions& positions) const {
    // Along each axis the largest distance between both inputs is that within the longer one.
    const auto [shorter, longer] = sorted_sizes(left, right);
    // One input has all positions of the other, and the check of that one covers both.
    if (shorter == left || shorter == right) return;
    const std::string inputs = fmt::format("between inputs of {} and {}", to_string(left), to_string(right));
    require_reach(positions, longer, inputs);
    require_semidefinite("positions' decay " + inputs, positions, left, right,
                         [&] { return joint_covariance(positions, left, right); });
  }
};

PositionCovariance with_unit_rho(PositionCovariance covariance) {
  std::visit([](auto& positions) { positions.rho = 1; }, covariance);
  return covariance;
}

double mean_row_sum(const Matrix<double>& covariance) { return covariance.rowwise().sum().mean(); }

/// The scale mean_row_sum divides by the mean row sum, which must be positive beyond rounding.
void check_row_sums(const PositionalEncodings& positions, const Shape& input) {
  // The other kinds have no negative entries that could cancel.
  const bool may_cancel = std::holds_alternative<MatrixPositions>(positions.covariance) ||
                          std::holds_alternative<DecayPositions>(positions.covariance);
  if (positions.scale != PositionScale::mean_row_sum || !may_cancel || position_count(input) == 0) return;
  const Matrix<double> r = std::visit(Covariance{input, input}, with_unit_rho(positions.covariance));
  const double mean = mean_row_sum(r), largest = r.cwiseAbs().rowwise().sum().maxCoeff();
  if (!(mean > 1e-10 * largest))
    throw ArgumentError(
        fmt::format("expected positions whose covariance has a positive mean row sum for inputs of {}, "
                    "got {:.6g}: leave the scale mean_row_sum out",
                    to_string(input), mean));
}

/// Where the values of a decay stand.
void check_distances(const DecayPositions& positions) {
  const std::vector<double>& distances = positions.distances;
  if (distances.empty()) {
    if (positions.power != std::floor(positions.power))
      throw ArgumentError(
          fmt::format("attention: the power of distances is {}, so that they are not whole: expected "
                      "`distances`, where the values stand, got none",
                      positions.power));
    return;
  }
  if (distances.size() != positions.values.size())
    throw ArgumentError(
        fmt::format("attention: positions' decay needs a distance for each value, got {} and {}",
                    distances.size(), positions.values.size()));
  if (distances[0] != 0)
    throw ArgumentError(fmt::format("attention: distances[0] must be 0, got {}", distances[0]));
  for (std::size_t i = 1; i < distances.size(); ++i)
    if (!(distances[i] > distances[i - 1] && std::isfinite(distances[i])))
      throw ArgumentError(
          fmt::format("attention: distances[{}] must be finite and above the one before it, {}, got {}", i,
                      distances[i - 1], distances[i]));
}

struct RangeCheck {
  void operator()(const IdentityPositions& positions) const {
    require_not_negative("attention", "rho", positions.rho);
  }
  void operator()(const StructuredPositions& positions) const {
    require_not_negative("attention", "rho", positions.rho);
    require_not_negative("attention", "phi", positions.phi);
  }
  void operator()(const DecayPositions& positions) const {
    require_not_negative("attention", "rho", positions.rho);
    if (!(positions.power > 0 && std::isfinite(positions.power)))
      throw ArgumentError(fmt::format("attention: the power of distances must be positive and finite, got {}",
                                      positions.power));
    check_distances(positions);
    if (positions.values.empty())
      throw ArgumentError("attention: positions' decay needs at least the value at distance 0, got none");
    for (std::size_t i = 0; i < positions.values.size(); ++i)
      require_finite("attention", fmt::format("values[{}]", i), positions.values[i]);
  }
  void operator()(const MatrixPositions& positions) const {
    require_not_negative("attention", "rho", positions.rho);
    const auto& covariance = positions.covariance;
    if (covariance.rows() != covariance.cols() || covariance.rows() == 0)
      throw ArgumentError(fmt::format("attention: the positions' matrix must be square, got {} x {}",
                                      covariance.rows(), covariance.cols()));
    for (Index i = 0; i < covariance.rows(); ++i)
      for (Index j = 0; j < covariance.cols(); ++j) {
        require_finite("attention", fmt::format("matrix[{}][{}]", i, j), covariance(i, j));
        if (covariance(i, j) != covariance(j, i))
          throw ArgumentError(fmt::format(
              "attention: the positions' matrix must be symmetric, got {} at [{}][{}] and {} at [{}][{}]",
              covariance(i, j), i, j, covariance(j, i), j, i));
      }
    // Eigenvalues take ten times as long as a factorisation, so they are computed only if that leaves a doubt.
    if (is_semidefinite(covariance)) return;
    const auto eigenvalues =
        Eigen::SelfAdjointEigenSolver<Matrix<double>>(covariance, Eigen::EigenvaluesOnly).eigenvalues();
    if (eigenvalues[0] < -1e-10 * eigenvalues[covariance.rows() - 1])
      throw ArgumentError(fmt::format(
          "attention: the positions' matrix must be positive semidefinite, got the eigenvalue {:.6g}",
          eigenvalues[0]));
  }
};

}  // namespace

Matrix<double> position_covariance(const PositionalEncodings& positions, const Shape& left,
                                   const Shape& right) {
  const auto of_pair = [](const PositionCovariance& covariance, const Shape& one, const Shape& other) {
    return Matrix<double>(std::visit(Covariance{one, other}, covariance));
  };
  if (positions.scale == PositionScale::variance) return of_pair(positions.covariance, left, right);
  const double rho = std::visit([](const auto& covariance) { return covariance.rho; }, positions.covariance);
  const PositionCovariance unit = with_unit_rho(positions.covariance);
  Matrix<double> r = of_pair(unit, left, right);
  const double of_left = left == right ? mean_row_sum(r) : mean_row_sum(of_pair(unit, left, left));
  const double of_right = left == right ? of_left : mean_row_sum(of_pair(unit, right, right));
  // Each root is taken by itself, because the product of two sums may leave the range of double.
  r *= rho / (std::sqrt(of_left) * std::sqrt(of_right));
  return r;
}

void check_positions(const PositionalEncodings& positions) {
  std::visit(RangeCheck{}, positions.covariance);
  require_not_negative("attention", "input_weight", positions.input_weight);
  require_not_negative("attention", "position_weight", positions.position_weight);
}

void check_positions_fit(const PositionalEncodings& positions, const Shape& input) {
  std::visit(FitCheck{input}, positions.covariance);
  check_row_sums(positions, input);
}

void check_positions_pair(const PositionalEncodings& positions, const Shape& left, const Shape& right) {
  std::visit(PairCheck{left, right}, positions.covariance);
}

DecayPositions DecayPositions::of(const std::function<double(double)>& decay, Index largest, Index power) {
  constexpr Index most = Index{1} << 20;
  if (largest < 0 || largest > most)
    throw ArgumentError(
        fmt::format("positions' decay: the largest distance must be from 0 to {}, got {}", most, largest));
  DecayPositions positions{.values = {}, .power = static_cast<double>(power)};
  for (Index distance = 0; distance <= largest; ++distance)
    positions.values.push_back(decay(static_cast<double>(distance)));
  return positions;
}

DecayPositions DecayPositions::within(const std::function<double(double)>& decay, const Shape& longest,
                                      double power) {
  constexpr Index most = Index{1} << 20;
  if (!(power > 0 && std::isfinite(power)))
    throw ArgumentError(
        fmt::format("positions' decay: the power of distances must be positive and finite, got {}", power));
  if (position_count(longest) > most)
    throw ArgumentError(fmt::format("positions' decay: there may be up to {} positions, got {}", most,
                                    position_count(longest)));
  DecayPositions positions{.values = {}, .power = power, .distances = different_distances(power, longest)};
  for (const double distance : positions.distances) positions.values.push_back(decay(distance));
  return positions;
}

PositionalEncodings PositionalEncodings::added(PositionCovariance covariance, double variance) {
  return {.covariance = std::move(covariance), .input_weight = 1, .position_weight = variance};
}

PositionalEncodings PositionalEncodings::appended(PositionCovariance covariance, Index channels,
                                                  Index appended, double variance) {
  if (channels < 1 || appended < 1)
    throw ArgumentError(fmt::format(
        "positional encodings: channels must be at least 1, got {} of the input and {} appended ones",
        channels, appended));
  const auto inputs = static_cast<double>(channels), encodings = static_cast<double>(appended);
  return {.covariance = std::move(covariance),
          .input_weight = inputs / (inputs + encodings),
          .position_weight = variance * encodings / (inputs + encodings)};
}

}  // namespace widelimit::layers
