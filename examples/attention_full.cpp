// The 8-layer pipelines of table 2 of arXiv:2006.10540 on images of 32 x 32 pixels: test accuracy with
// Struct and Residual attention (and the heads they are compared with) for as many images as requested.
//
// Before the work starts, a few pairs are timed and the time of the whole is printed. Ctrl-C finishes the
// tiles in flight, reports how far the run came and keeps the results of the networks that were finished; a
// second Ctrl-C ends the program at once. The published size (45,000 training, 5,000 validation and 10,000
// test images) makes 1.7e9 pairs.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <map>
#include <thread>
#include <widelimit/error.hpp>
#include <widelimit/kernel/explain.hpp>

#include "attention_networks.hpp"
#include "example_support.hpp"

using namespace examples;

namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may touch nothing else");

extern "C" void on_interrupt(int) {
  interrupted = true;
  std::signal(SIGINT, SIG_DFL);
}

/// Turns the flag of the signal handler, which may do next to nothing, into a request to stop.
class Interrupt {
 public:
  Interrupt() { std::signal(SIGINT, on_interrupt); }

  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread watcher_{[this](const std::stop_token& finished) {
    while (!finished.stop_requested() && !interrupted)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (interrupted) source_.request_stop();
  }};
};

/// Published accuracies in percent, NNGP and NTK.
const std::map<std::string, std::pair<double, double>> published{{"flatten", {65.5, 66.3}},
                                                                 {"gap", {77.9, 77.4}},
                                                                 {"lap", {80.4, 79.7}},
                                                                 {"struct", {80.6, 79.9}},
                                                                 {"residual", {80.7, 80.1}}};

std::string duration(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 172'800) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.1f} days", seconds / 86'400);
}

class FullRun {
 public:
  FullRun(const Settings& settings, const Sizes& sizes, std::vector<Network> networks, ImageTask task)
      : settings_{settings}, networks_{std::move(networks)}, task_{std::move(task)} {
    test_ = load_test_images(settings, sizes);
    const Index n = task_.train.size();
    pairs_ = n * (n + 1) / 2 + (task_.validation.size() + test_.size()) * n;
  }

  /// Runs every network for about `enough` seconds.
  void print_estimate(double enough) {
    double total = 0;
    for (const Network& network : networks_) {
      const auto side = static_cast<Index>(task_.train.x.shape(1));
      const double seconds_a_pair =
          widelimit::explain<float>(network, {side, side}, 3, options(), enough).pair.seconds;
      const double whole = seconds_a_pair * static_cast<double>(pairs_);
      fmt::print("{:9} {:.3g} ms a pair; {} pairs will take about {}\n", network.name(),
                 1000 * seconds_a_pair, pairs_, duration(whole));
      total += whole;
    }
    fmt::print("all together about {}; Ctrl-C stops\n", duration(total));
    std::fflush(stdout);
  }

  void run() {
    Csv table(settings_, "attention_full",
              "network,kernel,train,validation accuracy,test accuracy,regulariser,published,pairs,seconds");
    for (const Network& network : networks_) {
      const Clock clock;
      done_ = 0;
      const auto train = stage(network, "training", [&](const GramOptions& options) {
        return gram(network, task_.train.inputs(), options);
      });
      const auto validation = stage(network, "validation", [&](const GramOptions& options) {
        return gram(network, task_.validation.inputs(), task_.train.inputs(), options);
      });
      const auto test = stage(network, "test", [&](const GramOptions& options) {
        return gram(network, test_.inputs(), task_.train.inputs(), options);
      });
      for (const NamedKernel& kernel : kernels_of(settings_)) {
        const auto score =
            validate(train.*kernel.matrix, validation.*kernel.matrix, task_, settings_.threads);
        const double accuracy = accuracy_with(score.regulariser, train.*kernel.matrix, test.*kernel.matrix,
                                              task_, test_, settings_.threads);
        const auto& [nngp, ntk] = published.at(network.name());
        const double paper = kernel.name == "nngp" ? nngp : ntk;
        fmt::print(
            "{:9} {:4}  validation {:.2f} %, test {:.2f} % (published, with 50,000 images: {} %); {}\n",
            network.name(), kernel.name, 100 * score.accuracy, 100 * accuracy, paper,
            duration(clock.seconds()));
        table.row(network.name(), kernel.name, task_.train.size(), score.accuracy, accuracy,
                  score.regulariser, paper / 100, pairs_, clock.seconds());
      }
      ++finished_;
    }
    plot(
        settings_, "attention_full",
        "set style data histogram\nset style histogram clustered gap 1\nset style fill solid 0.6\n"
        "set ylabel 'test accuracy'\nset yrange [0:1]\nset key top left\n"
        "plot 'attention_full.csv' skip 1 using 5:xtic(sprintf('%s %s', strcol(1), strcol(2))) title 'here', "
        "'' skip 1 using 7 title 'published, 50,000 images'");
  }

  /// How far an interrupted run came.
  void report() const {
    const std::string where =
        finished_ < networks_.size()
            ? fmt::format("{} of {} pairs of {} were done", done_, pairs_, networks_[finished_].name())
            : "nothing was left to do";
    fmt::print("interrupted: {}, {} of {} networks finished and written\n", where, finished_,
               networks_.size());
  }

 private:
  GramOptions options() const {
    GramOptions options = settings_.gram_options();
    options.stop = interrupt_.token();
    return options;
  }

  /// One Gram matrix of a network, with a line of progress.
  template <typename Compute>
  GramResult<float> stage(const Network& network, const std::string& name, const Compute& compute) {
    const Clock clock;
    const Index before = done_;
    GramOptions with_progress = options();
    const bool on_terminal = isatty(STDERR_FILENO) == 1;
    with_progress.progress = [&, on_terminal](const widelimit::GramProgress& progress) {
      done_ = before + progress.done;
      if (!on_terminal) return;
      const double left = clock.seconds() * static_cast<double>(progress.total - progress.done) /
                          static_cast<double>(std::max<Index>(progress.done, 1));
      fmt::print(stderr, "\r{} {}: {} of {} pairs, {} left   ", network.name(), name, progress.done,
                 progress.total, duration(left));
    };
    GramResult<float> result = compute(with_progress);
    if (on_terminal) fmt::print(stderr, "\n");
    return result;
  }

  const Settings& settings_;
  std::vector<Network> networks_;
  ImageTask task_;
  ImageSet test_;
  Interrupt interrupt_;
  Index pairs_ = 0;  ///< Pairs of a network.
  Index done_ = 0;   ///< Finished pairs of the current network.
  std::size_t finished_ = 0;
};

int study(const Settings& settings, const std::vector<std::string>& heads, Index depth,
          double estimate_seconds, const Positions& struct_positions, const Positions& residual_positions) {
  const Sizes sizes = settings.sizes({.side = 32, .train = 45'000, .validation = 5'000, .test = 10'000},
                                     {.side = 32, .train = 20, .validation = 10, .test = 10});
  ImageTask task = load_images(settings, sizes);
  fmt::print("{}, {} test images, {} convolutions\n", task.description, sizes.test, depth);
  const Layers front = convolutions(depth);
  const HeadContext context{.variance = mean_variance(front, task.train, settings.gram_options()),
                            .struct_positions = struct_positions,
                            .residual_positions = residual_positions};
  std::vector<Network> networks;
  networks.reserve(heads.size());
  for (const std::string& head : heads)
    networks.push_back(with_readout(head, front, head_by_name(head, context)));
  FullRun run(settings, sizes, std::move(networks), std::move(task));
  try {
    run.print_estimate(estimate_seconds);
    run.run();
  } catch (const widelimit::Cancelled&) {
    fmt::print(stderr, "\n");
    run.report();
    return 130;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ArgumentList arguments{"Test accuracy of 8-layer convolutional networks with attention on 32 x 32 images"};
  Settings settings;
  add_arguments(arguments, settings, "attention_full");
  add_image_arguments(arguments, settings);
  std::vector<std::string> heads{"struct", "residual"};
  Index depth = 8;
  double estimate_seconds = 2;
  Positions struct_positions, residual_positions;
  arguments.choices("--heads", heads, "Any of flatten, gap, lap, struct, residual",
                    {"flatten", "gap", "lap", "struct", "residual"});
  arguments.number("--depth", depth, "Convolutions", 0, 100);
  arguments.number("--estimate-seconds", estimate_seconds, "Time to spend on the estimate, a network",
                   Sign::not_negative);
  add_position_arguments(arguments, struct_positions, residual_positions);
  return run_example(arguments, argc, argv, settings, [&] {
    return study(settings, heads, depth, estimate_seconds, struct_positions, residual_positions);
  });
}
