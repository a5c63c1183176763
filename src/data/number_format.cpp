#include "widelimit/data/number_format.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

namespace widelimit::data {
namespace {

void replace_all(std::string& text, std::string_view old, std::string_view replacement) {
  for (std::size_t at = text.find(old); at != std::string::npos; at = text.find(old, at + replacement.size()))
    text.replace(at, old.size(), replacement);
}

void trim_blanks(std::string& text) {
  text.erase(0, std::min(text.find_first_not_of(" \t"), text.size()));
  text.erase(text.find_last_not_of(" \t") + 1);
}

/// The field as std::from_chars() reads numbers; empty if it is none.
std::string in_plain_notation(const NumberFormat& format, std::string field) {
  constexpr std::string_view minus = "\xe2\x88\x92";
  for (const std::string& text : format.stripped)
    if (!text.empty()) replace_all(field, text, "");
  trim_blanks(field);
  if (field.starts_with(minus)) field.replace(0, minus.size(), "-");
  if (format.decimal != '.') {
    if (field.find('.') != std::string::npos) return "";
    std::ranges::replace(field, format.decimal, '.');
  }
  // std::from_chars() takes no plus sign.
  if (field.size() > 1 && field[0] == '+' && field[1] != '-') field.erase(0, 1);
  return field;
}

std::errc read_number(const NumberFormat& format, const std::string& field, double& value) {
  const std::string text = in_plain_notation(format, field);
  const char* last = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), last, value);
  return stop == last ? error : std::errc::invalid_argument;
}

}  // namespace

std::optional<double> NumberFormat::number_in(const std::string& field) const {
  double value = 0;
  return read_number(*this, field, value) == std::errc{} ? std::optional(value) : std::nullopt;
}

bool NumberFormat::beyond_double(const std::string& field) const {
  double value = 0;
  return read_number(*this, field, value) == std::errc::result_out_of_range;
}

std::optional<double> number_in_field(const std::string& field) { return NumberFormat{}.number_in(field); }

}  // namespace widelimit::data
