#include "cli/program/program_main.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "cli/options/similar_name.hpp"
#include "cli/output/result_text.hpp"
#include "cli/program/commands.hpp"
#include "cli/program/given_arguments.hpp"
#include "cli/program/help_text.hpp"
#include "cli/program/machine_facts.hpp"
#include "widelimit/error.hpp"
#include "widelimit/kernel/devices.hpp"
#include "widelimit/numerics/memory.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {
namespace {

constexpr int failed = 1;
constexpr int wrong_usage = 2;

int complain(const ProgramDescription& program, const std::string& message, int code) {
  if (program.before_complaint) program.before_complaint();
  print_notice(fmt::format("{}: {}", program.complains_as, short_message(message)));
  return code;
}

/// "propagation network": the command that runs.
std::string command_path(const CLI::App& program) {
  std::string path;
  for (const CLI::App* last = &program; !last->get_subcommands().empty();) {
    last = last->get_subcommands().front();
    path += (path.empty() ? "" : " ") + last->get_name();
  }
  return path;
}

/// What was stopped, named after the command unless its own parts say so.
std::string stop_message(const CLI::App& program, const std::string& message) {
  const std::string path = command_path(program), first = path.substr(0, path.find(' '));
  return message.starts_with(first + ":") ? message : fmt::format("{}: {}", path, message);
}

/// The word in the place of a command, or that there is none, and the commands there are, if that is what is wrong.
std::string unknown_command(const CLI::App& program) {
  const CLI::App* last = &program;
  std::string path;
  while (!last->get_subcommands().empty()) {
    last = last->get_subcommands().front();
    path += last->get_name() + " ";
  }
  const auto commands = last->get_subcommands([](const CLI::App*) { return true; });
  const auto words = last->remaining();
  if (commands.empty() || (!words.empty() && words.front().starts_with('-'))) return "";
  std::string names;
  for (const CLI::App* command : commands) names += (names.empty() ? "" : ", ") + command->get_name();
  if (words.empty())
    return fmt::format("{}a command is required; there are {}",
                       path.empty() ? "" : path.substr(0, path.size() - 1) + ": ", names);
  return fmt::format("{}{}: no such command; there are {}", path, words.front(), names);
}

/// The options that unknown ones were probably meant to be: other spellings (--regularizer) and slips.
std::string meant_options(const CLI::App& program) {
  const CLI::App* last = &program;
  while (!last->get_subcommands().empty()) last = last->get_subcommands().front();
  std::vector<std::string> known;
  for (const CLI::Option* option : last->get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  std::string text;
  for (const std::string& word : last->remaining()) {
    if (!word.starts_with("--")) continue;
    const std::string given = word.substr(0, word.find('='));
    if (const auto meant = similar_name(given, known))
      text += fmt::format("; {} is no option of this command, did you mean {}?", given, *meant);
  }
  return text;
}

/// Parses the arguments, which runs the command.
int parse(int argc, char** argv, const ProgramDescription& description) {
  const Interrupt interrupt;
  report_device_notices([](const std::string& notice) { warn("{}", notice); });
  const auto fail = [&](const std::string& message, int code) {
    return complain(description, message, code);
  };
  GivenArguments given;
  try {
    given = given_arguments(argc, argv);
  } catch (const Error& error) {
    return fail(error.what(), failed);
  }
  const std::vector<std::string>& words = given.words;
  const RunContext context{.interrupt = interrupt,
                           .command_line = shell_command_line(words),
                           .dealer = description.dealer,
                           .mpi = description.mpi,
                           .commands = description.commands};
  CLI::App program(description.purpose, description.name);
  program.set_version_flag("--version", [&] { return version_text(description.name, description.mpi); });
  list_choices(program);
  add_commands(program, context);
  try {
    // The parser takes the last word first, and does not want the program's name.
    program.parse(std::vector<std::string>(words.rbegin(), std::prev(words.rend())));
    if (description.dealer == nullptr || description.dealer->is_first()) given.when_done();
    return 0;
  } catch (const CLI::ParseError& error) {
    if (dynamic_cast<const CLI::CallForHelp*>(&error) != nullptr) {
      print_help(program);
      return 0;
    }
    if (error.get_exit_code() == 0) return program.exit(error);
    const std::string unknown = unknown_command(program);
    // The parser lays out some messages on several lines.
    std::string message = unknown.empty() ? error.what() : unknown;
    std::replace(message.begin(), message.end(), '\n', ' ');
    return fail(fmt::format("{}{} (see --help)", message, meant_options(program)), wrong_usage);
  } catch (const Cancelled& error) {
    return fail(stop_message(program, error.what()), Interrupt::exit_code());
  } catch (const std::bad_alloc&) {
    return fail(fmt::format("out of memory: more was needed than the {} that this process can have",
                            numerics::memory_text(numerics::available_memory())),
                failed);
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(fmt::format("{}: {}", error.path1().string(), error.code().message()), failed);
  } catch (const std::exception& error) {
    // oneTBB's words where there is no address space for the stack of a thread, or a limit on threads.
    const std::string message = error.what();
    if (message.starts_with("pthread_create"))
      return fail(
          fmt::format("out of threads: none could be started ({}), for want of memory or by a limit on them",
                      message),
          failed);
    return fail(message, failed);
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
int finish(int code, const ProgramDescription& program) {
  try {
    flush_standard_output();
    return code;
  } catch (const Error& error) {
    return complain(program, error.what(), code == 0 ? failed : code);
  }
}

/// Matrices go back to the system as soon as they are freed. By default the C library raises the size from which on
/// this holds to that of the largest matrix freed so far, up to 32 MiB, and keeps smaller ones: several of those that
/// inference has made one after the other.
void return_freed_matrices() {
#if defined(__GLIBC__)
  constexpr int from_bytes = 16 << 20;
  mallopt(M_MMAP_THRESHOLD, from_bytes);
  mallopt(M_TRIM_THRESHOLD, from_bytes);
#endif
}

}  // namespace

int program_main(int argc, char** argv, const ProgramDescription& description) {
  // A limit of the files' size then shows where a file is written, as an error.
  std::signal(SIGXFSZ, SIG_IGN);
  return_freed_matrices();
  open_standard_files();
  try {
    return finish(parse(argc, argv, description), description);
  } catch (const std::exception& error) {
    return complain(description, error.what(), failed);
  } catch (...) {
    std::fprintf(stderr, "%s: could not report an error\n", description.complains_as.c_str());
    return failed;
  }
}

}  // namespace widelimit::cli
