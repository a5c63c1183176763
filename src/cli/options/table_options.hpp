#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "widelimit/error.hpp"
#include "widelimit/fields/config_reader.hpp"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace widelimit::cli {

/// The number that a text is, a whole one as an integer, or the text itself.
[[nodiscard]] nlohmann::json value_of_text(const std::string& text);

using ValueOfText = std::function<nlohmann::json(const std::string&)>;

/// Refuses texts that stand for none of these values: "must be ..., got ...".
[[nodiscard]] CLI::Validator values_check(const FieldValues& values, const ValueOfText& value_for);

/// "--alpha-A" of alpha_A.
[[nodiscard]] std::string option_name(std::string_view field);

/// Options of a command that are made of the rows of tables, and what was given of them. The command's parser writes
/// here: the object must stay where it is until the command runs.
class TableOptions {
 public:
  /// An option for each row, a flag for "true or false"; help and range check are the row's.
  void add_to(CLI::App& command, const ConfigFields& rows, const std::string& group = "");

  [[nodiscard]] bool has(std::string_view field) const { return given_.contains(field); }
  /// The value that was given, else null.
  [[nodiscard]] nlohmann::json given(std::string_view field) const {
    return given_.value(field, nlohmann::json());
  }

  /// A field that has no effect in what is asked for: ArgumentError "OPTION: WHY; leave it out" if it was given.
  /// Otherwise it is one of excluded().
  void exclude(const std::string& field, const std::string& why);
  /// A field of excluded(), given or not.
  void leave_out(const std::string& field) { excluded_.insert(field); }
  [[nodiscard]] const std::set<std::string>& excluded() const { return excluded_; }

  /// The same options beside other values for some of the fields; errors name the fields.
  [[nodiscard]] TableOptions with(const nlohmann::json& values) const;

  /// read(fields) of what was given. ArgumentErrors name the option, also one that was given and not read.
  template <typename Read>
  auto read(const Read& read) const {
    try {
      ConfigReader fields(given_, rows_, path);
      auto result = read(fields);
      fields.finish("has no effect together with the other options; leave it out");
      return result;
    } catch (const NetworkError& error) {
      throw_named(error.what());
    }
  }

 private:
  static constexpr const char* path = "options";
  /// ArgumentError "--alpha-A: MESSAGE" of "options.alpha_A: MESSAGE".
  [[noreturn]] void throw_named(std::string_view message) const;

  ConfigFields rows_;
  nlohmann::json given_ = nlohmann::json::object();
  std::set<std::string> excluded_;
  bool names_fields_ = false;
};

}  // namespace widelimit::cli
