#include "widelimit/kernel/laws.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>

#include "kernel/backends/cpu/backward/plan/has_backward_pass.hpp"
#include "kernel/inputs/graph_inputs.hpp"
#include "kernel/laws/adjoint_laws.hpp"
#include "kernel/laws/larger.hpp"
#include "kernel/laws/stage_laws.hpp"
#include "kernel/laws/zero_variance_law.hpp"
#include "network/lowering.hpp"
#include "numerics/eigen_solver.hpp"
#include "numerics/standard_normal.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"

namespace widelimit {
namespace {

/// A network and the inputs that it is tried on.
struct Subject {
  Network network;
  std::string name;
  std::vector<Index> dimensions;  ///< The dimensions of the inputs.
  xt::xarray<double> x, y;

  /// The inputs, rounded to the type. Those with positions carry random graphs.
  template <typename Scalar>
  [[nodiscard]] Inputs<Scalar> first() const {
    return with_drawn_graphs(Inputs<Scalar>(xt::xarray<Scalar>(x)), 0);
  }
  template <typename Scalar>
  [[nodiscard]] Inputs<Scalar> second() const {
    return with_drawn_graphs(Inputs<Scalar>(xt::xarray<Scalar>(y)), 1);
  }
};

/// A stage that changes nothing. It counts how many covariances of inputs with themselves differ from the variances
/// recorded for them.
class SelfProbe final : public PairStageOf<SelfProbe> {
 public:
  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::as_it_was,
            .own_weights = false};
  }
  Shape output_shape(const Shape& input) const override { return input; }
  Entries input_entries(Entries wanted) const override { return wanted; }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>&, Scalar*) const {}

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    result.nngp = pair.nngp;
    result.ntk = pair.ntk;
    if (!pair.same_input) return;
    for (Index a = 0; a < pair.nngp.rows(); ++a)
      // Equal bits are expected: variances are recorded from the same covariance of the input with itself.
      if (pair.nngp(a, a) != pair.left_variance[a] &&
          !(std::isnan(pair.nngp(a, a)) && std::isnan(pair.left_variance[a])))
        ++mismatches_;
  }

  [[nodiscard]] long mismatches() const { return mismatches_; }

 private:
  mutable std::atomic<long> mismatches_ = 0;
};

/// Standard normal inputs, among them cases that are hard for dual activations: correlations near 1, duplicates and
/// zeros.
xt::xarray<double> make_inputs(const std::vector<Index>& dimensions, std::uint64_t seed,
                               std::uint64_t stream) {
  auto inputs = numerics::standard_normal<double>(dimensions, numerics::RandomStream(seed, stream));
  const auto size = static_cast<std::ptrdiff_t>(inputs.size()) / dimensions[0];
  double* data = inputs.data();
  // The second input is strongly correlated with the first one.
  for (std::ptrdiff_t i = 0; i < size; ++i) data[size + i] = 0.9 * data[i] + 0.2 * data[size + i];
  // The last three inputs are a duplicate of the first one, a constant and zeros.
  std::copy_n(data, size, data + (dimensions[0] - 3) * size);
  std::fill_n(data + (dimensions[0] - 2) * size, size, 0.7);
  std::fill_n(data + (dimensions[0] - 1) * size, size, 0.0);
  return inputs;
}

std::string shape_name(const Shape& shape) { return shape.empty() ? "vectors" : to_string(shape); }

std::optional<std::string> lowering_error(const Network& network, const Shape& shape, Index channels) {
  try {
    static_cast<void>(Lowering::lower(network, shape, {}, {.channels = channels}));
    return std::nullopt;
  } catch (const NetworkError& error) {
    return error.what();
  }
}

Subject make_subject(Network network, const Shape& shape, const LawOptions& options) {
  std::string name = network.name() + ", inputs of " + shape_name(shape);
  std::vector<Index> dimensions{options.inputs + 3};
  dimensions.insert(dimensions.end(), shape.begin(), shape.end());
  dimensions.push_back(options.channels);
  auto x = make_inputs(dimensions, options.seed, 0), y = make_inputs(dimensions, options.seed, 1);
  return {std::move(network), std::move(name), std::move(dimensions), std::move(x), std::move(y)};
}

struct Surrounding {
  std::string name;
  Layers layers;
};

/// Layers in front of the tried one: raw inputs, Gaussian channels with and without positions, and an NTK where there
/// is no variance.
std::vector<Surrounding> prefixes(const Shape& shape, Index channels) {
  // In the standard parametrisation with biases that begin at 0, an input of zeros has an NTK of 1 after this layer.
  const Layer standard = layers::dense({1.5, 0, {{.input_width = channels, .zero_biases = true}}});
  std::vector<Surrounding> list{
      {"raw inputs", {}}, {"dense", {layers::dense({1.5, 0})}}, {"standard dense", {standard}}};
  const std::vector<Index> filter(shape.size(), 2);
  if (shape.empty()) return list;
  const Layer conv = layers::conv({.filter = filter,
                                   .strides = {},
                                   .padding = Padding::same,
                                   .weight_variance = 1.5,
                                   .bias_variance = 0});
  list.push_back({"conv, relu, conv", {conv, layers::relu(), conv}});
  list.push_back({"conv, relu, global average, dense",
                  {conv, layers::relu(), layers::global_average_pool(), layers::dense({1.5, 0})}});
  return list;
}

/// Layers behind the tried one. Flatten demands one offset of it, global pooling all, and dense alone takes vectors.
std::vector<Surrounding> suffixes() {
  return {{"flatten", {layers::flatten(), layers::dense({1, 0.1})}},
          {"global average", {layers::global_average_pool(), layers::dense({1, 0.1})}},
          {"dense", {layers::dense({1, 0.1})}}};
}

Layers joined(const Layers& first, const Layers& second, const Layers& third) {
  Layers layers = first;
  layers.insert(layers.end(), second.begin(), second.end());
  layers.insert(layers.end(), third.begin(), third.end());
  return layers;
}

class Checker {
 public:
  explicit Checker(const LawOptions& options) : options_{options} {
    if (options.inputs < 2)
      throw ArgumentError(fmt::format("check_laws: inputs must be at least 2, got {}", options.inputs));
    if (options.channels < 1)
      throw ArgumentError(fmt::format("check_laws: channels must be at least 1, got {}", options.channels));
  }

  /// Adds the network for every shape to which it can be applied.
  void add(const Network& network) {
    for (const Shape& shape : options_.shapes)
      if (!rejected(network, shape)) subjects_.push_back(make_subject(network, shape, options_));
  }

  /// Adds networks that contain the layers between others; `probe` comes directly after them.
  void add_around(const std::string& name, const Layers& layers, const Layers& probe) {
    for (const Shape& shape : options_.shapes)
      for (const Surrounding& before : prefixes(shape, options_.channels))
        for (const Surrounding& behind : suffixes()) {
          Network network(fmt::format("{} - {} - {}", before.name, name, behind.name),
                          joined(before.layers, joined(layers, probe, {}), behind.layers));
          if (!rejected(network, shape))
            subjects_.push_back(make_subject(std::move(network), shape, options_));
        }
  }

  void require_subjects(const std::string& name) const {
    if (subjects_.empty())
      throw NetworkError(
          fmt::format("check_laws: {} can be used with none of the shapes given; {}", name, first_error_));
  }

  /// Adds a row to the report: the `deviation` of every subject must be at most `tolerance`.
  void check(const std::string& law, double tolerance,
             const std::function<double(const Subject&)>& deviation) {
    double largest = 0;
    for (const Subject& subject : subjects_) {
      try {
        const double value = deviation(subject);
        if (!(value <= tolerance))
          return fail(law,
                      fmt::format("deviation {:.2g}, allowed {:.2g}; {}", value, tolerance, subject.name));
        largest = std::max(largest, value);
      } catch (const Error& error) {
        return fail(law, fmt::format("{}; {}", error.what(), subject.name));
      }
    }
    report_.rows.push_back(
        {law, true, fmt::format("{} networks, largest deviation {:.2g}", subjects_.size(), largest)});
  }

  void check_all(const SelfProbe* probe);
  void check_adjoints();

  [[nodiscard]] const LawReport& report() const { return report_; }

 private:
  bool rejected(const Network& network, const Shape& shape) {
    const auto error = lowering_error(network, shape, options_.channels);
    if (error && first_error_.empty()) first_error_ = *error;
    return error.has_value();
  }

  void fail(const std::string& law, std::string detail) {
    report_.rows.push_back({law, false, std::move(detail)});
  }

  LawOptions options_;
  std::vector<Subject> subjects_;
  std::string first_error_;
  LawReport report_;
};

GramOptions single_thread() {
  GramOptions options;
  options.threads = 1;
  return options;
}

/// The largest |left - right| relative to the geometric mean of the inputs' own kernels. Where those vanish, it is
/// absolute.
double scaled_difference(const Matrix<double>& left, const Matrix<double>& right, const Matrix<double>& rows,
                         const Matrix<double>& columns) {
  double largest = 0;
  for (Index i = 0; i < left.rows(); ++i)
    for (Index j = 0; j < left.cols(); ++j) {
      const double scale = std::sqrt(std::abs(rows(i, 0) * columns(j, 0)));
      largest = larger(largest, std::abs(left(i, j) - right(i, j)) / (scale > 0 ? scale : 1));
    }
  return largest;
}

/// Exchanging the inputs must transpose both kernels.
double exchange_deviation(const Subject& subject) {
  const auto there =
      gram(subject.network, subject.first<double>(), subject.second<double>(), single_thread());
  const auto back = gram(subject.network, subject.second<double>(), subject.first<double>(), single_thread());
  const auto rows = gram_diagonal(subject.network, subject.first<double>(), single_thread());
  const auto columns = gram_diagonal(subject.network, subject.second<double>(), single_thread());
  return larger(scaled_difference(there.nngp, back.nngp.transpose(), rows.nngp, columns.nngp),
                scaled_difference(there.ntk, back.ntk.transpose(), rows.ntk, columns.ntk));
}

/// How far the smallest eigenvalue is below 0, relative to the largest absolute one.
double negativity(const Matrix<double>& gram) {
  const auto eigenvalues =
      Eigen::SelfAdjointEigenSolver<Matrix<double>>(gram, Eigen::EigenvaluesOnly).eigenvalues();
  const double size = eigenvalues.cwiseAbs().maxCoeff();
  return size == 0 ? 0 : larger(0, -eigenvalues.minCoeff() / size);
}

double negativity_deviation(const Subject& subject) {
  const auto result = gram(subject.network, subject.first<double>(), single_thread());
  return larger(negativity(result.nngp), negativity(result.ntk));
}

/// Computing all offsets must not change what is demanded.
double demand_deviation(const Subject& subject) {
  GramOptions everything = single_thread();
  everything.demand = GramOptions::Demand::everything;
  const auto minimal = gram(subject.network, subject.first<double>(), single_thread());
  const auto full = gram(subject.network, subject.first<double>(), everything);
  const Matrix<double> nngp = full.nngp.diagonal(), ntk = full.ntk.diagonal();
  return larger(scaled_difference(minimal.nngp, full.nngp, nngp, nngp),
                scaled_difference(minimal.ntk, full.ntk, ntk, ntk));
}

/// 0 if the options change no bit of the results in float and double, else 1.
template <typename Scalar>
double changed_bits(const Subject& subject, const GramOptions& options) {
  const Inputs<Scalar> x = subject.first<Scalar>(), y = subject.second<Scalar>();
  const auto same = [](const GramResult<Scalar>& left, const GramResult<Scalar>& right) {
    return left.nngp == right.nngp && left.ntk == right.ntk;
  };
  const bool symmetric =
      same(gram<Scalar>(subject.network, x, options), gram<Scalar>(subject.network, x, single_thread()));
  const bool rectangular = same(gram<Scalar>(subject.network, x, y, options),
                                gram<Scalar>(subject.network, x, y, single_thread()));
  return symmetric && rectangular ? 0 : 1;
}

double changed_bits(const Subject& subject, const GramOptions& options) {
  return larger(changed_bits<float>(subject, options), changed_bits<double>(subject, options));
}

/// Neither the tiles nor the blocks of states may change a bit.
double tile_deviation(const Subject& subject) {
  GramOptions pairs = single_thread(), blocks = single_thread();
  pairs.tile_size = 1;
  blocks.tile_size = 2;
  // With one byte for states, every block has the fewest inputs that a block can have.
  blocks.state_memory_bytes = 1;
  return larger(changed_bits(subject, pairs), changed_bits(subject, blocks));
}

/// Two threads with tiles of one pair each must give the bits of one thread.
double thread_deviation(const Subject& subject) {
  GramOptions threads;
  threads.threads = 2;
  threads.tile_size = 1;
  GramOptions tiles = single_thread();
  tiles.tile_size = 1;
  const auto first = gram(subject.network, subject.first<double>(), tiles),
             second = gram(subject.network, subject.first<double>(), threads);
  return first.nngp == second.nngp && first.ntk == second.ntk ? 0 : 1;
}

/// The diagonal of a Gram matrix must have the bits of gram_diagonal(), and covariances of an input with itself those
/// of its recorded variances.
template <typename Scalar>
double self_deviation(const Subject& subject, const SelfProbe* probe) {
  const long before = probe == nullptr ? 0 : probe->mismatches();
  const Inputs<Scalar> x = subject.first<Scalar>();
  const auto result = gram<Scalar>(subject.network, x, single_thread());
  const auto diagonal = gram_diagonal<Scalar>(subject.network, x, single_thread());
  const bool same = Matrix<Scalar>(result.nngp.diagonal()) == diagonal.nngp &&
                    Matrix<Scalar>(result.ntk.diagonal()) == diagonal.ntk;
  const long mismatches = probe == nullptr ? 0 : probe->mismatches() - before;
  return static_cast<double>(mismatches) + (same ? 0 : 1);
}

/// Float must agree with double on the same inputs, rounded to float for both.
double precision_deviation(const Subject& subject) {
  const xt::xarray<float> values = subject.x;
  const Inputs<float> x = subject.first<float>();
  const Inputs<double> rounded = with_drawn_graphs(Inputs<double>(xt::xarray<double>(values)), 0);
  const auto in_float = gram<float>(subject.network, x, single_thread());
  const auto in_double = gram<double>(subject.network, rounded, single_thread());
  const Matrix<double> nngp = in_double.nngp.diagonal(), ntk = in_double.ntk.diagonal();
  return larger(scaled_difference(in_float.nngp.cast<double>(), in_double.nngp, nngp, nngp),
                scaled_difference(in_float.ntk.cast<double>(), in_double.ntk, ntk, ntk));
}

/// gram() itself throws if a result is not finite.
double finite_deviation(const Subject& subject) {
  static_cast<void>(
      gram(subject.network, subject.first<double>(), subject.second<double>(), single_thread()));
  static_cast<void>(gram(subject.network, subject.first<float>(), single_thread()));
  return 0;
}

Shape shape_of(const Subject& subject) {
  return {subject.dimensions.begin() + 1, subject.dimensions.end() - 1};
}

Graph graph_as_written(const Subject& subject) {
  return Lowering::lower(subject.network, shape_of(subject), {}, {.channels = subject.dimensions.back()});
}

double zero_deviation(const Subject& subject) { return zero_variance_deviation(graph_as_written(subject)); }

double way_back_deviation(const Subject& subject) {
  return adjoint_deviation(graph_as_written(subject), shape_of(subject));
}

/// The path of the first layer that has no adjoint, except for the probe.
std::optional<std::string> without_adjoint(const Subject& subject) {
  for (const Node& node : graph_as_written(subject).nodes) {
    const PairStage* pair = pair_stage_of(node.operation);
    const bool is_probe = pair != nullptr && dynamic_cast<const SelfProbe*>(pair) != nullptr;
    if (!is_probe && !has_adjoint(node.operation)) return node.path;
  }
  return std::nullopt;
}

/// Adjoints that are there are checked; a layer without one is told so, because gram_vjp() will refuse it.
void Checker::check_adjoints() {
  check("adjoints", options_.adjoint_tolerance, way_back_deviation);
  for (const Subject& subject : subjects_)
    if (const auto path = without_adjoint(subject); path && report_.rows.back().passed) {
      report_.rows.back() = {
          "adjoints", true,
          fmt::format("{} has no adjoint, and gram_vjp() refuses it; {}", *path, subject.name), true};
      return;
    }
}

void Checker::check_all(const SelfProbe* probe) {
  check("exchange", options_.double_tolerance, exchange_deviation);
  check("positive semidefinite", options_.double_tolerance, negativity_deviation);
  check("demand", options_.double_tolerance, demand_deviation);
  check("tiles and blocks", 0, tile_deviation);
  check("threads", 0, thread_deviation);
  check("self", 0, [probe](const Subject& subject) {
    return larger(self_deviation<float>(subject, probe), self_deviation<double>(subject, probe));
  });
  check("precision", options_.float_tolerance, precision_deviation);
  check("finite", 0, finite_deviation);
  // Exact laws allow no deviation. The others compare numbers that round differently; the limit at variance 0 is
  // approached by finite steps.
  check("zero variance", 2e-3, zero_deviation);
  check("linear ntk", 1e-9, [](const Subject& subject) {
    return linear_ntk_deviation(graph_as_written(subject), shape_of(subject));
  });
  check("ties", 1e-6, [](const Subject& subject) { return tie_deviation(graph_as_written(subject)); });
  check_adjoints();
}

}  // namespace

bool LawReport::passed() const {
  return !rows.empty() && std::all_of(rows.begin(), rows.end(), [](const LawRow& row) { return row.passed; });
}

std::string to_string(const LawReport& report) {
  std::string text;
  for (const LawRow& row : report.rows)
    text += fmt::format("{:<22} {:<6}  {}\n", row.law,
                        row.absent   ? "absent"
                        : row.passed ? "passed"
                                     : "FAILED",
                        row.detail);
  return text;
}

LawReport check_laws(const Layer& layer, const LawOptions& options) {
  const auto probe = std::make_shared<const SelfProbe>();
  Checker checker(options);
  checker.add_around(layer.kind(), {layer}, {});
  checker.add_around(layer.kind() + " - probe", {layer}, {layers::pair_layer("self probe", probe)});
  checker.require_subjects("the layer " + layer.kind());
  checker.check_all(probe.get());
  return checker.report();
}

LawReport check_laws(const Network& network, const LawOptions& options) {
  const auto probe = std::make_shared<const SelfProbe>();
  Layers layers = network.layers();
  layers.push_back(layers::pair_layer("self probe", probe));
  Checker checker(options);
  checker.add(network);
  checker.add(Network(network.name() + " - probe", std::move(layers)));
  checker.require_subjects("the network '" + network.name() + "'");
  checker.check_all(probe.get());
  return checker.report();
}

}  // namespace widelimit
