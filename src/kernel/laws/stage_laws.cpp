#include "kernel/laws/stage_laws.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernel/laws/larger.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit {
namespace {

/// NNGP and NTK.
using BothKernels = std::array<Matrix<double>, 2>;

Matrix<double> drawn_matrix(Index rows, Index columns, numerics::RandomStream& random) {
  Matrix<double> matrix(rows, columns);
  for (double& number : matrix.reshaped()) number = random.normal();
  return matrix;
}

/// A row stage between positions of given variances.
class StageOnRow {
 public:
  enum class Variances { equal, different };
  StageOnRow(const RowStage& stage, Variances variances) : stage_{stage}, random_(8) {
    for (Vector<double>* side : {&left_.variances, &right_.variances}) {
      side->resize(count);
      for (double& variance : *side) variance = 0.4 + random_.uniform();
    }
    if (variances == Variances::equal) right_.variances = left_.variances;
    left_.prepare(stage_);
    right_.prepare(stage_);
  }

  [[nodiscard]] const Vector<double>& left_variances() const { return left_.variances; }
  [[nodiscard]] Matrix<double> covariances() {
    Matrix<double> drawn(1, count);
    for (Index i = 0; i < count; ++i)
      drawn(0, i) = (0.8 * random_.uniform() - 0.4) * std::sqrt(left_.variances[i] * right_.variances[i]);
    return drawn;
  }
  [[nodiscard]] BothKernels behind(const Matrix<double>& nngp, const Matrix<double>& ntk) const {
    BothKernels made{nngp, ntk};
    stage_.apply(numerics::DualRow<double>{made[0].data(), made[1].data(), left_.arrays.data(),
                                           right_.arrays.data(), static_cast<std::size_t>(count)});
    return made;
  }

 private:
  static constexpr Index count = 19;
  struct Side {
    Vector<double> variances;
    Matrix<double> numbers;
    std::vector<const double*> arrays;

    void prepare(const RowStage& stage) {
      numbers.resize(static_cast<Index>(stage.auxiliary_count()), count);
      std::vector<double*> written;
      for (Index k = 0; k < numbers.rows(); ++k) written.push_back(numbers.row(k).data());
      stage.prepare(variances.data(), static_cast<std::size_t>(count), written.data());
      arrays.assign(written.begin(), written.end());
    }
  };

  const RowStage& stage_;
  numerics::RandomStream random_;
  Side left_, right_;
};

/// A pair stage between two inputs of one shape.
class StageOnPair {
 public:
  StageOnPair(const PairStage& stage, const Shape& shape) : stage_{stage}, shape_{shape}, random_(9) {
    positions_ = position_count(shape);
    for (Side* side : {&left_, &right_}) {
      const Matrix<double> x = drawn_matrix(positions_, channels(), random_);
      side->self = x * x.transpose() / static_cast<double>(channels());
      side->variances = side->self.diagonal();
      side->state.resize(stage.state_size(shape));
      stage.prepare(SelfView<double>{seen(side->self), shape}, side->state.data());
    }
  }

  [[nodiscard]] Matrix<double> covariances() {
    return drawn_matrix(positions_, channels(), random_) *
           drawn_matrix(positions_, channels(), random_).transpose() / static_cast<double>(channels());
  }
  [[nodiscard]] BothKernels behind(const Matrix<double>& nngp, const Matrix<double>& ntk) const {
    const Index positions = position_count(stage_.output_shape(shape_));
    BothKernels made{Matrix<double>::Zero(positions, positions), Matrix<double>::Zero(positions, positions)};
    std::vector<double> scratch(stage_.scratch_size(shape_, shape_));
    PairResult<double> result{
        {made[0].data(), positions, positions}, {made[1].data(), positions, positions}, scratch.data()};
    stage_.apply(
        PairView<double>{seen(nngp), seen(ntk), left_.variances.data(), right_.variances.data(),
                         left_.state.data(), right_.state.data(), shape_, shape_, false, Entries::all},
        result);
    return made;
  }

 private:
  struct Side {
    Matrix<double> self;
    Vector<double> variances;
    std::vector<double> state;
  };
  static Eigen::Map<const Matrix<double>> seen(const Matrix<double>& matrix) {
    return {matrix.data(), matrix.rows(), matrix.cols()};
  }
  [[nodiscard]] Index channels() const { return 2 * positions_ + 8; }

  const PairStage& stage_;
  const Shape& shape_;
  numerics::RandomStream random_;
  Index positions_ = 0;
  Side left_, right_;
};

double largest_entry(const Matrix<double>& matrix) {
  return matrix.size() == 0 ? 0 : matrix.cwiseAbs().maxCoeff();
}

template <typename Stage>
double linear_ntk_deviation_of(Stage stage) {
  constexpr double rounding = 1e-9;
  const Matrix<double> first = stage.covariances(), second = stage.covariances(), both = first + second;
  const BothKernels of_first = stage.behind(first, first);
  const double size = largest_entry(of_first[0]);
  const Matrix<double> rest = stage.behind(both, both)[0] - of_first[0] - stage.behind(second, second)[0];
  if (size == 0 || largest_entry(rest) > rounding * size) return 0;
  return largest_entry(of_first[1] - of_first[0]) / size;
}

bool takes_no_graph(const PairStage& stage, const Shape& shape) {
  try {
    stage.check_graph(nullptr, shape);
    return true;
  } catch (const ArgumentError&) {
    return false;
  }
}

double tie_deviation(const RowStage& stage) {
  const StageOnRow row(stage, StageOnRow::Variances::equal);
  const Matrix<double> variances = row.left_variances().transpose();
  const auto at = [&](double distance) {
    return row.behind((1 - distance) * variances, Matrix<double>::Ones(1, variances.cols()));
  };
  // Slopes of the angle, 1 / sqrt(1 - c), make these differences 1 to 100. What jumps has two equal ones.
  const BothKernels tie = at(0), near = at(1e-12), far = at(1e-8);
  double largest = 0;
  for (std::size_t k = 0; k < tie.size(); ++k)
    for (Index i = 0; i < variances.cols(); ++i) {
      const double value = tie[k](0, i), size = std::max(std::abs(value), std::abs(far[k](0, i)));
      const double jump = std::abs(near[k](0, i) - value) - 0.1 * std::abs(far[k](0, i) - value);
      if (size > 0) largest = larger(largest, std::max(jump, 0.0) / size);
    }
  return largest;
}

}  // namespace

double linear_ntk_deviation(const Graph& graph, const Shape& input) {
  const std::vector<Shape> shapes = node_shapes(graph, input);
  double largest = 0;
  for (const Node& node : graph.nodes) {
    // The standard parametrisation is a stage behind the weights of its own layer, whose NTK it completes.
    if (node.inputs.empty() || graph.nodes[node.inputs[0]].path == node.path) continue;
    const RowStage* row = row_stage_of(node.operation);
    const PairStage* pair = pair_stage_of(node.operation);
    if (row != nullptr && !row->rules().own_weights)
      largest = larger(largest, linear_ntk_deviation_of(StageOnRow(*row, StageOnRow::Variances::different)));
    if (pair != nullptr && !pair->rules().own_weights && takes_no_graph(*pair, shapes[node.inputs[0]]))
      largest = larger(largest, linear_ntk_deviation_of(StageOnPair(*pair, shapes[node.inputs[0]])));
  }
  return largest;
}

double tie_deviation(const Graph& graph) {
  double largest = 0;
  for (const Node& node : graph.nodes)
    if (const RowStage* row = row_stage_of(node.operation)) largest = larger(largest, tie_deviation(*row));
  return largest;
}

}  // namespace widelimit
