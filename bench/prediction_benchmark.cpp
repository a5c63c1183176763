// What one new input costs, against its share of a batch of 64, for kernels with kept training inputs and for whole
// predictions: processor time of one thread, measured in turns within one run. Prints a table (docs/inference.md).
//
//     prediction_benchmark [NETWORK...]     all without arguments
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "networks.hpp"
#include "processor_time.hpp"

namespace {

using namespace benchmarks;

constexpr Index batch = 64;

/// Milliseconds an input.
struct Times {
  double alone = std::numeric_limits<double>::infinity();
  double in_a_batch = std::numeric_limits<double>::infinity();
};

/// The best of some turns of work(inputs) for single inputs and for all of them at once.
template <typename Work>
Times times_of(const xt::xarray<float>& x, const Work& work) {
  const Inputs<float> all(x);
  const auto count = static_cast<double>(x.shape(0));
  Times times;
  for (int turn = 0; turn < 5; ++turn) {
    times.in_a_batch =
        std::min(times.in_a_batch, 1e3 * benchmarks::processor_seconds([&] { work(all); }) / count);
    const double alone = 1e3 * benchmarks::processor_seconds([&] {
                           for (Index i = 0; i < all.size(); ++i) work(all.single(i));
                         });
    times.alone = std::min(times.alone, alone / count);
  }
  return times;
}

void print_times(const std::string& network, Index train, const char* what, const Times& times) {
  fmt::print("{:<24} {:>6} {:<22} {:>10.4f} {:>10.4f} {:>6.2f}\n", network, train, what, times.alone,
             times.in_a_batch, times.alone / times.in_a_batch);
}

struct Case {
  std::string name;
  Network network;
  Index train;
  std::vector<std::size_t> shape;  ///< Of an input, channels last.
};

xt::xarray<float> random_inputs(const Case& of, Index count, std::size_t seed) {
  std::vector<std::size_t> shape = of.shape;
  shape.insert(shape.begin(), static_cast<std::size_t>(count));
  xt::random::seed(seed);
  return xt::random::randn<float>(shape);
}

void measure(const Case& of) {
  const xt::xarray<float> train = random_inputs(of, of.train, 1), test = random_inputs(of, batch, 2);
  GramOptions one_thread;
  one_thread.threads = 1;
  const PreparedInputs<float> prepared(of.network, Inputs<float>(train), one_thread);
  const auto kernels = [&](Kernels wanted) {
    GramOptions options = one_thread;
    options.kernels = wanted;
    static_cast<void>(prepared.gram_with(Inputs<float>(test), options));  // makes the states
    return times_of(test, [&](const Inputs<float>& x) { static_cast<void>(prepared.gram_with(x, options)); });
  };
  print_times(of.name, of.train, "kernels: NNGP + NTK", kernels(Kernels::both));
  print_times(of.name, of.train, "kernels: NNGP", kernels(Kernels::nngp));
  xt::random::seed(3);
  const Matrix<double> targets = Matrix<double>::Random(of.train, 10);
  gp::ModelOptions options{.noise = gp::RelativeRegulariser{0.1}, .gram = one_thread};
  const auto model = gp::Model::fit(of.network, Inputs<float>(train), targets, options);
  print_times(of.name, of.train, "mean",
              times_of(test, [&](const auto& x) { static_cast<void>(model.mean(x, one_thread)); }));
  print_times(of.name, of.train, "mean and deviation",
              times_of(test, [&](const auto& x) { static_cast<void>(model.predict(x, one_thread)); }));
}

std::vector<Case> cases() {
  const auto named = [](const char* name) { return models::named_network(name); };
  const Network dense = models::named_network("fcn", {{"axes", 0}});
  return {{"fcn 64", dense, 2000, {64}},
          {"fcn 3072", dense, 2000, {3072}},
          {"conv-flatten 8x8x3", named("conv-flatten"), 300, {8, 8, 3}},
          {"conv-flatten 32x32x3", named("conv-flatten"), 60, {32, 32, 3}},
          {"conv-gap 8x8x3", named("conv-gap"), 100, {8, 8, 3}},
          {"myrtle5 16x16x3", named("myrtle5"), 30, {16, 16, 3}},
          {"struct 8x8x3", named("struct"), 60, {8, 8, 3}},
          {"imdb-gap 60x50", named("imdb-gap"), 500, {60, 50}},
          {"imdb-struct 60x50", named("imdb-struct"), 60, {60, 50}}};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> wanted(argv + 1, argv + argc);
  fmt::print("{:<24} {:>6} {:<22} {:>10} {:>10} {:>6}\n", "network", "n", "", "ms alone", "ms of 64",
             "ratio");
  for (const Case& of : cases())
    if (wanted.empty() || std::any_of(wanted.begin(), wanted.end(),
                                      [&](const std::string& name) { return of.name.starts_with(name); }))
      measure(of);
}
