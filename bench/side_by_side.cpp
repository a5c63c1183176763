// What the engine takes, next to the limit that it is compared to, measured in turns within one run. Prints a
// table: the measure, its time, the limit's, their ratio and the ratio aimed at (docs/performance.md).
//
//     side_by_side [SECTION...]     sections: map conv networks threads dense regression pages
//                                   reference; all without arguments
#include <fmt/format.h>
#include <lapacke.h>

#include <Eigen/Dense>
#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "networks.hpp"
#include "numerics/blas_threads.hpp"
#include "numerics/gemm.hpp"
#include "timing.hpp"
#include "touched_pages.hpp"
#include "widelimit/numerics/activations.hpp"
#include "yardstick.hpp"

namespace {

using namespace benchmarks;

/// The best of several measurements, taken in turns because other programs come and go.
struct Turns {
  double ours = std::numeric_limits<double>::infinity();
  double limit = std::numeric_limits<double>::infinity();

  Turns(int turns, const std::function<double()>& measure_ours,
        const std::function<double()>& measure_limit) {
    for (int turn = 0; turn < turns; ++turn) {
      limit = std::min(limit, measure_limit());
      ours = std::min(ours, measure_ours());
    }
  }
};

void print_row(const std::string& measure, const Turns& turns, const std::string& unit, double aim) {
  fmt::print("{:<52} {:>9.4g} {:>9.4g} {:<3} {:>6.2f} {:>6.2f}\n", measure, turns.ours, turns.limit, unit,
             turns.ours / turns.limit, aim);
}

template <typename Scalar>
double yardstick_of(bool with_ntk) {
  const Yardstick yardstick = measure_yardstick();
  if (sizeof(Scalar) == 8) return yardstick.double_both;
  return with_ntk ? yardstick.float_both : yardstick.float_nngp;
}

// The ReLU map alone.

/// Nanoseconds an entry of the library's ReLU map on a row in the first-level cache.
template <typename Scalar>
double map_time(bool with_ntk) {
  constexpr std::size_t size = 512, repeats = 20000;
  const numerics::ActivationPtr relu = numerics::relu();
  std::vector<Scalar> variance(size, 1), left(2 * size), right(2 * size), nngp(size), ntk(size, 1);
  std::vector<Scalar*> left_rows{left.data(), left.data() + size},
      right_rows{right.data(), right.data() + size};
  const std::vector<const Scalar*> left_packed(left_rows.begin(), left_rows.end()),
      right_packed(right_rows.begin(), right_rows.end());
  relu->prepare(variance.data(), left_rows.data(), size);
  relu->prepare(variance.data(), right_rows.data(), size);
  for (std::size_t i = 0; i < size; ++i)
    nngp[i] = static_cast<Scalar>(std::sin(0.7 * static_cast<double>(i)));
  const numerics::DualRow<Scalar> row{nngp.data(), with_ntk ? ntk.data() : nullptr, left_packed.data(),
                                      right_packed.data(), size};
  const double seconds = seconds_of([&] {
    for (std::size_t i = 0; i < repeats; ++i) {
      relu->apply(row);
      std::fill(ntk.begin(), ntk.begin() + (i % 64 == 63 ? size : 0), Scalar{1});  // never denormal
    }
  });
  return 1e9 * seconds / static_cast<double>(size * repeats);
}

void map_rows() {
  print_row("ReLU map, float, NNGP + NTK",
            Turns(
                5, [] { return map_time<float>(true); }, [] { return yardstick_of<float>(true); }),
            "ns", 0.8);
  print_row("ReLU map, float, NNGP",
            Turns(
                5, [] { return map_time<float>(false); }, [] { return yardstick_of<float>(false); }),
            "ns", 0.8);
  print_row("ReLU map, double, NNGP + NTK",
            Turns(
                5, [] { return map_time<double>(true); }, [] { return yardstick_of<double>(true); }),
            "ns", 0.8);
}

// Convolutional networks.

/// Covariance entries a pair that nonlinearities map.
template <typename Scalar>
double mapped_entries(const Network& network) {
  double entries = 0;
  for (const PlanLine& line : explain<Scalar>(network, {32, 32}, 3, {}, 0).lines)
    if (line.operation == "entry by entry") entries += line.entries;
  return entries;
}

/// Nanoseconds an entry and nonlinearity, one thread, for a rectangle of pairs.
template <typename Scalar>
double engine_time(const Network& network, Index side, Kernels kernels) {
  const auto left = images<Scalar>(side), right = images<Scalar>(side);
  const GramOptions options{.kernels = kernels, .threads = 1};
  const double seconds = seconds_of([&] { static_cast<void>(gram<Scalar>(network, left, right, options)); });
  return 1e9 * seconds / (static_cast<double>(side * side) * mapped_entries<Scalar>(network));
}

template <typename Scalar>
void engine_row(const std::string& measure, const Network& network, Index side, double aim,
                Kernels kernels = Kernels::both) {
  print_row(measure,
            Turns(
                3, [&] { return engine_time<Scalar>(network, side, kernels); },
                [&] { return yardstick_of<Scalar>(kernels == Kernels::both); }),
            "ns", aim);
}

void convolution_rows() {
  const Network pooled = convolutions(8, layers::global_average_pool());
  engine_row<float>("8 x conv + ReLU, GAP, float, NNGP + NTK", pooled, 16, 1.6);
  engine_row<float>("8 x conv + ReLU, GAP, float, NNGP", pooled, 16, 1.5, Kernels::nngp);
  engine_row<double>("8 x conv + ReLU, GAP, double, NNGP + NTK", pooled, 16, 1.8);
  engine_row<float>("10 x conv + ReLU, flatten, float, NNGP + NTK", convolutions(10, layers::flatten()), 200,
                    2.0);
}

Layer conv(Index stride = 1) {
  return layers::conv({.filter = {3, 3}, .strides = {stride, stride}, .weight_variance = 2});
}

/// Shankar et al. (2020), figure 1: convolutions and average pooling.
Network myrtle5() {
  const Layer pool = layers::average_pool({.window = {2, 2}}), relu = layers::relu();
  return Network({conv(), relu, conv(), relu, pool, conv(), relu, pool, conv(), relu, pool, pool, pool,
                  layers::flatten(), layers::dense()});
}

/// A residual block that halves the image, as in a wide residual network.
Network strided_block() {
  const Layer relu = layers::relu();
  const Layer shortcut = layers::conv({.filter = {1, 1}, .strides = {2, 2}});
  const layers::Branch body{.layers = {conv(2), relu, conv()}};
  return Network({conv(), relu, layers::sum({body, {.layers = {shortcut}}}), relu,
                  layers::global_average_pool(), layers::dense()});
}

void network_rows() {
  engine_row<float>("Myrtle5, float, NNGP + NTK", myrtle5(), 16, 2.2);
  engine_row<float>("strided residual block, GAP, float, NNGP + NTK", strided_block(), 16, 2.2);
}

// Two threads.

void thread_rows() {
  const Network network = convolutions(8, layers::global_average_pool());
  const auto x = images<float>(32);
  const auto time = [&](int threads) {
    return seconds_of([&] { static_cast<void>(gram<float>(network, x, {.threads = threads})); });
  };
  // Two copies of the yardstick side by side take this much longer than one.
  const auto side_by_side = [] {
    const double alone = yardstick_of<float>(true);
    double first = 0, second = 0;
    std::thread other([&] { second = yardstick_of<float>(true); });
    first = yardstick_of<float>(true);
    other.join();
    return 2 * alone / std::max(first, second);
  };
  double gain = 0, limit = 0;
  for (int turn = 0; turn < 2; ++turn) {
    limit = std::max(limit, side_by_side());
    gain = std::max(gain, time(1) / time(2));
  }
  fmt::print("{:<52} {:>9.4g} {:>9.4g} {:<3} {:>6.2f} {:>6.2f}\n",
             "gain of two threads, GAP network, 32 images", gain, limit, "x", gain / limit, 0.97);
}

// Dense networks and regression.

template <typename Scalar>
void dense_row(const std::string& name, double aim) {
  constexpr Index count = 4000, width = 3072, depth = 5;
  const auto x = vectors<Scalar>(count, width);
  const Network network = fully_connected(depth);
  Matrix<Scalar> product(count, count);
  // Half of the whole product: the Gram matrix is symmetric.
  const auto gemm = [&] {
    const numerics::BlasThreads one_thread(1);
    return seconds_of([&] {
             numerics::gemm(numerics::Transpose::no, numerics::Transpose::yes, count, count, width, Scalar{1},
                            {x.data(), width}, {x.data(), width}, Scalar{0}, product.data(), count);
           }) /
           2;
  };
  const double entries = static_cast<double>(count) * (count + 1) / 2 * depth * 1e-9;
  const auto ours = [&] {
    return seconds_of([&] { static_cast<void>(gram<Scalar>(network, x, {.threads = 1})); });
  };
  print_row(name, Turns(3, ours, [&] { return gemm() / 0.8 + 1.3 * entries * yardstick_of<Scalar>(true); }),
            "s", aim);
}

void dense_rows() {
  // The limit holds what was asked for: 80 % of BLAS on the product, 1.3 yardsticks on the rest.
  dense_row<float>("dense, depth 5, n = 4000, float: all allowed time", 1);
  dense_row<double>("dense, depth 5, n = 4000, double: all allowed time", 1);
}

// Regression.

/// Cholesky factorization and solves of n = 10,000 on all threads, against the bare LAPACK calls.
void regression_rows() {
  constexpr Index count = 10'000, outputs = 10;
  Matrix<double> gram(count, count);
  for (Index i = 0; i < count; ++i)
    for (Index j = 0; j < count; ++j) gram(i, j) = std::exp(-1e-3 * static_cast<double>(std::abs(i - j)));
  const Matrix<double> targets = Matrix<double>::Random(count, outputs);
  const double noise = 0.1;
  const auto lapack = [&] {
    Matrix<double> factor = gram, solution = targets.transpose();
    factor.diagonal().array() += noise;
    const auto n = static_cast<lapack_int>(count);
    const numerics::BlasThreads threads(numerics::resolve_threads(0, "side_by_side"));
    return seconds_of([&] {
      LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', n, factor.data(), n);
      LAPACKE_dpotrs_work(LAPACK_COL_MAJOR, 'L', n, outputs, factor.data(), n, solution.data(), n);
    });
  };
  const auto ours = [&] {
    Matrix<double> copy = gram;
    return seconds_of([&] {
      static_cast<void>(gp::Regression::fit(std::move(copy), targets, gp::AbsoluteNoise(noise), 0));
    });
  };
  print_row("regression, n = 10000: Cholesky and solves", Turns(2, ours, lapack), "s", 1 / 0.9);
}

// Memory that is used for the first time.

/// Nanoseconds of processor time a pair, on all threads, with a result and states on pages that nobody has touched,
/// beside those on pages that the same computation has touched before. Where the machine is a virtual one, the first
/// turn also pays for pages that its host hands out; the best of several does not.
void page_row(const std::string& measure, const xt::xarray<float>& x, double aim) {
  const Network network = fully_connected(5);
  const auto count = static_cast<double>(x.shape(0));
  const double scale = 1e9 / (count * (count + 1) / 2);
  const auto compute = [&] { static_cast<void>(gram<float>(network, x)); };
  print_row(measure,
            Turns(
                5, [&] { return scale * seconds_on_first_use(compute); },
                [&] { return scale * seconds_on_touched_pages(compute); }),
            "ns", aim);
}

void page_rows() {
  page_row("first use, 6000 vectors of 16 numbers, a pair", vectors<float>(6000, 16), 1.15);
  page_row("first use, dense, 4000 of 3072 numbers, a pair", vectors<float>(4000, 3072), 1.05);
}

// The workloads of the field's reference: bench/neural_tangents_speed.py.

void reference_row(const std::string& name, const Network& network, const xt::xarray<float>& x) {
  const double seconds = best_seconds_of([&] { static_cast<void>(gram<float>(network, x)); });
  fmt::print("{:<52} {:>9.4g}           s\n", name, seconds);
}

void reference_rows() {
  reference_row("8 x conv, GAP, n = 2, all threads", convolutions(8, layers::global_average_pool()),
                images<float>(2));
  reference_row("8 x conv, flatten, n = 300, all threads", convolutions(8, layers::flatten()),
                images<float>(300));
  reference_row("struct, n = 2, all threads", struct_network(), images<float>(2));
  reference_row("dense, depth 5, n = 4000, all threads", fully_connected(5), vectors<float>(4000, 3072));
}

using Section = std::pair<const char*, void (*)()>;
constexpr Section sections[] = {{"map", map_rows},          {"conv", convolution_rows},
                                {"networks", network_rows}, {"threads", thread_rows},
                                {"dense", dense_rows},      {"regression", regression_rows},
                                {"pages", page_rows},       {"reference", reference_rows}};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> wanted(argv + 1, argv + argc);
  fmt::print("{:<52} {:>9} {:>9} {:<3} {:>6} {:>6}\n", "measure", "ours", "limit", "", "ratio", "aim");
  for (const auto& [name, run] : sections)
    if (wanted.empty() || std::count(wanted.begin(), wanted.end(), name) > 0) run();
}
