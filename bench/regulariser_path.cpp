// What choosing among 19 regularisers and predicting with the chosen one cost, in Cholesky factorizations of the same
// kernel in the same run (docs/solvers.md): NNGP and NTK of a fully connected network of depth 5.
//
//     regulariser_path [FOLDER [N [THREADS [HELD_OUT]]]]
//
// FOLDER holds CIFAR-10 in its binary format (docs/data.md); "-" takes generated images. N training images, HELD_OUT
// for validation and as many for tests (2,000). Times are processor seconds of all threads and seconds of the clock;
// the yardstick is the better of two factorizations, before and after.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "networks.hpp"

namespace {

using namespace benchmarks;

struct Seconds {
  double clock = 0;
  double processor = 0;
};

template <typename Work>
Seconds time_of(const Work& work) {
  const std::clock_t processor = std::clock();
  const auto start = std::chrono::steady_clock::now();
  work();
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
          static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC};
}

struct Part {
  xt::xarray<float> x;
  Matrix<double> y;
};

struct Task {
  Part train, validation, test;
};

Part part_of(const data::LabelledImages& images, const gp::Preprocessing& preprocessing) {
  return {preprocessing.apply(xt::xarray<float>(images.images)), gp::class_targets(images.labels, 10)};
}

Task task_of(const std::string& folder, std::size_t n, std::size_t held_out) {
  std::vector<data::LabelledImages> known;
  std::optional<data::LabelledImages> test;
  if (folder == "-") {
    for (const std::uint64_t seed : {0, 1, 2})
      known.push_back(data::generate_synthetic_images(seed == 0 ? n : held_out, seed));
    test = std::move(known[2]);
  } else {
    const std::size_t counts[] = {n, held_out}, test_counts[] = {held_out};
    known = data::read_cifar10(data::cifar10_training_files(folder), counts, data::ClassBalance::equal, 0);
    test = data::read_cifar10(data::cifar10_test_files(folder), test_counts, data::ClassBalance::equal, 0)[0];
  }
  const auto preprocessing =
      gp::Preprocessing::fit(gp::PreprocessingKind::pixel, xt::xarray<float>(known[0].images));
  return {part_of(known[0], preprocessing), part_of(known[1], preprocessing), part_of(*test, preprocessing)};
}

/// What is timed, in the order of the work.
class Table {
 public:
  explicit Table(Seconds factorization) : factorization_{factorization} {}

  template <typename Work>
  void time(const char* step, const Work& work) {
    const Seconds seconds = time_of(work);
    sum_.clock += seconds.clock;
    sum_.processor += seconds.processor;
    row(step, seconds);
  }

  void finish(Seconds later) {
    factorization_.clock = std::min(factorization_.clock, later.clock);
    factorization_.processor = std::min(factorization_.processor, later.processor);
    row("one factorization", factorization_);
    row("all", sum_);
  }

 private:
  void row(const char* step, Seconds seconds) const {
    fmt::print("  {:<28} {:>8.2f} s {:>6.2f} {:>10.2f} s {:>6.2f}\n", step, seconds.clock,
               seconds.clock / factorization_.clock, seconds.processor,
               seconds.processor / factorization_.processor);
  }

  Seconds factorization_;
  Seconds sum_;
};

struct Kernels3 {
  GramResult<float> train, validation, test;
  Vector<double> test_variances;
};

/// By gp::Regression, as the library factorizes everywhere.
Seconds factorization_of(const Matrix<float>& gram, int threads) {
  Matrix<double> k = gram.cast<double>();
  const Matrix<double> nothing = Matrix<double>::Zero(k.rows(), 1);
  return time_of([&] {
    static_cast<void>(gp::Regression::fit(std::move(k), nothing, gp::RelativeRegulariser(0.1), threads));
  });
}

void measure_nngp(const Kernels3& kernels, const Task& task, int threads) {
  fmt::print("NNGP\n");
  Table table(factorization_of(kernels.train.nngp, threads));
  std::optional<gp::RelativeRegulariser> best;
  std::optional<gp::Regression> regression;
  table.time("choice among 19", [&] {
    best = gp::select_regulariser(kernels.train.nngp, task.train.y, kernels.validation.nngp,
                                  task.validation.y, gp::regulariser_grid(), gp::Criterion::accuracy, threads)
               .best;
  });
  table.time("fit",
             [&] { regression = gp::Regression::fit(kernels.train.nngp, task.train.y, *best, threads); });
  const Matrix<double> cross = kernels.test.nngp.cast<double>();
  table.time("means", [&] { static_cast<void>(regression->mean(cross)); });
  table.time("variances", [&] { static_cast<void>(regression->variance(cross, kernels.test_variances)); });
  table.finish(factorization_of(kernels.train.nngp, threads));
}

/// With the amplitude fitted or, which spares the inverse, given.
void measure_ntk(const Kernels3& kernels, const Task& task, int threads, bool is_fitted) {
  fmt::print("NTK, amplitude {}\n", is_fitted ? "fitted" : "given");
  Table table(factorization_of(kernels.train.ntk, threads));
  std::optional<gp::RelativeRegulariser> best;
  std::optional<gp::ConvergedFlow> flow;
  const std::vector<Index> inputs = gp::representative_inputs(task.train.y.rows());  // As gp does.
  table.time("choice among 19", [&] {
    best = gp::select_regulariser(kernels.train.ntk, task.train.y, kernels.validation.ntk, task.validation.y,
                                  gp::regulariser_grid(), gp::Criterion::accuracy, threads)
               .best;
  });
  table.time("fit", [&] {
    flow =
        gp::ConvergedFlow::fit(kernels.train.nngp, kernels.train.ntk, task.train.y, *best, threads,
                               is_fitted && 3 * inputs.size() >= static_cast<std::size_t>(task.train.y.rows())
                                   ? gp::ConvergedFlow::Holds::inverse
                                   : gp::ConvergedFlow::Holds::factor);
  });
  if (is_fitted)
    table.time("amplitude",
               [&] { flow = flow->with_amplitude(flow->leave_one_out(inputs).most_likely_scale("bench")); });
  const gp::DoubleMatrix nngp = kernels.test.nngp, ntk = kernels.test.ntk;
  table.time("means", [&] { static_cast<void>(flow->mean(ntk)); });
  table.time("variances", [&] { static_cast<void>(flow->variance(nngp, ntk, kernels.test_variances)); });
  table.finish(factorization_of(kernels.train.ntk, threads));
}

std::size_t count_argument(int argc, char** argv, int place, std::size_t otherwise) {
  return argc > place ? static_cast<std::size_t>(std::strtoull(argv[place], nullptr, 10)) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t n = count_argument(argc, argv, 2, 8000), held_out = count_argument(argc, argv, 4, 2000);
  const int threads = static_cast<int>(count_argument(argc, argv, 3, 0));
  const Task task = task_of(argc > 1 ? argv[1] : "-", n, held_out);
  const Network network = models::named_network("fcn", {{"depth", 5}});
  const GramOptions options{.threads = threads};
  Kernels3 kernels;
  kernels.train = gram<float>(network, task.train.x, options);
  kernels.validation = gram<float>(network, task.validation.x, task.train.x, options);
  kernels.test = gram<float>(network, task.test.x, task.train.x, options);
  kernels.test_variances = gram_diagonal<float>(network, task.test.x, options).nngp.cast<double>();
  fmt::print("{} training images; clock, in factorizations; processor, in factorizations\n", n);
  measure_nngp(kernels, task, threads);
  measure_ntk(kernels, task, threads, true);
  measure_ntk(kernels, task, threads, false);
}
