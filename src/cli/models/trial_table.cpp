#include "cli/models/trial_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "cli/output/text_parts.hpp"
#include "cli/plots/gnuplot.hpp"
#include "widelimit/data/text_file.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/replacing_file.hpp"

namespace widelimit::cli {
namespace {

/// A note in quotes and without any of its own, which the reader of this table takes off again.
std::string note_field(std::string note) {
  std::replace(note.begin(), note.end(), '"', '\'');
  return csv_quoted(note);
}

/// Nothing stands for NaN.
std::string number_field(double number) { return std::isnan(number) ? "" : fmt::format("{:.17g}", number); }

std::string row_text(std::size_t number, const TrialRow& row) {
  std::string text = fmt::format("{}", number);
  for (const double value : row.values) text += "," + number_field(value);
  return text + fmt::format(",{},{},{:.3f},{}\n", number_field(row.score), number_field(row.regulariser),
                            row.seconds, row.note.empty() ? "" : note_field(row.note));
}

/// As number_field() writes it; no value where it writes something else.
std::optional<double> field_number(const std::string& field) {
  return field.empty() ? std::optional(std::numeric_limits<double>::quiet_NaN()) : whole_text_number(field);
}

}  // namespace

TrialTable::TrialTable(std::filesystem::path file, const Origin& origin,
                       const std::vector<gp::SearchParameter>& parameters, std::string score_name)
    : file_{std::move(file)}, heading_{origin_comment(origin) + "trial"}, values_{parameters.size()} {
  for (const gp::SearchParameter& parameter : parameters) heading_ += "," + csv_field(parameter.name);
  heading_ += fmt::format(",{},regulariser,seconds,note\n", score_name);
  files::check_replaceable(file_);
  if (std::filesystem::exists(file_)) read();
}

void TrialTable::read() {
  constexpr std::size_t most_bytes = std::size_t{1} << 30;
  const std::string text = data::read_text(file_, most_bytes, "a table of trials");
  if (!text.starts_with(heading_))
    throw DataError(fmt::format(
        "{}: holds no trials of this search (version, network, data, precision, criterion and bounds must "
        "be the same); choose another file or remove it",
        file_.string()));
  std::istringstream lines(text.substr(heading_.size()));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream stream_of_fields(line);
    std::vector<double> numbers;
    std::string field;
    while (numbers.size() < values_ + 4 && std::getline(stream_of_fields, field, ',')) {
      const auto number = field_number(field);
      if (!number) break;
      numbers.push_back(*number);
    }
    if (numbers.size() < values_ + 4)
      throw DataError(
          fmt::format("{}: expected a trial with {} numbers, got '{}'", file_.string(), values_ + 4, line));
    std::string note;
    std::getline(stream_of_fields, note);
    if (note.size() >= 2) note = note.substr(1, note.size() - 2);
    rows_.push_back({{numbers.begin() + 1, numbers.begin() + 1 + static_cast<std::ptrdiff_t>(values_)},
                     numbers[values_ + 1],
                     numbers[values_ + 2],
                     numbers[values_ + 3],
                     note});
  }
}

std::vector<gp::Trial> TrialTable::known() const {
  std::vector<gp::Trial> trials;
  trials.reserve(rows_.size());
  for (const TrialRow& row : rows_) trials.push_back({row.values, row.score});
  return trials;
}

void TrialTable::add(TrialRow row) {
  rows_.push_back(std::move(row));
  std::string text = heading_;
  for (std::size_t i = 0; i < rows_.size(); ++i) text += row_text(i, rows_[i]);
  files::replace_file(file_, text);
}

std::string trial_picture_script(const std::vector<TrialRow>& rows, const TrialRow& best,
                                 const std::vector<gp::SearchParameter>& parameters,
                                 const std::string& score_name) {
  std::string text = fmt::format("set terminal pngcairo size {},420 font 'sans,11'\n$trials << end\n",
                                 std::max<std::size_t>(480, 420 * parameters.size()));
  for (const TrialRow& row : rows) {
    if (std::isnan(row.score)) continue;
    for (const double value : row.values) text += fmt::format("{:.17g} ", value);
    text += fmt::format("{:.17g} {}\n", row.score, &row - rows.data());
  }
  text += fmt::format(
      "end\nset multiplot layout 1,{}\nset ylabel {} noenhanced\nset cblabel 'trial'\nset key off\n",
      parameters.size(), gnuplot_quoted(score_name));
  text += "set palette defined (0 '#c6dbef', 1 '#08306b')\nset grid\n";
  const std::size_t score_column = parameters.size() + 1;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    text += fmt::format(
        "set xlabel {} noenhanced\n{} logscale x\nplot $trials using {}:{}:{} with points pt 7 ps 1 lc "
        "palette, '-' using 1:2 with points pt 6 ps 2.5 lw 2 lc rgb '#d94801'\n{:.17g} {:.17g}\ne\n",
        gnuplot_quoted(parameters[i].name),
        parameters[i].scale == gp::SearchScale::logarithmic ? "set" : "unset", i + 1, score_column,
        score_column + 1, best.values[i], best.score);
  return text + "unset multiplot\n";
}

}  // namespace widelimit::cli
