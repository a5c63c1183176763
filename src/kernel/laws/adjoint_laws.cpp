#include "kernel/laws/adjoint_laws.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernel/laws/adjoint_differences.hpp"
#include "kernel/plan/primitives.hpp"

namespace widelimit {
namespace {

using namespace adjoint_laws;

/// The auxiliary arrays of one input.
struct StageArrays {
  StageArrays(const RowStage& stage, const LawNumbers& variances)
      : numbers(stage.auxiliary_count() * variances.size()) {
    for (std::size_t k = 0; k < stage.auxiliary_count(); ++k)
      arrays.push_back(numbers.data() + k * variances.size());
    stage.prepare(variances.data(), variances.size(), arrays.data());
  }
  LawNumbers numbers;
  std::vector<double*> arrays;
};

/// What a row stage reads: position i of one input with position i of another, or of the input with itself. `left`
/// and `right` are their variances. The same type holds directions and adjoints.
struct RowPoint {
  LawNumbers nngp, ntk, left, right;
  bool itself;

  [[nodiscard]] RowPoint moved(const RowPoint& direction, double t) const {
    RowPoint point = *this;
    const auto move = [t](LawNumbers& numbers, const LawNumbers& by) {
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += t * by[i];
    };
    move(point.nngp, direction.nngp);
    move(point.ntk, direction.ntk);
    move(point.left, direction.left);
    move(point.right, direction.right);
    return point;
  }
};

/// A row stage, and a random function L of what it makes of entries: a weighted sum of NNGP and NTK after it.
class RowTrial {
 public:
  RowTrial(const RowStage& stage, std::size_t size) : stage_{stage}, random_(5) {
    nngp_weights_ = normal_numbers(size, random_);
    ntk_weights_ = normal_numbers(size, random_);
  }

  [[nodiscard]] double deviation(bool itself) {
    const RowPoint point = draw(itself), adjoint = backward_pass(point);
    const RowPoint whole = direction(point);
    double largest = 0;
    for (const auto part :
         itself ? std::vector{&RowPoint::nngp, &RowPoint::ntk}
                : std::vector{&RowPoint::nngp, &RowPoint::ntk, &RowPoint::left, &RowPoint::right}) {
      const LawNumbers nothing(point.nngp.size());
      // Each kind of number is moved by itself, so that a large adjoint of one kind cannot hide an error in another.
      RowPoint some{nothing, nothing, nothing, nothing, itself};
      some.*part = whole.*part;
      // The covariances of an input with itself are its variances.
      if (itself) some.left = some.right = some.nngp;
      largest = std::max(largest, relative_gap([&](double t) { return value(point.moved(some, t)); },
                                               adjoint.*part, whole.*part, 1e-2 * size(point)));
    }
    return largest;
  }

  /// The deviation where one position has no variance, along a line on which it gains one: p = a t^2, c = b t, T = e
  /// t (docs/theory/derivatives.md, section 3, "Zeros"). The central slope is the mean of the slopes on both sides.
  /// If it has no limit, nothing is compared.
  [[nodiscard]] double deviation_at_zero() {
    const RowPoint zero = draw_zero(), adjoint = backward_pass(zero), along = zero_direction(zero);
    const auto curve = [&](double t) { return value(on_zero_line(zero, along, t)); };
    const double far = numerics::central_slope(curve, 2e-3), near = numerics::central_slope(curve, 2e-6);
    if (std::abs(far - near) > 0.5 * std::max(std::abs(far), std::abs(near)) &&
        std::abs(far - near) > 1e-6 * size(zero))
      return 0;
    LawNumbers adjoints = adjoint.nngp, directions = along.nngp;
    adjoints.insert(adjoints.end(), adjoint.ntk.begin(), adjoint.ntk.end());
    directions.insert(directions.end(), along.ntk.begin(), along.ntk.end());
    return relative_gap(curve, adjoints, directions, 1e-2 * size(on_zero_line(zero, along, 1)));
  }

 private:
  /// Left and right positions have no variance in turns.
  [[nodiscard]] RowPoint draw_zero() {
    const std::size_t size = nngp_weights_.size();
    RowPoint point{LawNumbers(size), LawNumbers(size), LawNumbers(size), LawNumbers(size), false};
    for (std::size_t i = 0; i < size; ++i)
      (i % 2 == 0 ? point.right : point.left)[i] = 0.4 + random_.uniform();
    return point;
  }
  /// Positions along the line are nearly uncorrelated, because stages treat a position without variance as
  /// uncorrelated with all others.
  [[nodiscard]] RowPoint zero_direction(const RowPoint& zero) {
    RowPoint along = zero;
    for (std::size_t i = 0; i < zero.nngp.size(); ++i) {
      const double variance = 0.4 + random_.uniform(), other = zero.left[i] + zero.right[i];
      (i % 2 == 0 ? along.left : along.right)[i] = variance;
      along.nngp[i] = 1e-4 * (2 * random_.uniform() - 1) * std::sqrt(variance * other);
      along.ntk[i] = 1e-4 * (2 * random_.uniform() - 1);
    }
    return along;
  }
  static RowPoint on_zero_line(const RowPoint& zero, const RowPoint& along, double t) {
    RowPoint point = zero;
    for (std::size_t i = 0; i < zero.nngp.size(); ++i) {
      point.nngp[i] = t * along.nngp[i];
      point.ntk[i] = t * along.ntk[i];
      LawNumbers& growing = i % 2 == 0 ? point.left : point.right;
      growing[i] = t * t * (i % 2 == 0 ? along.left : along.right)[i];
    }
    return point;
  }

  [[nodiscard]] RowPoint draw(bool itself) {
    RowPoint point{{}, normal_numbers(nngp_weights_.size(), random_), {}, {}, itself};
    for (std::size_t i = 0; i < nngp_weights_.size(); ++i) {
      const double p = 0.4 + random_.uniform(), q = itself ? p : 0.4 + random_.uniform();
      point.left.push_back(p);
      point.right.push_back(q);
      point.nngp.push_back(itself ? p : (1.6 * random_.uniform() - 0.8) * std::sqrt(p * q));
    }
    return point;
  }

  [[nodiscard]] RowPoint direction(const RowPoint& point) {
    const auto draw_one = [&] {
      LawNumbers numbers(point.nngp.size());
      for (double& number : numbers) number = 2 * random_.uniform() - 1;
      return numbers;
    };
    return {draw_one(), draw_one(), draw_one(), draw_one(), point.itself};
  }

  [[nodiscard]] std::array<LawNumbers, 2> behind(const RowPoint& point) const {
    const StageArrays left(stage_, point.left), right(stage_, point.right);
    std::array<LawNumbers, 2> made{point.nngp, point.ntk};
    const numerics::DualRow<double> row{made[0].data(), made[1].data(), left.arrays.data(),
                                        right.arrays.data(), point.nngp.size()};
    if (point.itself)
      stage_.apply_self(row);
    else
      stage_.apply(row);
    return made;
  }
  [[nodiscard]] double value(const RowPoint& point) const {
    const auto [nngp, ntk] = behind(point);
    return inner_product(nngp, nngp_weights_) + inner_product(ntk, ntk_weights_);
  }
  [[nodiscard]] double size(const RowPoint& point) const {
    const auto [nngp, ntk] = behind(point);
    return term_sizes(nngp, nngp_weights_) + term_sizes(ntk, ntk_weights_);
  }

  /// The adjoints of everything that the stage reads.
  [[nodiscard]] RowPoint backward_pass(const RowPoint& point) const {
    const StageArrays left(stage_, point.left), right(stage_, point.right);
    const std::size_t size = point.nngp.size();
    RowPoint adjoint{nngp_weights_, ntk_weights_, LawNumbers(size), LawNumbers(size), point.itself};
    const numerics::AdjointRow<double> row{point.nngp.data(),
                                           point.ntk.data(),
                                           point.left.data(),
                                           point.right.data(),
                                           left.arrays.data(),
                                           right.arrays.data(),
                                           adjoint.nngp.data(),
                                           adjoint.ntk.data(),
                                           adjoint.left.data(),
                                           adjoint.right.data(),
                                           size};
    if (point.itself)
      stage_.apply_self_adjoint(row);
    else
      stage_.apply_adjoint(row);
    if (stage_.mixes_variances()) {
      stage_.prepare_adjoint(adjoint.left.data(), size);
      stage_.prepare_adjoint(adjoint.right.data(), size);
    }
    if (point.itself && stage_.mixes_variances())
      for (std::size_t i = 0; i < size; ++i) adjoint.nngp[i] += adjoint.left[i];
    return adjoint;
  }

  const RowStage& stage_;
  numerics::RandomStream random_;
  LawNumbers nngp_weights_, ntk_weights_;
};

}  // namespace

double adjoint_deviation(const RowStage& stage) {
  if (!stage.has_adjoint()) return 0;
  RowTrial trial(stage, 19);
  return std::max({trial.deviation(false), trial.deviation(true), trial.deviation_at_zero()});
}

double adjoint_deviation(const Graph& graph, const Shape& input) {
  std::vector<Shape> shapes;
  double largest = 0;
  for (const Node& node : graph.nodes) {
    std::vector<Shape> inputs;
    for (const NodeId source : node.inputs) inputs.push_back(shapes[source]);
    shapes.push_back(output_shape(node.operation, inputs, input));
    if (const RowStage* row = row_stage_of(node.operation))
      largest = std::max(largest, adjoint_deviation(*row));
    if (const RowStage* local = local_stage_of(node.operation))
      largest = std::max(largest, adjoint_deviation(*local));
    if (const PairStage* pair = pair_stage_of(node.operation))
      largest = std::max(largest, adjoint_deviation(*pair, inputs[0]));
  }
  return largest;
}

}  // namespace widelimit
