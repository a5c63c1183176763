#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <xtensor/xarray.hpp>

#include "cli/commands.hpp"
#include "cli/kernel_options.hpp"
#include "cli/network_argument.hpp"
#include "cli/npy_inputs.hpp"
#include "cli/output_folder.hpp"
#include "cli/progress_bar.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/kernel/position_covariances.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::cli {
namespace {

struct GramArguments {
  std::string network;
  std::filesystem::path x;
  std::filesystem::path x2;
  std::filesystem::path lengths;
  std::filesystem::path lengths2;
  std::filesystem::path mask;
  std::filesystem::path mask2;
  std::vector<std::string> pairs;
  bool variances = false;
  std::filesystem::path out;
  OtherFiles other_files = OtherFiles::refused;
  KernelOptions kernel;
};

/// The view of an array; its errors name the file.
template <typename Scalar>
Inputs<Scalar> inputs_of(const xt::xarray<Scalar>& array, const std::filesystem::path& file) {
  try {
    return Inputs<Scalar>(array);
  } catch (const ArgumentError& error) {
    throw DataError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

/// The inputs, cut to their lengths if there is a file of them.
template <typename Scalar>
Inputs<Scalar> cut_inputs(const Inputs<Scalar>& inputs, const std::filesystem::path& file) {
  if (file.empty()) return inputs;
  const auto numbers = data::read_npy_as<std::int64_t>(file);
  if (numbers.dimension() != 1)
    throw DataError(
        fmt::format("{}: expected one dimension [n], got {}", file.string(), numbers.dimension()));
  const std::vector<Index> lengths(numbers.begin(), numbers.end());
  try {
    return Inputs<Scalar>(inputs, lengths);
  } catch (const ArgumentError& error) {
    throw DataError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

/// The inputs with their mask, if there is a file of it.
template <typename Scalar>
Inputs<Scalar> masked_inputs(const Inputs<Scalar>& inputs, const std::filesystem::path& file) {
  if (file.empty()) return inputs;
  const auto mask = read_mask(file);
  try {
    return Inputs<Scalar>(inputs, mask);
  } catch (const ArgumentError& error) {
    throw DataError(fmt::format("{}: {}", file.string(), error.what()));
  }
}

/// "I,J": inputs of the rows and columns.
std::vector<std::pair<Index, Index>> read_pairs(const std::vector<std::string>& texts) {
  std::vector<std::pair<Index, Index>> pairs;
  for (const std::string& text : texts) {
    const char* const end = text.data() + text.size();
    Index i = 0, j = 0;
    const auto first = std::from_chars(text.data(), end, i);
    const bool comma = first.ec == std::errc{} && first.ptr != end && *first.ptr == ',';
    const auto second = comma ? std::from_chars(first.ptr + 1, end, j) : first;
    if (!comma || second.ec != std::errc{} || second.ptr != end)
      throw ArgumentError(fmt::format("--pairs: expected two inputs I,J, got {}", text));
    pairs.emplace_back(i, j);
  }
  return pairs;
}

/// [pairs, d, d'] of each kernel.
template <typename Scalar>
struct PairCovariances {
  xt::xarray<Scalar> nngp;
  xt::xarray<Scalar> ntk;
};

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
    if (all.nngp.shape(1) != rows || all.nngp.shape(2) != columns)
      throw ArgumentError(fmt::format(
          "--pairs: expected pairs with equally many positions, got {} x {} for {},{} and {} x {} for {},{}",
          all.nngp.shape(1), all.nngp.shape(2), pairs[0].first, pairs[0].second, rows, columns, i, j));
    std::copy_n(one.nngp.data(), one.nngp.size(), all.nngp.data() + k * rows * columns);
    std::copy_n(one.ntk.data(), one.ntk.size(), all.ntk.data() + k * rows * columns);
  }
  return all;
}

/// [n, spatial..., channels]; of the longest sequence.
template <typename Scalar>
nlohmann::ordered_json shape_of(const xt::xarray<Scalar>& array) {
  return std::vector<std::size_t>(array.shape().begin(), array.shape().end());
}

/// What is computed, and where it goes.
template <typename Scalar>
struct GramRun {
  const GramArguments& arguments;
  const RunContext& context;
  const Network& network;
  const Inputs<Scalar>& left;
  const Inputs<Scalar>& right;  ///< The same as `left` without --x2.
  OutputFolder& folder;

  [[nodiscard]] bool two_batches() const { return !arguments.x2.empty(); }

  [[nodiscard]] GramOptions options() const {
    GramOptions options;
    options.kernels = arguments.kernel.kernels;
    options.threads = arguments.kernel.threads;
    options.stop = context.interrupt.token();
    options.variances = arguments.variances;
    return options;
  }
};

template <typename Scalar>
void write_pairs(const GramRun<Scalar>& run) {
  const auto pairs = covariances_of<Scalar>(read_pairs(run.arguments.pairs), [&](Index i, Index j) {
    try {
      return run.two_batches() ? position_covariances(run.network, run.left, i, run.right, j, run.options())
                               : position_covariances(run.network, run.left, i, j, run.options());
    } catch (const NetworkError&) {
      rethrow_named(run.arguments.network);
    }
  });
  if (run.arguments.kernel.kernels != Kernels::ntk) run.folder.write("nngp.npy", pairs.nngp);
  if (run.arguments.kernel.kernels != Kernels::nngp) run.folder.write("ntk.npy", pairs.ntk);
}

template <typename Scalar>
GramResult<Scalar> computed(const GramRun<Scalar>& run) {
  ProgressBar bar("gram");
  GramOptions options = run.options();
  options.progress = [&bar](const GramProgress& progress) { bar.show(progress.done, progress.total); };
  try {
    return run.two_batches() ? gram(run.network, run.left, run.right, options)
                             : gram(run.network, run.left, options);
  } catch (const NetworkError&) {
    rethrow_named(run.arguments.network);
  }
}

template <typename Scalar>
void write_gram(const GramRun<Scalar>& run) {
  const GramResult<Scalar> result = computed(run);
  const auto write = [&](const char* name, const auto& numbers) {
    if (numbers.size() > 0) run.folder.write(name, numbers);
  };
  write("nngp.npy", result.nngp);
  write("ntk.npy", result.ntk);
  write("nngp_error.npy", result.nngp_error);
  write("ntk_error.npy", result.ntk_error);
  write("variances.npy", result.variances1);
  write("variances2.npy", result.variances2);
}

template <typename Scalar>
void run(const GramArguments& arguments, const RunContext& context) {
  const auto x = data::read_npy_as<Scalar>(arguments.x);
  std::optional<xt::xarray<Scalar>> x2;
  if (!arguments.x2.empty()) x2 = data::read_npy_as<Scalar>(arguments.x2);
  const auto left = masked_inputs(cut_inputs(inputs_of(x, arguments.x), arguments.lengths), arguments.mask);
  const auto right =
      x2 ? masked_inputs(cut_inputs(inputs_of(*x2, arguments.x2), arguments.lengths2), arguments.mask2)
         : left;
  check_finite_inputs(left, arguments.x);
  if (x2) check_finite_inputs(right, arguments.x2);
  const Network network = network_from_argument(arguments.network, left.axes());
  OutputFolder folder(
      arguments.out,
      {"nngp.npy", "ntk.npy", "nngp_error.npy", "ntk_error.npy", "variances.npy", "variances2.npy"},
      arguments.other_files);
  const GramRun<Scalar> gram_run{arguments, context, network, left, right, folder};
  if (arguments.pairs.empty())
    write_gram(gram_run);
  else
    write_pairs(gram_run);
  RunRecord record{context.command_line, nlohmann::ordered_json::parse(to_json(network)), {}};
  record.shapes["x"] = shape_of(x);
  if (x2) record.shapes["x2"] = shape_of(*x2);
  folder.commit(record);
}

}  // namespace

void add_gram_command(CLI::App& program, const RunContext& context) {
  auto arguments = std::make_shared<GramArguments>();
  CLI::App* command =
      program.add_subcommand("gram", "Computes the Gram matrices of a network on arrays of inputs");
  command->add_option("network", arguments->network, network_argument_help)->required()->type_name("NETWORK");
  command
      ->add_option("--x", arguments->x,
                   "Inputs [n, spatial..., channels], or [n, channels]; .npy of any numeric type")
      ->required()
      ->type_name("FILE");
  command->add_option("--x2", arguments->x2, "Inputs of the columns, if they are others than --x")
      ->type_name("FILE");
  command
      ->add_option("--lengths", arguments->lengths,
                   "True lengths [n] of padded sequences [n, longest, channels]; .npy of integers")
      ->type_name("FILE");
  command->add_option("--lengths2", arguments->lengths2, "The same for --x2")
      ->type_name("FILE")
      ->needs("--x2");
  command
      ->add_option("--mask", arguments->mask,
                   "Mask [n, spatial...]: positions where it is 0 or false do not count; .npy of booleans")
      ->type_name("FILE");
  command->add_option("--mask2", arguments->mask2, "The same for --x2")->type_name("FILE")->needs("--x2");
  command
      ->add_option(
          "--pairs", arguments->pairs,
          "Covariances between the positions of chosen pairs I,J of inputs, [pairs, d, d'], in place of a "
          "Gram matrix; the network need not end in a readout")
      ->type_name("I,J");
  command->add_flag(
      "--variances", arguments->variances,
      "Also the NNGP of every input with itself: variances.npy [n], variances2.npy [n'] with --x2");
  add_kernel_options(*command, arguments->kernel);
  command
      ->add_option("--out", arguments->out,
                   "Folder for nngp.npy [n, n'], ntk.npy and, for sampled layers, their standard errors "
                   "nngp_error.npy, ntk_error.npy")
      ->required()
      ->type_name("DIR");
  add_force_option(*command, arguments->other_files);
  command->footer(
      "Examples:\n"
      "  widelimit gram network.json --x x.npy --precision double --out kernels\n"
      "  widelimit gram conv-gap:depth=8 --x train.npy --x2 test.npy --kernel ntk --out kernels");
  command->callback([arguments, &context] {
    if (arguments->variances && !arguments->pairs.empty())
      throw CLI::ValidationError("--variances", "goes with Gram matrices, not with --pairs");
    if (arguments->kernel.precision == Precision::float32)
      run<float>(*arguments, context);
    else
      run<double>(*arguments, context);
  });
}

}  // namespace widelimit::cli
