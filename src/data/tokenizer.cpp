#include "widelimit/data/tokenizer.hpp"

#include <fmt/format.h>

#include "data/lower_case.hpp"
#include "text/utf8.hpp"
#include "widelimit/error.hpp"

namespace widelimit::data {
namespace {

// The characters that Keras filters out by default, and the space, on which it splits.
constexpr std::u32string_view separators = U" !\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n";

bool separates(char32_t character) {
  return character < 0x80 && separators.find(character) != std::u32string_view::npos;
}

}  // namespace

std::vector<std::string> tokenize(std::string_view text) {
  if (const auto invalid = first_invalid_utf8(text))
    throw DataError(
        fmt::format("text: offset {}: expected UTF-8, found {}", *invalid, byte_text(text[*invalid])));
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (const char32_t character : to_lower_case(decode_utf8(text))) {
    if (separates(character))
      finish();
    else
      append_utf8(word, character);
  }
  finish();
  return words;
}

}  // namespace widelimit::data
