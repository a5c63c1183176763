// Every kind of object with Eigen matrices in it that crosses between the library and a user's code, in both
// directions, in a program that its user may compile with flags of their own (-march=native, sanitizers).
// Each part checks its numbers against an identity, and frees, resizes and overwrites what it got.
#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>
#include <widelimit/propagation/finite_transformer.hpp>
#include <widelimit/widelimit.hpp>

namespace {

using namespace widelimit;

bool all_right = true;

void check(std::string_view what, double got, double expected, double tolerance = 1e-9) {
  if (std::abs(got - expected) <= tolerance * (1 + std::abs(expected))) return;
  std::printf("%s: expected %.12g, got %.12g\n", what.data(), expected, got);
  all_right = false;
}

/// Numbers without a pattern, in the user's own column-major matrix.
Eigen::MatrixXd points(Index rows, Index cols, double shift = 0) {
  Eigen::MatrixXd x(rows, cols);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < cols; ++j) x(i, j) = std::sin(1.7 * static_cast<double>(i * cols + j) + shift);
  return x;
}

Network small_network() { return Network({layers::dense(), layers::relu(), layers::dense()}); }

/// What users do to a matrix that they own: copy, move, resize, swap, overwrite, let go.
template <typename Owned>
void handle(Owned matrix) {
  const double sum = static_cast<double>(matrix.sum());
  Owned copy = matrix;
  Owned moved = std::move(matrix);
  matrix = copy + moved;
  copy.swap(moved);
  moved.conservativeResize(moved.rows() + 5, moved.cols());
  copy.resize(copy.rows() + 3, copy.cols());
  copy = matrix / 2;
  check("a matrix that was copied, moved and resized", static_cast<double>(copy.sum()), sum, 1e-6);
}

void kernels() {
  const Network network = small_network();
  const Eigen::MatrixXd x = points(5, 3);
  const Matrix<double> rows = x;
  const auto result = gram<double>(network, x);
  check("Gram matrices of both storage orders", (result.ntk - gram<double>(network, rows).ntk).norm(), 0);
  const Eigen::MatrixXd mine = result.nngp;
  const Eigen::MatrixXd lower = mine.llt().matrixL();
  check("a product of the user's own", (lower * lower.transpose() - result.nngp).norm(), 0);
  check("a mixed product", (mine * result.ntk - result.nngp * Eigen::MatrixXd(result.ntk)).norm(), 0);
  const std::vector<Matrix<double>> sequences{points(4, 3), points(2, 3)};
  const Network pooled({layers::dense(), layers::global_average_pool(), layers::dense()});
  check("a ragged batch", gram<double>(pooled, sequences).nngp(1, 1),
        sequences[1].colwise().mean().squaredNorm() / 3);
  // The arc-cosine kernel of orthogonal vectors is 1 / (2 pi).
  const Matrix<double> orthogonal = Eigen::MatrixXd::Identity(2, 2) * std::sqrt(2.0);
  check("an arc-cosine kernel", gram<double>(network, orthogonal).nngp(0, 1), 0.15915494309189535);
  GramResult<double> other = gram<double>(network, rows);
  std::swap(other.nngp, other.ntk);
  other = gram<double>(network, Inputs<double>(rows), Inputs<double>(rows));
  handle(std::move(other.ntk));
  handle(gram<float>(network, Matrix<float>(x.cast<float>())).nngp);
}

void inference() {
  const auto k = gram<double>(small_network(), points(8, 3));
  const Matrix<double> targets = gp::class_targets(std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1}, 3);
  const gp::Noise noise = gp::AbsoluteNoise(0.5);
  const auto regression = gp::Regression::fit(k.nngp, targets, noise);
  const auto from_float = gp::Regression::fit(k.nngp.cast<float>(), targets, noise);
  const Matrix<double> mean = regression.mean(k.nngp);
  check("weights", (mean + 0.5 * regression.weights() - targets).norm(), 0);
  check("a fit of floats", (from_float.mean(Eigen::MatrixXf(k.nngp.cast<float>())) - mean).norm(), 0, 1e-5);
  const Vector<double> variances = regression.variance(Eigen::MatrixXd(k.nngp), k.nngp.diagonal());
  const Matrix<double> covariance = regression.covariance(k.nngp, Matrix<double>(k.nngp));
  check("variances", (covariance.diagonal() - variances).norm(), 0);
  handle(gp::DoubleMatrix(k.nngp).take());
  handle(gp::DoubleMatrix(Eigen::MatrixXf(k.ntk.cast<float>())).take());
  handle(gp::class_probabilities(mean, variances));
  handle(gp::binary_targets(std::vector<int>{0, 1, 1}));
  handle(Matrix<double>(regression.weights()));

  const std::vector<int> labels{0, 1, 2, 0, 1, 2, 0, 1};
  gp::ConfusionMatrix confusion = gp::confusion_matrix(labels, gp::classes_of(mean), 3);
  confusion = gp::ConfusionMatrix(confusion + confusion.transpose());
  check("a confusion matrix", static_cast<double>(confusion.sum()), 16);
  confusion.resize(7, 7);
  const auto chosen = gp::select_regulariser(k.nngp, targets, Matrix<double>(k.nngp.topRows(4)),
                                             targets.topRows(4), gp::regulariser_grid());
  check("a chosen regulariser", static_cast<double>(chosen.scores.size()), 19);

  const auto flow = gp::GradientFlow::fit(k.nngp, k.ntk, targets);
  check("gradient flow", (flow.train_mean(gp::infinite_time) - targets).norm(), 0, 1e-6);
  handle(flow.covariance(2, k.nngp, k.ntk, k.nngp));
  handle(flow.variance(2, k.nngp, k.ntk, k.nngp.diagonal()));
}

/// A layer of the user's own, x -> 2 x: activations go in and out by value.
template <typename Scalar>
class Doubling final : public finite::FiniteLayer<Scalar> {
 public:
  explicit Doubling(const finite::Site& site) : form_{site.input} {}
  finite::Form output() const override { return form_; }
  finite::Activations<Scalar> forward(const Scalar*, finite::Activations<Scalar> input,
                                      finite::Tape<Scalar>& tape) const override {
    tape.saved.push_back(input.values);
    return input.with(Matrix<Scalar>(Scalar(2) * input.values));
  }
  finite::Activations<Scalar> backward(const Scalar*, const finite::Tape<Scalar>& tape,
                                       finite::Activations<Scalar> gradient,
                                       finite::GradientSink<Scalar>&) const override {
    if (tape.saved.at(0).size() != gradient.values.size()) all_right = false;
    gradient.values *= Scalar(2);
    return gradient;
  }

 private:
  finite::Form form_;
};

/// The same as a pair stage: covariances are multiplied by 4.
class DoublingStage final : public PairStageOf<DoublingStage> {
 public:
  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::as_it_was,
            .own_weights = false};
  }
  Shape output_shape(const Shape& input) const override { return input; }
  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>&, Scalar*) const {}
  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    const Matrix<Scalar> nngp = pair.nngp;
    result.nngp = Scalar(4) * nngp;
    if (result.ntk.size() > 0) result.ntk = Scalar(4) * pair.ntk;
  }
};

Network network_with_own_layer() {
  const Layer doubling =
      layers::pair_layer("doubling", std::make_shared<DoublingStage>(),
                         finite::finite_counterpart<Doubling>(finite::OutputChannels::kept));
  return Network({layers::dense(), doubling, layers::tanh(), layers::dense()});
}

void finite_networks() {
  const Matrix<double> x = points(6, 3);
  finite::FiniteNetwork<double> network(network_with_own_layer(), {{}, 3}, {.hidden = 7, .outputs = 2}, {},
                                        1);
  Vector<double> parameters = network.parameters();
  parameters *= 0.5;
  const Vector<double> direction = points(parameters.size(), 1, 0.3);
  network.set_parameters(std::move(parameters));
  const Matrix<double> weights = points(6, 2);
  const Vector<double> gradient = network.vector_jacobian(x, weights);
  check("both Jacobian products", gradient.dot(direction),
        network.jacobian_vector(x, direction).cwiseProduct(weights).sum());
  const Matrix<double> jacobian = network.jacobian(x, 1);
  Matrix<double> second_only = weights;
  second_only.col(0).setZero();
  check("a Jacobian",
        (jacobian.transpose() * weights.col(1) - network.vector_jacobian(x, second_only)).norm(), 0);
  const auto callback = [&](Index first, const Matrix<double>& outputs) {
    return Matrix<double>(weights.middleRows(first, outputs.rows()));
  };
  check("a gradient callback", (network.gradient(x, 0, callback) - gradient).norm(), 0);
  handle(network.forward(x));
  handle(network.input_jacobian(x));
  check("empirical kernels",
        (finite::empirical_ntk(network, Inputs<double>(x), {.outputs = 1}) -
         network.jacobian(x) * network.jacobian(x).transpose())
            .norm(),
        0);
  const auto losses =
      finite::train<double>(network, x, weights, {.learning_rate = 0.001, .steps = 20}).losses;
  if (!(losses.back() < losses.front())) all_right = false;
  Matrix<double> last;
  finite::MonteCarloOptions options{.widths = {.hidden = 8}, .draws = 3};
  options.on_draw = [&](Index, const Matrix<double>& nngp, const Matrix<double>&) { last = nngp; };
  auto means = finite::monte_carlo_kernel<double>(network_with_own_layer(), x, options);
  means.nngp.add(last);
  handle(means.nngp.standard_error());
  if (!check_laws(layers::pair_layer("doubling", std::make_shared<DoublingStage>())).passed())
    all_right = false;
}

void propagation_maps() {
  using namespace widelimit::propagation;
  const BlockMap map(Parameters{.tokens = 6});
  Matrix<double> start = Matrix<double>::Constant(6, 6, 0.25);
  start.diagonal().setOnes();
  std::vector<Matrix<double>> states = map.trajectory(start, 3);
  const auto symmetric = map.trajectory(TokenState::from_cosine(1, 0.25), 3);
  check("a trajectory of Gram matrices", states.back()(0, 1), symmetric.back().p(), 1e-6);
  states.push_back(start);
  handle(std::move(states[1]));
  const StateJacobian jacobian = map.block_jacobian(TokenState::from_cosine(1, 0.25));
  const std::vector<StateJacobian> jacobians(3, jacobian);
  const Eigen::Matrix2d square = jacobian * jacobians[1];
  check("a Jacobian of 2 x 2", square.determinant(), std::pow(jacobian.determinant(), 2));
  check("a change of basis", in_norm_and_product(jacobian).trace(), jacobian.trace());
  handle(TokenDistribution::gaussian(1, 0.5).draw(4, 16, 1, 0));
}

void ensembles() {
  using namespace widelimit::covariance_sde;
  const Matrix<double> start = Eigen::MatrixXd::Identity(3, 3);
  const SdeModel model = resnet_model(ResidualWeights::shaped(0.5), {});
  CovarianceEnsemble paths =
      simulate(model, start, {.times = {0.1, 0.2}, .max_step = 0.05, .bounds = {}, .paths = 4});
  handle(paths.covariance(1, 2));
  const Eigen::MatrixXd mine = 2 * Eigen::MatrixXd::Identity(3, 3);
  paths.set_covariance(0, 0, mine);
  check("a covariance set and read", (paths.covariance(0, 0) - mine).norm(), 0);
  const StepNoise noise{points(3, 3), points(3, 3, 1)};
  handle(geometric_step(model, start, 0.1, noise));
  handle(drift(model, start));
}

void heads() {
  using namespace widelimit::specialization;
  const OrderParameters overlaps = order_parameters(points(3, 9), points(2, 9, 2));
  check("a symmetric root", (overlaps.r * overlaps.r - overlaps.S).norm(), 0);
  const auto samples = SampleSet<double>::draw(Prior::flip2(1, 2), {.tokens = 3, .heads = 3, .count = 64}, 1);
  HeadParameters head = with_initial_offsets(HeadActivation::softmax, overlaps.m, overlaps.r);
  SampledLoss loss = sampled_loss(HeadActivation::softmax, head, samples);
  head.m -= 0.1 * loss.gradient.m;
  loss = sampled_loss(HeadActivation::softmax, head, samples);
  handle(std::move(loss.gradient.r));
  handle(std::move(head.b));
}

/// Flags may ask for instructions that the processor does not have.
bool processor_fits() {
  bool fits = true;
#ifdef __SSE4_2__
  fits = fits && __builtin_cpu_supports("sse4.2");
#endif
#ifdef __AVX2__
  fits = fits && __builtin_cpu_supports("avx2");
#endif
#ifdef __FMA__
  fits = fits && __builtin_cpu_supports("fma");
#endif
#ifdef __AVX512F__
  fits = fits && __builtin_cpu_supports("avx512f");
#endif
  return fits;
}

}  // namespace

int main() {
  if (!processor_fits()) {
    std::puts("skipped: the processor lacks instructions that the flags ask for");
    return 77;
  }
  kernels();
  inference();
  finite_networks();
  propagation_maps();
  ensembles();
  heads();
  std::printf("widelimit %s: %s\n", version, all_right ? "all right" : "wrong");
  return all_right ? 0 : 1;
}
