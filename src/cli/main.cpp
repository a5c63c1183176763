#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <string>

#include "cli/commands.hpp"
#include "cli/heads_command.hpp"
#include "cli/propagation_command.hpp"
#include "cli/sde_command.hpp"
#include "widelimit/error.hpp"
#include "widelimit/version.hpp"

namespace {

constexpr int failed = 1;
constexpr int wrong_usage = 2;
constexpr int interrupted = 130;

int complain(std::string message, int code) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  fmt::print(stderr, "widelimit: {}\n", message);
  return code;
}

int run(int argc, char** argv) {
  CLI::App program("Wide networks: kernels, predictions with them, and limit theories of transformers.",
                   "widelimit");
  program.set_version_flag("--version", std::string("widelimit ") + widelimit::version);
  program.require_subcommand(1);
  program.footer("widelimit COMMAND --help tells more about a command.");
  widelimit::cli::add_gp_command(program);
  widelimit::cli::add_gram_command(program);
  widelimit::cli::add_explain_command(program);
  widelimit::cli::add_networks_command(program);
  widelimit::cli::add_sde_command(program);
  widelimit::cli::add_heads_command(program);
  widelimit::cli::add_propagation_command(program);
  widelimit::cli::add_check_command(program);
  try {
    program.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);
    return complain(fmt::format("{} (see --help)", error.what()), wrong_usage);
  } catch (const widelimit::Cancelled& error) {
    return complain(error.what(), interrupted);
  } catch (const std::bad_alloc&) {
    return complain("out of memory; take fewer inputs or --precision float", failed);
  } catch (const std::exception& error) {
    return complain(error.what(), failed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (...) {
    std::fputs("widelimit: could not report an error\n", stderr);
    return failed;
  }
}
