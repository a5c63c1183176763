#include <array>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>

#include "bounded_json.hpp"
#include "cli/tasks/table_encoding.hpp"
#include "memory_file.hpp"

namespace widelimit::fuzz {
namespace {

using cli::MissingCells;

/// How a table is read; bits of a byte choose it.
cli::EncodingChoice choice_of(std::uint8_t byte, const std::string& target) {
  constexpr std::array separators{std::optional<char>(), std::optional(','), std::optional(';'),
                                  std::optional('\t')};
  constexpr std::array missing{MissingCells::error, MissingCells::mean, MissingCells::column,
                               MissingCells::column};
  cli::EncodingChoice choice;
  choice.target = target;
  choice.one_hot = (byte & 1U) == 0;
  choice.missing = missing[(byte >> 1U) & 3U];
  choice.unknown = (byte & 8U) == 0 ? cli::UnknownInputs::error : cli::UnknownInputs::ignore;
  choice.separator = separators[(byte >> 4U) & 3U];
  if ((byte & 64U) != 0) choice.numbers.decimal = ',';
  return choice;
}

/// What a model keeps of how columns became numbers.
void read_kept_encoding(Bytes bytes) {
  const cli::NamedTable table{"table.csv", {{"a", "b"}, {{"1", "x"}, {"2.5", ""}}, {2, 3}, false, ','}};
  expect_our_errors([&] {
    const nlohmann::json kept = bounded_json(bytes);
    static_cast<void>(cli::TableEncoding(FieldReader(kept, "preparation")).inputs(table));
  });
}

}  // namespace

void table(Bytes bytes) {
  const Bytes choice = take(bytes, 1);
  if (choice.empty()) return;
  if ((choice[0] & 128U) != 0) return read_kept_encoding(bytes);
  const MemoryFile file(bytes);
  expect_our_errors([&] {
    const auto separator = choice_of(choice[0], "").separator;
    const cli::NamedTable read = cli::read_table(file.path(), separator);
    cli::require_rows(read);
    const std::string target = read.table.columns.at(0);
    const cli::TableEncoding encoding(read, choice_of(choice[0], target));
    const xt::xarray<double> inputs = encoding.inputs(read);
    if (inputs.shape(1) != encoding.number_names().size()) throw std::logic_error("a name for each number");
    for (const double number : inputs)
      if (!std::isfinite(number)) throw std::logic_error("numbers of a table are finite");
    const nlohmann::json kept = encoding.to_json();
    if (cli::TableEncoding(FieldReader(kept, "kept")).inputs(read) != inputs)
      throw std::logic_error("a model reads a table as it was read before");
  });
}

}  // namespace widelimit::fuzz
