#include "opencl/joined_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

namespace widelimit::opencl {
namespace {

bool begins_name(char letter) {
  return std::isalpha(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}
bool is_of_name(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

/// Reads declarations one after the other. Names within brackets of any kind are not theirs.
class Declarations {
 public:
  explicit Declarations(std::string_view source) : source_{source} {}

  SourceNames read() {
    while (at_ < source_.size()) step();
    return std::move(found_);
  }

 private:
  void step() {
    const std::string_view rest = source_.substr(at_);
    if (rest.starts_with("//")) return skip_past("\n");
    if (rest.starts_with("/*")) return skip_past("*/");
    if (rest.front() == '#') return directive();
    if (begins_name(rest.front())) return name();
    const char letter = source_[at_++];
    if (letter == '(' || letter == '[' || letter == '{') {
      // A function is called as what stands before its parameters, a constant as what stands before its sizes.
      if (depth_++ == 0 && letter != '{') end_name();
    } else if (letter == ')' || letter == ']' || letter == '}') {
      if (--depth_ == 0 && letter == '}' && is_function_) end_declaration();
      if (depth_ == 0 && letter == ')') is_function_ = !is_typedef_;
    } else if (depth_ == 0 && letter == '=') {
      end_name();
      is_function_ = false;
    } else if (depth_ == 0 && letter == ';') {
      end_declaration();
    }
  }

  void skip_past(std::string_view end) {
    const std::size_t found = source_.find(end, at_ + 1);
    at_ = found == source_.npos ? source_.size() : found + end.size();
  }

  /// The names in a directive are no declarations; a line that ends in a backslash goes on.
  void directive() {
    std::size_t end = at_;
    do end = source_.find('\n', end + 1);
    while (end != source_.npos && source_[end - 1] == '\\');
    constexpr std::string_view define = "#define ";
    const std::string_view line = source_.substr(at_, end - at_);
    if (line.starts_with(define)) {
      std::size_t last = define.size();
      while (last < line.size() && is_of_name(line[last])) ++last;
      found_.macros.emplace(line.substr(define.size(), last - define.size()));
    }
    at_ = std::min(end, source_.size());
  }

  void name() {
    const std::size_t begin = at_;
    while (at_ < source_.size() && is_of_name(source_[at_])) ++at_;
    const std::string_view read = source_.substr(begin, at_ - begin);
    if (depth_ > 0 || has_name_) return;
    if (read == "typedef") is_typedef_ = true;
    last_ = read;
  }

  void end_name() {
    // What stands in the brackets of an attribute is no declaration.
    if (is_typedef_ || last_.empty() || last_ == "__attribute__" || has_name_) return;
    has_name_ = true;
  }

  void end_declaration() {
    if (!last_.empty()) found_.declared.emplace(last_);
    last_ = {};
    is_typedef_ = has_name_ = is_function_ = false;
  }

  std::string_view source_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string_view last_;  ///< The last name of the declaration so far, or its own.
  bool is_typedef_ = false, has_name_ = false, is_function_ = false;
  SourceNames found_;
};

}  // namespace

SourceNames names_of(const std::string& source) { return Declarations(source).read(); }

std::string joined_name(const std::string& name, std::size_t number) {
  return fmt::format("{}_of_{}", name, number);
}

std::string joined_source(std::span<const std::string> sources) {
  std::string joined;
  for (std::size_t number = 0; number < sources.size(); ++number) {
    const SourceNames names = names_of(sources[number]);
    for (const std::string& name : names.declared)
      joined += fmt::format("#define {} {}\n", name, joined_name(name, number));
    joined += sources[number] + "\n";
    for (const auto* defined : {&names.declared, &names.macros})
      for (const std::string& name : *defined) joined += fmt::format("#undef {}\n", name);
  }
  return joined;
}

}  // namespace widelimit::opencl
