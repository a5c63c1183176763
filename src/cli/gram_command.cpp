#include <fmt/format.h>

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
#include "widelimit/network/network_file.hpp"

namespace widelimit::cli {
namespace {

struct GramArguments {
  std::string network;
  std::filesystem::path x;
  std::filesystem::path x2;
  std::filesystem::path lengths;
  std::filesystem::path lengths2;
  std::filesystem::path out;
  OtherFiles other_files = OtherFiles::refused;
  KernelOptions kernel;
};

/// [n, spatial..., channels]; of the longest sequence.
template <typename Scalar>
nlohmann::ordered_json shape_of(const xt::xarray<Scalar>& array) {
  return std::vector<std::size_t>(array.shape().begin(), array.shape().end());
}

template <typename Scalar>
void run(const GramArguments& arguments, const RunContext& context) {
  const auto x = data::read_npy_as<Scalar>(arguments.x);
  std::optional<xt::xarray<Scalar>> x2;
  if (!arguments.x2.empty()) x2 = data::read_npy_as<Scalar>(arguments.x2);
  const auto left = cut_inputs(inputs_of(x, arguments.x), arguments.lengths);
  const auto right = x2 ? cut_inputs(inputs_of(*x2, arguments.x2), arguments.lengths2) : left;
  check_finite_inputs(left, arguments.x);
  if (x2) check_finite_inputs(right, arguments.x2);
  const Network network = network_from_argument(arguments.network, left.axes());
  OutputFolder folder(arguments.out, {"nngp.npy", "ntk.npy", "nngp_error.npy", "ntk_error.npy"},
                      arguments.other_files);

  GramResult<Scalar> result;
  {
    ProgressBar bar("gram");
    GramOptions options;
    options.kernels = arguments.kernel.kernels;
    options.threads = arguments.kernel.threads;
    options.progress = [&bar](const GramProgress& progress) { bar.show(progress.done, progress.total); };
    options.stop = context.interrupt.token();
    try {
      result = x2 ? gram(network, left, right, options) : gram(network, left, options);
    } catch (const NetworkError&) {
      rethrow_named(arguments.network);
    }
  }
  const auto write = [&](const char* name, const Matrix<Scalar>& matrix) {
    if (matrix.size() > 0) folder.write(name, matrix);
  };
  write("nngp.npy", result.nngp);
  write("ntk.npy", result.ntk);
  write("nngp_error.npy", result.nngp_error);
  write("ntk_error.npy", result.ntk_error);
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
    if (arguments->kernel.precision == Precision::float32)
      run<float>(*arguments, context);
    else
      run<double>(*arguments, context);
  });
}

}  // namespace widelimit::cli
