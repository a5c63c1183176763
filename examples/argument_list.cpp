#include "argument_list.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <type_traits>

namespace examples {
namespace {

template <typename Value>
bool shown_in_help(const Value& value) {
  if constexpr (std::is_arithmetic_v<Value>)
    return value != Value{};
  else if constexpr (requires { value.empty(); })
    return !value.empty();
  else
    return false;
}

}  // namespace

ArgumentList::ArgumentList(const std::string& description) : app_{std::make_unique<CLI::App>(description)} {}

ArgumentList::~ArgumentList() = default;

template <typename Value>
CLI::Option* ArgumentList::add(const std::string& name, Value& value, const std::string& description) {
  CLI::Option* option = app_->add_option(name, value, description);
  if (shown_in_help(value)) option->capture_default_str();
  return option;
}

void ArgumentList::flag(const std::string& name, bool& value, const std::string& description) {
  app_->add_flag(name, value, description);
}

template <typename Number>
void ArgumentList::number(const std::string& name, Number& value, const std::string& description, Sign sign) {
  CLI::Option* option = add(name, value, description);
  if (sign == Sign::positive) option->check(CLI::PositiveNumber);
  if (sign == Sign::not_negative) option->check(CLI::NonNegativeNumber);
}

template <typename Number>
void ArgumentList::number(const std::string& name, Number& value, const std::string& description, int from,
                          int to) {
  add(name, value, description)->check(CLI::Range(from, to));
}

#define EXAMPLES_NUMBER(Number)                                                                             \
  template void ArgumentList::number(const std::string&, Number&, const std::string&, Sign);                \
  template void ArgumentList::number(const std::string&, std::optional<Number>&, const std::string&, Sign); \
  template void ArgumentList::number(const std::string&, Number&, const std::string&, int, int);            \
  template void ArgumentList::number(const std::string&, std::optional<Number>&, const std::string&, int,   \
                                     int);

EXAMPLES_NUMBER(std::int32_t)
EXAMPLES_NUMBER(std::int64_t)
EXAMPLES_NUMBER(std::uint64_t)
EXAMPLES_NUMBER(double)

void ArgumentList::numbers(const std::string& name, std::vector<std::ptrdiff_t>& values,
                           const std::string& description, int from, int to) {
  add(name, values, description)->delimiter(',')->check(CLI::Range(from, to));
}

void ArgumentList::text(const std::string& name, std::string& value, const std::string& description) {
  add(name, value, description);
}

void ArgumentList::choice(const std::string& name, const std::string& description,
                          const std::vector<std::string>& names,
                          const std::function<void(std::size_t)>& chosen) {
  const auto choose = [names, chosen](const std::string& given) {
    chosen(static_cast<std::size_t>(std::find(names.begin(), names.end(), given) - names.begin()));
  };
  app_->add_option_function<std::string>(name, choose, description)
      ->transform(CLI::IsMember(names, CLI::ignore_case));
}

void ArgumentList::choices(const std::string& name, std::vector<std::string>& values,
                           const std::string& description, const std::vector<std::string>& names) {
  add(name, values, description)->delimiter(',')->check(CLI::IsMember(names));
}

void ArgumentList::path(const std::string& name, std::filesystem::path& value,
                        const std::string& description) {
  add(name, value, description);
}

void ArgumentList::existing_file(const std::string& name, std::filesystem::path& value,
                                 const std::string& description) {
  add(name, value, description)->check(CLI::ExistingFile);
}

void ArgumentList::existing_folder(const std::string& name, std::filesystem::path& value,
                                   const std::string& description) {
  add(name, value, description)->check(CLI::ExistingDirectory);
}

std::optional<int> ArgumentList::parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    return app_->exit(error);
  }
}

}  // namespace examples
