#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>
#include <xtensor/xarray.hpp>

#include "cli/grams/store_options.hpp"
#include "cli/options/kernel_options.hpp"
#include "cli/options/network_argument.hpp"
#include "cli/options/ranges.hpp"
#include "cli/output/output_folder.hpp"
#include "cli/output/output_options.hpp"
#include "cli/output/progress_bar.hpp"
#include "cli/output/result_text.hpp"
#include "cli/output/text_parts.hpp"
#include "cli/program/commands.hpp"
#include "cli/program/given_arguments.hpp"
#include "cli/tasks/file_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/resources.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/kernel/explain.hpp"
#include "widelimit/kernel/position_covariances.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/numerics/memory.hpp"
#include "widelimit/numerics/number_range.hpp"

namespace widelimit::cli {
namespace {

struct GramArguments {
  std::string network;
  InputFiles rows;
  InputFiles columns;  ///< If they are others than the rows.
  std::vector<std::string> pairs;
  bool variances = false;
  std::filesystem::path out;
  StoreArguments store;
  OtherFiles other_files = OtherFiles::refused;
  KernelOptions kernel;
};

/// "I,J": inputs of the rows and columns.
std::vector<std::pair<Index, Index>> read_pairs(const std::vector<std::string>& texts) {
  std::vector<std::pair<Index, Index>> pairs;
  for (const std::string& text : texts) {
    const auto pair = two_integers(text, ',');
    if (!pair) throw ArgumentError(fmt::format("--pairs: expected two inputs I,J, got {}", text));
    pairs.push_back(*pair);
  }
  return pairs;
}

/// [pairs, d, d'] of each kernel.
template <typename Scalar>
struct PairCovariances {
  xt::xarray<Scalar> nngp;
  xt::xarray<Scalar> ntk;
  /// Standard errors that sampled layers leave; else empty.
  xt::xarray<Scalar> nngp_error = {};
  xt::xarray<Scalar> ntk_error = {};
};

/// compute(i, j) gives those of one pair. ArgumentError unless all have equally many positions.
template <typename Scalar, typename Compute>
PairCovariances<Scalar> covariances_of(const std::vector<std::pair<Index, Index>>& pairs,
                                       const Compute& compute) {
  PairCovariances<Scalar> all;
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    const auto [i, j] = pairs[k];
    const PositionCovariances<Scalar> one = compute(i, j);
    const auto rows = static_cast<std::size_t>(one.nngp.rows()),
               columns = static_cast<std::size_t>(one.nngp.cols());
    if (k == 0) all.nngp = all.ntk = xt::zeros<Scalar>({pairs.size(), rows, columns});
    if (k == 0 && one.nngp_error.size() != 0) all.nngp_error = all.ntk_error = all.nngp;
    if (all.nngp.shape(1) != rows || all.nngp.shape(2) != columns)
      throw ArgumentError(fmt::format(
          "--pairs: expected pairs with equally many positions, got {} x {} for {},{} and {} x {} for {},{}",
          all.nngp.shape(1), all.nngp.shape(2), pairs[0].first, pairs[0].second, rows, columns, i, j));
    const auto copy = [begin = k * rows * columns](const Matrix<Scalar>& from, xt::xarray<Scalar>& to) {
      std::copy_n(from.data(), from.size(), to.data() + begin);
    };
    copy(one.nngp, all.nngp);
    copy(one.ntk, all.ntk);
    copy(one.nngp_error, all.nngp_error);
    copy(one.ntk_error, all.ntk_error);
  }
  return all;
}

/// What is computed, and where it goes.
template <typename Scalar>
struct GramRequest {
  const GramArguments& arguments;
  const RunContext& context;
  const Network& network;
  const Inputs<Scalar>& left;
  const Inputs<Scalar>* right;  ///< Null without inputs of the columns.
  OutputFolder& folder;

  [[nodiscard]] GramOptions options() const {
    GramOptions options = gram_options(arguments.kernel);
    options.stop = context.interrupt.token();
    return options;
  }
};

/// What is printed of a file: its name, its shape, and how far its numbers reach.
template <typename Scalar>
nlohmann::ordered_json numbers_of(const char* file, const std::string& shape, const Scalar* numbers,
                                  std::size_t count, int threads) {
  const numerics::NumberRange range = numerics::number_range(numbers, count, threads);
  return {{"file", file},
          {"shape", shape},
          {"smallest", range.smallest},
          {"mean", range.mean},
          {"largest", range.largest}};
}

template <typename Scalar>
void write_pairs(const GramRequest<Scalar>& run) {
  const auto pairs = covariances_of<Scalar>(read_pairs(run.arguments.pairs), [&](Index i, Index j) {
    try {
      return run.right != nullptr
                 ? position_covariances(run.network, run.left, i, *run.right, j, run.options())
                 : position_covariances(run.network, run.left, i, j, run.options());
    } catch (const NetworkError&) {
      rethrow_named(run.arguments.network);
    }
  });
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  const auto write = [&](Kernels other, const char* name, const xt::xarray<Scalar>& numbers) {
    // Networks that are not sampled have no errors: an array without axes, which still holds one number.
    if (run.arguments.kernel.kernels == other || numbers.dimension() == 0) return;
    run.folder.write(name, numbers);
    files.push_back(numbers_of(name, fmt::format("{}", fmt::join(numbers.shape(), " x ")), numbers.data(),
                               numbers.size(), run.arguments.kernel.threads));
  };
  write(Kernels::ntk, "nngp.npy", pairs.nngp);
  write(Kernels::nngp, "ntk.npy", pairs.ntk);
  write(Kernels::ntk, "nngp_error.npy", pairs.nngp_error);
  write(Kernels::nngp, "ntk_error.npy", pairs.ntk_error);
  print_result(files);
}

template <typename Scalar>
GramResult<Scalar> computed(const GramRequest<Scalar>& run, InputVariances& variances,
                            ShortenedAttention& shortened) {
  ProgressBar bar("gram", Counted::pairs, run.arguments.kernel.threads);
  GramOptions options = run.options();
  if (run.arguments.variances) options.variances = &variances;
  options.shortened_attention = &shortened;
  options.progress = [&bar](const GramProgress& progress) { bar.show(progress.done, progress.total); };
  try {
    return run.right != nullptr ? gram(run.network, run.left, *run.right, options)
                                : gram(run.network, run.left, options);
  } catch (const NetworkError&) {
    rethrow_named(run.arguments.network);
  }
}

template <typename Scalar>
void write_gram(const GramRequest<Scalar>& run) {
  InputVariances variances;
  ShortenedAttention shortened;
  const GramResult<Scalar> result = computed(run, variances, shortened);
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  const int threads = run.arguments.kernel.threads;
  const auto tell = [&](const char* name, const auto& numbers) {
    files.push_back(numbers_of(name, fmt::format("{} x {}", numbers.rows(), numbers.cols()), numbers.data(),
                               static_cast<std::size_t>(numbers.size()), threads));
  };
  std::vector<OutputFolder::NamedMatrix<Scalar>> kernels;
  for (const auto& [name, matrix] : {std::pair{"nngp.npy", &result.nngp},
                                     {"ntk.npy", &result.ntk},
                                     {"nngp_error.npy", &result.nngp_error},
                                     {"ntk_error.npy", &result.ntk_error}}) {
    if (matrix->size() == 0) continue;
    kernels.push_back({name, matrix});
    tell(name, *matrix);
  }
  run.folder.write_matrices(kernels, threads);
  const auto write = [&](const char* name, const Vector<double>& numbers) {
    if (numbers.size() == 0) return;
    const Vector<Scalar> rounded = numbers.template cast<Scalar>();
    run.folder.write(name, rounded);
    tell(name, rounded);
  };
  write("variances.npy", variances.first);
  write("variances2.npy", variances.second);
  print_result(files);
  if (shortened.inputs > 0)
    say("attention of {} inputs by {} or fewer leading combinations of their outputs, which leave out {:.1e} "
        "of an "
        "input's own kernels at most (--exact-attention: nothing)\n",
        shortened.inputs, shortened.largest_rank, shortened.largest_tail);
}

template <typename Scalar>
void compute_into_store(const GramArguments& arguments, const StoreTask<Scalar>& task,
                        const RunContext& context) {
  const auto report = naming_errors(arguments.network, [&] {
    ProgressBar bar("store", Counted::pairs, threads_of(task.threads, context));
    return run_store(arguments.store, task, context,
                     [&bar](const store::StoreProgress& progress) { bar.show(state_of(progress)); });
  });
  say("{}: {}\n", arguments.store.folder.string(), to_string(report));
  if (prints_json())
    print_result(
        {{"store", arguments.store.folder.string()}, {"computed", report.computed}, {"found", report.found}});
}

/// Refuses what does not fit into memory, before anything is computed.
template <typename Scalar>
void require_room(const GramArguments& arguments, const Network& network, const Inputs<Scalar>& x,
                  Index columns, const RunContext& context) {
  if (context.dealer != nullptr || x.size() == 0) return;
  const GramOptions options = gram_options(arguments.kernel);
  const Plan plan = naming_errors(arguments.network, [&] { return explain<Scalar>(network, x, options, 0); });
  const gp::Workload work{.work = gp::Work::kernels,
                          .needs = {.inputs = x.size(),
                                    .entry_bytes = sizeof(Scalar),
                                    .kernels = arguments.kernel.kernels,
                                    .finite_times = false,
                                    .in_store = !arguments.store.folder.empty()},
                          .columns = columns,
                          .plan = plan,
                          .store_side = arguments.store.tile_side};
  gp::require_resources(
      "gram", gp::plan_resources(work, gp::Solver::cholesky, gp::MemoryRoom::here(options.threads)), work);
}

template <typename Scalar>
void run(const GramArguments& arguments, const RunContext& context) {
  const FileInputs<Scalar> x(arguments.rows);
  std::optional<FileInputs<Scalar>> x2;
  if (arguments.columns.given()) x2.emplace(arguments.columns);
  const Network network = network_for_inputs(arguments.network, x.inputs());
  if (context.dealer != nullptr && arguments.store.folder.empty())
    throw ArgumentError("gram with several processes needs --store: they meet in a store");
  if (context.dealer != nullptr && arguments.store.part.parts > 1)
    throw ArgumentError("--part is for processes that know nothing of each other; these deal out the tiles");
  if (arguments.pairs.empty())
    require_room(arguments, network, x.inputs(), x2 ? x2->inputs().size() : 0, context);
  if (!arguments.store.folder.empty())
    return compute_into_store<Scalar>(
        arguments,
        {network, x.inputs(), x2 ? &x2->inputs() : nullptr, arguments.kernel.kernels,
         arguments.kernel.threads, device_of(arguments.kernel.device, context),
         arguments.kernel.exact_attention},
        context);
  OutputFolder folder(
      arguments.out,
      {"nngp.npy", "ntk.npy", "nngp_error.npy", "ntk_error.npy", "variances.npy", "variances2.npy"},
      arguments.other_files);
  folder.check_inputs({{"the network", arguments.network}});
  folder.check_inputs(arguments.rows.named());
  folder.check_inputs(arguments.columns.named("2"));
  const GramRequest<Scalar> gram_run{arguments, context, network, x.inputs(), x2 ? &x2->inputs() : nullptr,
                                     folder};
  if (arguments.pairs.empty())
    write_gram(gram_run);
  else
    write_pairs(gram_run);
  RunRecord record{context.command_line, nlohmann::ordered_json::parse(to_json(network)), {}};
  record.shapes["x"] = x.shape();
  if (x2) record.shapes["x2"] = x2->shape();
  folder.commit(record);
}

void add_result_options(CLI::App& command, GramArguments& arguments) {
  add_value(command, "--pairs", arguments.pairs,
            "Covariances between the positions of chosen pairs I,J of inputs, [pairs, d, d'], in place "
            "of a Gram matrix; the network need not end in a readout",
            "I,J");
  command.add_flag(
      "--variances", arguments.variances,
      "Also the NNGP of every input with itself: variances.npy [n], variances2.npy [n'] with --x2");
}

void check_arguments(const GramArguments& arguments) {
  if (!arguments.rows.given()) throw CLI::RequiredError("--x FILE or --graphs DIR");
  if (arguments.variances && !arguments.pairs.empty())
    throw CLI::ValidationError("--variances", "goes with Gram matrices, not with --pairs");
  if (arguments.out.empty() == arguments.store.folder.empty())
    throw CLI::ValidationError("--out, --store", "one of them says where the kernels go");
  if (!arguments.store.folder.empty() && (arguments.variances || !arguments.pairs.empty()))
    throw CLI::ValidationError("--store", "holds Gram matrices; --pairs and --variances go to --out");
}

void fill_gram_command(CLI::App& command, const RunContext& context) {
  auto arguments = std::make_shared<GramArguments>();
  add_config_option(command);
  add_value(command, "network", arguments->network, network_argument_help, "NETWORK")->required();
  add_gram_inputs(command, arguments->rows, arguments->columns);
  add_result_options(command, *arguments);
  add_kernel_options(command, arguments->kernel);
  add_json_option(command);
  add_value(command, "--out", arguments->out,
            "Folder for nngp.npy [n, n'], ntk.npy and, for sampled layers, their standard errors "
            "nngp_error.npy, ntk_error.npy",
            "DIR");
  add_store_options(command, arguments->store);
  add_force_option(command, arguments->other_files);
  command.footer(
      "Examples:\n"
      "  widelimit gram network.json --x x.npy --precision double --out kernels\n"
      "  widelimit gram conv-gap:depth=8 --x train.npy --x2 test.npy --kernel ntk --out kernels\n"
      "  widelimit gram gntk:blocks=3 --graphs molecules --out kernels\n"
      "  widelimit gram conv-gap:depth=8 --x train.npy --store train-store");
  command.callback([arguments, &context] {
    check_arguments(*arguments);
    numerics::require_room_for_threads(threads_of(arguments->kernel.threads, context));
    if (arguments->kernel.precision == Precision::float32)
      run<float>(*arguments, context);
    else
      run<double>(*arguments, context);
  });
}

}  // namespace

const Command gram_command{"gram", "Computes the Gram matrices of a network on arrays of inputs",
                           fill_gram_command};

}  // namespace widelimit::cli
