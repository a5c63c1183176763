#include <algorithm>
#include <vector>

#include "kernel/laws/adjoint_differences.hpp"
#include "kernel/laws/adjoint_laws.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

using namespace adjoint_laws;

Matrix<double> law_matrix(Index rows, Index columns, numerics::RandomStream& random) {
  Matrix<double> matrix(rows, columns);
  for (double& number : matrix.reshaped()) number = random.normal();
  return matrix;
}

/// What a pair stage reads: the kernels of a pair, and the covariances of both inputs with themselves. For one input
/// with itself the latter are empty, because they are those of the pair.
struct PairPoint {
  Matrix<double> nngp, ntk, left_self, right_self;

  [[nodiscard]] PairPoint moved(const PairPoint& direction, double t) const {
    return {nngp + t * direction.nngp, ntk + t * direction.ntk, left_self + t * direction.left_self,
            right_self + t * direction.right_self};
  }
};

/// A pair stage on two inputs of one shape, or on one input with itself, and a random function L of what it makes of
/// them.
class PairTrial {
 public:
  PairTrial(const PairStage& stage, const Shape& shape, bool itself)
      : stage_{stage}, shape_{shape}, itself_{itself}, random_(6) {
    const Index behind = position_count(stage.output_shape(shape));
    nngp_weights_ = law_matrix(behind, behind, random_);
    ntk_weights_ = law_matrix(behind, behind, random_);
  }

  [[nodiscard]] double deviation() {
    const PairPoint point = draw(), adjoint = backward_pass(point);
    const PairPoint whole{direction(point.nngp, 1), direction(point.ntk, 1), direction(point.left_self, 1),
                          direction(point.right_self, 1)};
    const PairPoint made = PairPoint{behind(point, 0), behind(point, 1), {}, {}};
    const double size = nngp_weights_.cwiseProduct(made.nngp).cwiseAbs().sum() +
                        ntk_weights_.cwiseProduct(made.ntk).cwiseAbs().sum();
    double largest = 0;
    for (const auto part :
         {&PairPoint::nngp, &PairPoint::ntk, &PairPoint::left_self, &PairPoint::right_self}) {
      PairPoint some{direction(point.nngp, 0), direction(point.ntk, 0), direction(point.left_self, 0),
                     direction(point.right_self, 0)};
      some.*part = whole.*part;
      largest = std::max(largest, relative_gap([&](double t) { return value(point.moved(some, t)); },
                                               numbers(adjoint.*part), numbers(whole.*part), 1e-2 * size));
    }
    return largest;
  }

 private:
  static LawNumbers numbers(const Matrix<double>& matrix) {
    return {matrix.data(), matrix.data() + matrix.size()};
  }

  /// Covariances of random vectors, which are positive definite together because there are more channels than
  /// positions of both inputs.
  [[nodiscard]] PairPoint draw() {
    const Index d = position_count(shape_), channels = 2 * d + 8;
    const Matrix<double> left = law_matrix(d, channels, random_).array() + 0.3,
                         right = law_matrix(d, channels, random_).array() + 0.3;
    const auto covariances = [&](const Matrix<double>& x, const Matrix<double>& y) {
      return Matrix<double>(x * y.transpose() / static_cast<double>(channels));
    };
    if (itself_) {
      const Matrix<double> ntk = law_matrix(d, d, random_);
      return {covariances(left, left), ntk + ntk.transpose(), Matrix<double>(0, 0), Matrix<double>(0, 0)};
    }
    return {covariances(left, right), law_matrix(d, d, random_), covariances(left, left),
            covariances(right, right)};
  }

  /// A symmetric direction, since covariances of an input with itself are symmetric. For pairs it is a direction like
  /// any other.
  [[nodiscard]] Matrix<double> direction(const Matrix<double>& point, double size) {
    const Matrix<double> any = law_matrix(point.rows(), point.cols(), random_);
    return 0.3 * size * (any + any.transpose());
  }

  using ConstMap = Eigen::Map<const Matrix<double>>;
  using Map = Eigen::Map<Matrix<double>>;
  static ConstMap seen(const Matrix<double>& matrix) { return {matrix.data(), matrix.rows(), matrix.cols()}; }
  static Map written(Matrix<double>& matrix) { return {matrix.data(), matrix.rows(), matrix.cols()}; }

  /// One input: its covariances with itself, its variances, and its state.
  struct Side {
    const Matrix<double>& self;
    Vector<double> variance;
    LawNumbers state;
  };
  [[nodiscard]] Side side(const Matrix<double>& self) const {
    Side made{self, self.diagonal(), LawNumbers(stage_.state_size(shape_))};
    stage_.prepare(SelfView<double>{seen(self), shape_}, made.state.data());
    return made;
  }
  [[nodiscard]] Side left(const PairPoint& point) const {
    return side(itself_ ? point.nngp : point.left_self);
  }
  [[nodiscard]] Side right(const PairPoint& point) const {
    return side(itself_ ? point.nngp : point.right_self);
  }

  [[nodiscard]] PairView<double> view(const PairPoint& point, const Side& left, const Side& right) const {
    return {seen(point.nngp),
            seen(point.ntk),
            left.variance.data(),
            right.variance.data(),
            left.state.data(),
            right.state.data(),
            shape_,
            shape_,
            itself_,
            Entries::all};
  }

  /// The NNGP (`which` 0) or the NTK (1) after the stage.
  [[nodiscard]] Matrix<double> behind(const PairPoint& point, int which) const {
    const Side from_left = left(point), from_right = right(point);
    Matrix<double> nngp = nngp_weights_, ntk = ntk_weights_;
    LawNumbers scratch(stage_.scratch_size(shape_, shape_));
    PairResult<double> result{written(nngp), written(ntk), scratch.data()};
    stage_.apply(view(point, from_left, from_right), result);
    return which == 0 ? nngp : ntk;
  }
  [[nodiscard]] double value(const PairPoint& point) const {
    return nngp_weights_.cwiseProduct(behind(point, 0)).sum() +
           ntk_weights_.cwiseProduct(behind(point, 1)).sum();
  }

  /// The adjoints of everything that the stage reads.
  [[nodiscard]] PairPoint backward_pass(const PairPoint& point) const {
    const Side from_left = left(point), from_right = right(point);
    PairPoint adjoint = point;
    for (Matrix<double>* block : {&adjoint.nngp, &adjoint.ntk, &adjoint.left_self, &adjoint.right_self})
      block->setZero();
    Vector<double> left_variance = Vector<double>::Zero(from_left.variance.size()),
                   right_variance = left_variance;
    LawNumbers left_state(from_left.state.size()), right_state(from_right.state.size());
    stage_.apply_adjoint(
        view(point, from_left, from_right),
        {seen(nngp_weights_), seen(ntk_weights_), written(adjoint.nngp), written(adjoint.ntk),
         left_variance.data(), right_variance.data(), left_state.data(), right_state.data()});
    go_back_in(from_left, left_state, left_variance, itself_ ? adjoint.nngp : adjoint.left_self);
    go_back_in(from_right, right_state, right_variance, itself_ ? adjoint.nngp : adjoint.right_self);
    return adjoint;
  }
  // Passes the adjoints of a state and of variances on to the covariance of which both were made.
  void go_back_in(const Side& from, const LawNumbers& state_adjoint, const Vector<double>& variance_adjoint,
                  Matrix<double>& target) const {
    stage_.prepare_adjoint(SelfView<double>{seen(from.self), shape_},
                           SelfAdjoint<double>{from.state.data(), state_adjoint.data(), written(target)});
    target.diagonal() += variance_adjoint;
  }

  const PairStage& stage_;
  const Shape& shape_;
  bool itself_;
  numerics::RandomStream random_;
  Matrix<double> nngp_weights_, ntk_weights_;
};

bool needs_graph(const PairStage& stage, const Shape& shape) {
  try {
    stage.check_graph(nullptr, shape);
    return false;
  } catch (const ArgumentError&) {
    return true;
  }
}

}  // namespace

double adjoint_deviation(const PairStage& stage, const Shape& shape) {
  if (!stage.has_adjoint() || needs_graph(stage, shape)) return 0;
  return std::max(PairTrial(stage, shape, false).deviation(), PairTrial(stage, shape, true).deviation());
}

}  // namespace widelimit
