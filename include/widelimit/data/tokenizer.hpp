#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace widelimit::data {

/// The words of a text, as the Keras Tokenizer finds them with its default arguments: the text in lower case,
/// tab, newline and each of
///
///     !"#$%&()*+,-./:;<=>?@[\]^_`{|}~
///
/// a space, split on spaces. The apostrophe stays, so that "don't" is one word; so do all other characters, blanks
/// outside ASCII among them. The tag `<br />` leaves the word "br".
///
/// Lower case is that of Unicode (Python's str.lower(), but that only the two neighbours of a capital sigma
/// decide whether it is final).
/// Errors  DataError with the offset of the first byte if the text is not UTF-8.
/// Cost    a few nanoseconds a character.
/// Source  Chollet et al., Keras 2, keras.preprocessing.text.
std::vector<std::string> tokenize(std::string_view text);

}  // namespace widelimit::data
