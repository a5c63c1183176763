#include "cli/program.hpp"

#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace widelimit::testing {

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "widelimit-cli-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), "cannot make a temporary folder");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string file_text(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot read " + file.string());
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string comments_of(const std::string& csv) {
  std::size_t end = 0;
  while (csv.compare(end, 1, "#") == 0) end = csv.find('\n', end) + 1;
  return csv.substr(0, end);
}

std::string without_comments(const std::string& csv) { return csv.substr(comments_of(csv).size()); }

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

ProgramResult run_program_under(const std::string& command, const std::string& arguments) {
  const TemporaryFolder folder;
  const std::string line = command + " '" + WIDELIMIT_PROGRAM + "' " + arguments + " >'" +
                           (folder / "output").string() + "' 2>'" + (folder / "errors").string() + "'";
  // The shell is asked to report a signal as 128 + its number, also where the program is its last command.
  const int status = std::system((line + "; exit $?").c_str());
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .output = file_text(folder / "output"),
          .errors = file_text(folder / "errors")};
}

ProgramResult run_script(const std::string& script) {
  const TemporaryFolder folder;
  std::ofstream(folder / "script") << "WIDELIMIT='" << WIDELIMIT_PROGRAM << "'\n" << script << '\n';
  const std::string line = "sh '" + (folder / "script").string() + "' >'" + (folder / "output").string() +
                           "' 2>'" + (folder / "errors").string() + "'";
  const int status = std::system((line + "; exit $?").c_str());
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .output = file_text(folder / "output"),
          .errors = file_text(folder / "errors")};
}

ProgramResult run_program(const std::string& arguments) { return run_program_under("", arguments); }

}  // namespace widelimit::testing
