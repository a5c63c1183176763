#include "cli/output/text_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <regex>
#include <system_error>

namespace widelimit::cli {

std::size_t letter_count(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::string shared_or_range(const Vector<double>& numbers, const char* one, const char* two) {
  const double least = numbers.minCoeff(), most = numbers.maxCoeff();
  return least == most ? fmt::format(fmt::runtime(one), least) : fmt::format(fmt::runtime(two), least, most);
}

std::string squared_error_text(double error) {
  return error < 1e7 ? fmt::format("{:.5f}", error) : fmt::format("{:.5e}", error);
}

std::optional<double> whole_text_number(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

std::optional<std::pair<Index, Index>> two_integers(std::string_view text, char separator) {
  const char* const end = text.data() + text.size();
  Index first = 0, second = 0;
  const auto front = std::from_chars(text.data(), end, first);
  if (front.ec != std::errc{} || front.ptr == end || *front.ptr != separator) return std::nullopt;
  const auto back = std::from_chars(front.ptr + 1, end, second);
  if (back.ec != std::errc{} || back.ptr != end) return std::nullopt;
  return std::pair(first, second);
}

std::vector<DescribedChoice> described_choices(const std::string& description) {
  static const std::regex choice(R"((?:^|; |\. )([a-z][a-z0-9-]*): ([^;]*))");
  std::vector<DescribedChoice> choices;
  for (auto found = std::sregex_iterator(description.begin(), description.end(), choice);
       found != std::sregex_iterator(); ++found) {
    const std::string meaning = (*found)[2];
    choices.push_back({(*found)[1], meaning.substr(0, meaning.find(" ["))});
  }
  return choices;
}

}  // namespace widelimit::cli
