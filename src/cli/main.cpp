#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>

#include "cli/commands.hpp"
#include "cli/heads_command.hpp"
#include "cli/propagation_command.hpp"
#include "cli/sde_command.hpp"
#include "cli/standard_output.hpp"
#include "numerics/memory.hpp"
#include "widelimit/error.hpp"
#include "widelimit/version.hpp"

namespace {

constexpr int failed = 1;
constexpr int wrong_usage = 2;

int complain(std::string message, int code) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  fmt::print(stderr, "widelimit: {}\n", message);
  return code;
}

/// The word that stands where a command is expected, and the commands there are, if that is what is wrong.
std::string unknown_command(const CLI::App& program) {
  const CLI::App* last = &program;
  std::string path;
  while (!last->get_subcommands().empty()) {
    last = last->get_subcommands().front();
    path += last->get_name() + " ";
  }
  const auto commands = last->get_subcommands([](const CLI::App*) { return true; });
  const auto words = last->remaining();
  if (commands.empty() || words.empty() || words.front().starts_with('-')) return "";
  std::string names;
  for (const CLI::App* command : commands) names += (names.empty() ? "" : ", ") + command->get_name();
  return fmt::format("{}{}: no such command; there are {}", path, words.front(), names);
}

/// Parses the arguments, which runs the command.
int run(int argc, char** argv) {
  const widelimit::cli::Interrupt interrupt;
  const widelimit::cli::RunContext context{interrupt, widelimit::cli::shell_command_line(argc, argv)};
  CLI::App program("Wide networks: kernels, predictions with them, and limit theories of transformers.",
                   "widelimit");
  program.set_version_flag("--version", std::string("widelimit ") + widelimit::version);
  program.require_subcommand(1);
  program.footer("widelimit COMMAND --help tells more about a command.");
  widelimit::cli::add_gp_command(program, context);
  widelimit::cli::add_fit_command(program, context);
  widelimit::cli::add_predict_command(program, context);
  widelimit::cli::add_gram_command(program, context);
  widelimit::cli::add_explain_command(program, context);
  widelimit::cli::add_networks_command(program, context);
  widelimit::cli::add_sde_command(program, context);
  widelimit::cli::add_heads_command(program, context);
  widelimit::cli::add_propagation_command(program, context);
  widelimit::cli::add_check_command(program, context);
  try {
    program.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);
    const std::string unknown = unknown_command(program);
    return complain(fmt::format("{} (see --help)", unknown.empty() ? error.what() : unknown), wrong_usage);
  } catch (const widelimit::Cancelled& error) {
    return complain(error.what(), widelimit::cli::Interrupt::exit_code());
  } catch (const std::bad_alloc&) {
    return complain(fmt::format("out of memory: more was needed than the {} that this process can have",
                                widelimit::numerics::memory_text(widelimit::numerics::available_memory())),
                    failed);
  } catch (const std::exception& error) {
    return complain(error.what(), failed);
  }
}

/// Standard files that are closed would lend their numbers to the next files that are opened, and output
/// would end there.
void open_standard_files() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) < 0)
      // The lowest free number is taken: this one.
      static_cast<void>(open(descriptor == STDOUT_FILENO ? "/dev/full" : "/dev/null", O_RDWR));
}

/// What standard output does not take is an error, however late it shows.
int finish(int code) {
  try {
    widelimit::cli::flush_standard_output();
    return code;
  } catch (const widelimit::Error& error) {
    return complain(error.what(), code == 0 ? failed : code);
  }
}

}  // namespace

int main(int argc, char** argv) {
  // A limit of the files' size then shows where a file is written, as an error.
  std::signal(SIGXFSZ, SIG_IGN);
  open_standard_files();
  try {
    return finish(run(argc, argv));
  } catch (const std::exception& error) {
    return complain(error.what(), failed);
  } catch (...) {
    std::fputs("widelimit: could not report an error\n", stderr);
    return failed;
  }
}
