#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "widelimit/index.hpp"

namespace widelimit {

/// The words that stand for the values of an enumeration.
template <typename Value>
using Choices = std::vector<std::pair<std::string, Value>>;

/// What a field may hold: what --help and the documentation say of it is what check_fields() checks.
class FieldValues {
 public:
  /// Words alone: what the field holds is checked where it is read.
  FieldValues(const char* text);  // NOLINT(google-explicit-constructor): most fields of a table are words

  static FieldValues number();
  static FieldValues above(double bound);
  static FieldValues at_least(double bound);
  static FieldValues within(double from, double to);
  /// Without its ends.
  static FieldValues inside(double from, double to);
  static FieldValues zero_or_at_least(double bound);
  static FieldValues integer(Index from, Index to);
  static FieldValues integer_at_least(Index from);
  static FieldValues boolean();
  /// A text of at least one character.
  static FieldValues filled_text();
  static FieldValues words(std::vector<std::string> known);
  template <typename Value>
  static FieldValues words(const Choices<Value>& choices) {
    std::vector<std::string> known;
    for (const auto& [word, value] : choices) known.push_back(word);
    return words(std::move(known));
  }
  /// One of the words, or what `other` holds.
  static FieldValues words_or(std::vector<std::string> known, const FieldValues& other);

  /// A list of at least one of these.
  [[nodiscard]] FieldValues list() const;
  /// The same, none of them twice.
  [[nodiscard]] FieldValues different_list() const;
  /// A list of at least one of these numbers, each greater than the one before it.
  [[nodiscard]] FieldValues increasing_list() const;
  /// The same check under other words, e.g. for a bound that another field sets.
  [[nodiscard]] FieldValues said(std::string text) const;

  /// "integer >= 1": what help and pages say.
  [[nodiscard]] const std::string& text() const { return text_; }
  /// "an integer >= 1": what messages expect.
  [[nodiscard]] const std::string& expected() const { return expected_; }
  /// Whether the field may have this value; true of words alone.
  [[nodiscard]] bool hold(const nlohmann::json& value) const { return !hold_ || hold_(value); }
  /// False for words alone.
  [[nodiscard]] bool is_checked() const { return static_cast<bool>(hold_); }

 private:
  using Check = std::function<bool(const nlohmann::json&)>;
  FieldValues(std::string text, std::string expected, Check hold);

  std::string text_, expected_;
  Check hold_;
};

}  // namespace widelimit
