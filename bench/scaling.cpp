// How the cost grows, and how close to the machine's limits it is: writes growth.csv and roofline.csv to a
// folder; gnuplot -c bench/scaling.gp FOLDER draws them (docs/performance.md).
//
//     scaling FOLDER
//
// With the word "threads" in place of a folder: what stays with one thread, a table for 1, 2, 4, ... threads.
#include <fmt/format.h>
#include <fmt/os.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "machine_limits.hpp"
#include "networks.hpp"
#include "timing.hpp"

namespace {

using namespace benchmarks;

class Table {
 public:
  Table(const std::filesystem::path& file, const std::string& header)
      : file_{fmt::output_file(file.string())} {
    file_.print("{}\n", header);
  }

  template <typename... Values>
  void row(const std::string& series, const Values&... values) {
    std::string line = series;
    ((line += fmt::format(",{:.6g}", static_cast<double>(values))), ...);
    file_.print("{}\n", line);
    fmt::print("{}\n", line);
  }

 private:
  fmt::ostream file_;
};

/// Seconds of the symmetric Gram matrix of NNGP and NTK.
double gram_seconds(const Network& network, const xt::xarray<float>& x, int threads = 1) {
  return best_seconds_of([&] { static_cast<void>(gram<float>(network, x, {.threads = threads})); });
}

double pairs(Index n) { return static_cast<double>(n) * static_cast<double>(n + 1) / 2; }

void grow_inputs(Table& table) {
  for (const Index n : {2, 4, 8, 16, 32})
    table.row("inputs GAP", n,
              gram_seconds(convolutions(8, layers::global_average_pool()), images<float>(n)));
  for (const Index n : {8, 16, 32, 64, 128, 256})
    table.row("inputs flatten", n, gram_seconds(convolutions(8, layers::flatten()), images<float>(n)));
  for (const Index n : {250, 500, 1000, 2000, 4000})
    table.row("inputs dense", n, gram_seconds(fully_connected(5), vectors<float>(n, 3072)));
}

/// A pair of images of growing side.
void grow_positions(Table& table) {
  constexpr Index n = 16;
  const auto row = [&](const std::string& series, const Network& network, Index side) {
    table.row(series, side * side, gram_seconds(network, images<float>(n, side)) / pairs(n));
  };
  for (const Index side : {4, 8, 12, 16, 24, 32}) {
    row("positions GAP", convolutions(8, layers::global_average_pool()), side);
    row("positions flatten", convolutions(8, layers::flatten()), side);
    row("positions attention", struct_network(), side);
  }
}

void grow_depth(Table& table) {
  constexpr Index n = 16;
  for (const Index depth : {1, 2, 4, 8, 16})
    table.row(
        "depth GAP", depth,
        gram_seconds(convolutions(depth, layers::global_average_pool()), images<float>(n, 16)) / pairs(n));
}

void grow_channels(Table& table) {
  constexpr Index n = 16;
  for (const Index channels : {1, 3, 8, 16, 32, 64, 128, 256})
    table.row("channels GAP", channels,
              gram_seconds(convolutions(8, layers::global_average_pool()), images<float>(n, 16, channels)) /
                  pairs(n));
}

void grow_threads(Table& table) {
  const auto x = images<float>(32);
  for (unsigned threads = 1; threads <= std::thread::hardware_concurrency(); ++threads)
    table.row("threads GAP", threads,
              gram_seconds(convolutions(8, layers::global_average_pool()), x, static_cast<int>(threads)));
}

/// Operations and bytes of the engine's parts an entry, by counting them in the source: what a row reads and
/// writes in the first-level cache.
void roofline(Table& table) {
  table.row("peak", 0, measure_peak_flops());
  table.row("L1", 1 << 14, measure_bandwidth(1 << 14));
  table.row("L2", 1 << 19, measure_bandwidth(1 << 19));
  table.row("memory", 1 << 28, measure_bandwidth(1 << 28));
  constexpr Index n = 16;
  const Network gap = convolutions(8, layers::global_average_pool());
  std::vector<double> seconds;
  static_cast<void>(gram<float>(gap, images<float>(n), {.threads = 1, .seconds_per_line = &seconds}));
  const Plan plan = explain<float>(gap, {32, 32}, 3, {}, 0);
  // A convolution of two kernels reads three rows of each and writes one, if sums stay in registers. A map
  // reads and writes two kernels and reads two arrays of either input.
  constexpr double convolution_bytes = 4 * 2 * (3 + 1), map_bytes = 4 * (2 + 4 + 2);
  double map = 0, convolution = 0, map_entries = 0;
  for (std::size_t i = 0; i < plan.lines.size(); ++i) {
    if (plan.lines[i].operation == "entry by entry") map += seconds[i], map_entries += plan.lines[i].entries;
    if (plan.lines[i].operation == "sum of 9 taps") convolution += seconds[i];
  }
  const double entries = 1e9 / (map_entries * pairs(n));
  constexpr double convolution_flops = 2 * (4 + 2), map_flops = 25;
  table.row("ReLU map", map_flops / map_bytes, map_flops / (map * entries));
  table.row("convolution", convolution_flops / convolution_bytes,
            convolution_flops / (convolution * entries));
  table.row("network", (map_flops + convolution_flops) / (map_bytes + convolution_bytes),
            (map_flops + convolution_flops) / (gram_seconds(gap, images<float>(n)) * entries));
  constexpr Index count = 4000, width = 3072;
  const double products = 2 * pairs(count) * width;
  // Blocks of 512 x 512 products read two panels of vectors from memory.
  constexpr double product_intensity = 2.0 * 512 * 512 / (4.0 * 2 * 512);
  table.row("input products", product_intensity,
            products / (1e9 * gram_seconds(Network({layers::dense()}), vectors<float>(count, width))));
}

/// Seconds of the clock of the parts of one Gram matrix.
struct Parts {
  double first;    ///< With everything that the first call of a process and number of threads starts.
  double gram;     ///< The best of later calls.
  double states;   ///< Of these the states of the inputs, and each input with itself.
  double range;    ///< Least, mean and greatest number of the results, which commands print.
  double release;  ///< Giving the results' pages back.
};

/// What N times as many threads leave of the time: by Amdahl's law, the share of one thread.
double serial_share(double one, double many, int threads) {
  return threads == 1 ? 0 : (threads * many / one - 1) / (threads - 1);
}

Parts parts_of(const Network& network, const xt::xarray<float>& x, int threads) {
  Parts parts{};
  parts.first = seconds_of([&] { static_cast<void>(gram<float>(network, x, {.threads = threads})); });
  std::optional<GramResult<float>> kernels;
  parts.gram = best_seconds_of([&] { kernels.emplace(gram<float>(network, x, {.threads = threads})); });
  parts.states =
      best_seconds_of([&] { static_cast<void>(gram_diagonal<float>(network, x, {.threads = threads})); });
  parts.range = best_seconds_of([&] {
    for (const Matrix<float>* kernel : {&kernels->nngp, &kernels->ntk})
      static_cast<void>(
          numerics::number_range(kernel->data(), static_cast<std::size_t>(kernel->size()), threads));
  });
  parts.release = seconds_of([&] { kernels.reset(); });
  return parts;
}

void print_threads(const char* name, const Network& network, const xt::xarray<float>& x) {
  fmt::print("{}\n{:>8} {:>10} {:>10} {:>8} {:>8} {:>10} {:>10} {:>10}\n", name, "threads", "first", "gram",
             "times", "serial", "states", "range", "release");
  double one = 0;
  const int most = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  for (int threads = 1; threads <= most; threads *= 2) {
    const Parts parts = parts_of(network, x, threads);
    if (threads == 1) one = parts.gram;
    fmt::print("{:>8} {:>8.4f} s {:>8.4f} s {:>8.2f} {:>6.1f} % {:>8.4f} s {:>8.4f} s {:>8.4f} s\n", threads,
               parts.first, parts.gram, one / parts.gram, 100 * serial_share(one, parts.gram, threads),
               parts.states, parts.range, parts.release);
    std::fflush(stdout);  // A row takes seconds, and the output may be a file.
  }
}

/// Images with few and with costly states, and vectors, whose results take as long as what is computed.
void tell_threads() {
  print_threads("GAP, 48 images", convolutions(8, layers::global_average_pool()), images<float>(48));
  print_threads("Struct, 32 images", struct_network(), images<float>(32));
  print_threads("vectors, 6000 of 16 numbers", fully_connected(5), vectors<float>(6000, 16));
}

void run(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  Table limits(folder / "roofline.csv", "part,operations a byte,operations a nanosecond");
  roofline(limits);
  Table growth(folder / "growth.csv", "series,size,seconds");
  grow_inputs(growth);
  grow_positions(growth);
  grow_depth(growth);
  grow_channels(growth);
  grow_threads(growth);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("scaling: expected a folder for growth.csv and roofline.csv, or the word threads\n", stderr);
    return 1;
  }
  try {
    if (std::string_view(argv[1]) == "threads")
      tell_threads();
    else
      run(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "scaling: %s\n", error.what());
    return 1;
  }
}
