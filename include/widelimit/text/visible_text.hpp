#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

/// Texts that others wrote (names of classes, networks and files) as outputs may show them. A terminal, a browser or a
/// plotter obeys some characters instead of drawing them; here they become escapes that people see.
namespace widelimit {

/// A text as one line. Escapes take the place of control characters ("\n", "\t", "\x1b", "\u009b"), of separators of
/// lines and paragraphs, of the marks that turn the direction of a text ("\u202e"), and of bytes that are not UTF-8
/// ("\xff"). What is left is well-formed UTF-8; a visible text stays as it is.
[[nodiscard]] std::string visible_text(std::string_view text);

/// The same with its line breaks and tabs: of texts that a program laid out itself.
[[nodiscard]] std::string visible_lines(std::string_view text);

/// A JSON document, written by a JSON library, with these characters as the escapes of JSON ("\u001b"): the same
/// document, which a terminal can show. Line breaks and tabs between its values stay.
[[nodiscard]] std::string visible_json(std::string_view document);

/// A message of at most some 4,000 bytes: of a longer one, which quotes something long, the beginning and the end, and
/// how many bytes are left out between them.
[[nodiscard]] std::string short_message(std::string_view message);

/// Offset of the first byte that does not belong to well-formed UTF-8 (overlong forms, surrogates and values above
/// U+10FFFF are not well-formed); nothing if all bytes do.
[[nodiscard]] std::optional<std::size_t> first_invalid_utf8(std::string_view text);

}  // namespace widelimit
