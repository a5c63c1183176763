#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace examples {

/// Which numbers an argument takes.
enum class Sign { any, positive, not_negative };

/// The command line of an example. The header of the parser stays out of here: it takes longer to compile than most
/// examples.
///
/// Every argument leaves its variable alone where it is not given. Help shows what the variable then holds, unless that
/// is nothing or 0. Variables must outlive the list.
class ArgumentList {
 public:
  explicit ArgumentList(const std::string& description = "");
  ~ArgumentList();
  ArgumentList(const ArgumentList&) = delete;
  ArgumentList& operator=(const ArgumentList&) = delete;

  /// True where the argument is there.
  void flag(const std::string& name, bool& value, const std::string& description);

  /// A number, or an optional one; integers of 32 and 64 bits, or double.
  template <typename Number>
  void number(const std::string& name, Number& value, const std::string& description, Sign sign = Sign::any);

  /// A number from `from` to `to`, both included.
  template <typename Number>
  void number(const std::string& name, Number& value, const std::string& description, int from, int to);

  /// Numbers with commas between them, from `from` to `to`.
  void numbers(const std::string& name, std::vector<std::ptrdiff_t>& values, const std::string& description,
               int from, int to);

  void text(const std::string& name, std::string& value, const std::string& description);

  /// Calls chosen(i) for the i-th of the names, in upper or lower case.
  void choice(const std::string& name, const std::string& description, const std::vector<std::string>& names,
              const std::function<void(std::size_t)>& chosen);

  /// Some of the names, with commas between them.
  void choices(const std::string& name, std::vector<std::string>& values, const std::string& description,
               const std::vector<std::string>& names);

  /// A file or folder that may be missing.
  void path(const std::string& name, std::filesystem::path& value, const std::string& description);
  void existing_file(const std::string& name, std::filesystem::path& value, const std::string& description);
  void existing_folder(const std::string& name, std::filesystem::path& value, const std::string& description);

  /// Reads the arguments of main(). Returns the exit status where the program is to end: after --help, or after wrong
  /// arguments, with a message.
  [[nodiscard]] std::optional<int> parse(int argc, const char* const* argv);

 private:
  template <typename Value>
  CLI::Option* add(const std::string& name, Value& value, const std::string& description);

  std::unique_ptr<CLI::App> app_;
};

}  // namespace examples
