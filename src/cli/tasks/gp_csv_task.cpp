#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "cli/tasks/column_texts.hpp"
#include "cli/tasks/gp_task.hpp"
#include "cli/tasks/table_notes.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/targets.hpp"
#include "widelimit/json/shown_text.hpp"

namespace widelimit::cli {
namespace {

using Path = std::filesystem::path;

/// The tables of a task; validation and test rows may be parts of one table with the training rows.
struct Tables {
  NamedTable train;
  std::optional<NamedTable> validation;
  std::optional<NamedTable> test;
};

NamedTable rows_of(const NamedTable& all, const std::vector<std::size_t>& rows) {
  NamedTable part{all.file, {all.table.columns, {}, {}, all.table.has_row_names, all.table.separator}};
  for (const std::size_t row : rows) {
    part.table.rows.push_back(all.table.rows[row]);
    part.table.lines.push_back(all.table.lines[row]);
  }
  return part;
}

/// The table of this name in a folder, plain or packed; the plain one comes first.
Path table_in(const Path& folder, const std::string& name) {
  const Path plain = folder / name, packed = folder / (name + ".gz");
  return !std::filesystem::exists(plain) && std::filesystem::exists(packed) ? packed : plain;
}

/// A number for each different text of a column.
std::vector<Index> row_groups(const NamedTable& table, const std::optional<std::string>& column) {
  if (!column) return {};
  std::map<std::string, Index> numbers;
  std::vector<Index> groups;
  for (const std::string& value : fields_of(table, *column))
    groups.push_back(numbers.try_emplace(value, static_cast<Index>(numbers.size())).first->second);
  return groups;
}

/// The same number for rows whose cells of inputs are equal.
std::vector<Index> equal_rows(const NamedTable& table, const EncodingChoice& choice) {
  std::set<std::string> others = choice.ignored;
  for (const std::string& target : target_columns(table, choice.target)) others.insert(target);
  for (const auto& column : {choice.id, choice.noise_variance, choice.weight, choice.groups})
    if (column) others.insert(*column);
  if (table.table.has_row_names) others.insert(std::string(data::CsvTable::row_names));
  std::map<std::vector<std::string>, Index> numbers;
  std::vector<Index> equal;
  for (const auto& row : table.table.rows) {
    std::vector<std::string> cells;
    for (std::size_t c = 0; c < row.size(); ++c)
      if (!others.contains(table.table.columns[c])) cells.push_back(row[c]);
    equal.push_back(numbers.try_emplace(std::move(cells), static_cast<Index>(numbers.size())).first->second);
  }
  return equal;
}

/// `classes_of` numbers the classes of a table's rows, or gives nothing where the targets are numbers.
Tables read_tables(const Path& path, const SplitChoice& split, bool test_needed, const EncodingChoice& choice,
                   const std::function<std::vector<int>(const NamedTable&)>& classes_of) {
  const std::optional<char> separator = choice.separator;
  if (!std::filesystem::is_directory(path)) {
    const NamedTable all = read_table(path, separator);
    const auto classes = all.table.rows.empty() ? std::vector<int>() : classes_of(all);
    auto parts = split_rows(all.table.rows.size(), split, path.string(), classes);
    if (choice.groups && all.has(*choice.groups))
      keep_groups_together(parts, row_groups(all, choice.groups), path.string());
    if (!parts[1].empty()) train_on_equal_rows(parts, equal_rows(all, choice));
    Tables tables{rows_of(all, parts[0]), std::nullopt, rows_of(all, parts[2])};
    if (!parts[1].empty()) tables.validation = rows_of(all, parts[1]);
    return tables;
  }
  if (split.is_given())
    throw DataError(
        fmt::format("{}: --train, --validation, --test and --stratify split a single file; a folder has "
                    "train.csv, test.csv and perhaps validation.csv",
                    path.string()));
  Tables tables{read_table(table_in(path, "train.csv"), separator), std::nullopt, std::nullopt};
  const Path test = table_in(path, "test.csv"), validation = table_in(path, "validation.csv");
  if (test_needed || std::filesystem::exists(test)) tables.test = read_table(test, separator);
  if (std::filesystem::exists(validation)) tables.validation = read_table(validation, separator);
  return tables;
}

/// The column of targets, or several of numbers, as training rows have them.
class TargetColumn {
 public:
  TargetColumn(const NamedTable& train, const EncodingChoice& choice, std::optional<TargetKind> kind)
      : names_{target_columns(train, choice.target)}, name_{names_.front()}, format_{choice.numbers} {
    if (names_.size() > 1) {
      if (kind == TargetKind::classes)
        throw DataError(fmt::format(
            "{}: --target names {} columns, which are numbers; classes have one column, and a model each",
            train.file.string(), names_.size()));
      static_cast<void>(real_targets(train));
      return;
    }
    const auto values = fields_of(train, name_);
    const bool numbers = std::ranges::all_of(
        values, [&](const std::string& value) { return format_.number_in(value).has_value(); });
    if (!numbers && !kind) check_notation(train, values);
    if (!numbers && kind == TargetKind::numbers) static_cast<void>(real_targets(train));
    kind_ = kind.value_or(numbers ? TargetKind::numbers : TargetKind::classes);
    if (!kind && numbers && are_whole(values))
      fail_at_field(
          train, 0, name_,
          "all values are whole numbers: classes, or numbers? give --targets classes or --targets numbers");
    if (kind_ == TargetKind::classes) find_classes(train, values, numbers);
  }

  /// Whether all its columns are there.
  [[nodiscard]] bool is_in(const NamedTable& named) const {
    return std::ranges::all_of(names_, [&](const std::string& name) { return named.has(name); });
  }
  [[nodiscard]] TargetKind kind() const { return kind_; }
  [[nodiscard]] const std::vector<std::string>& classes() const { return classes_; }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

  [[nodiscard]] Matrix<double> targets(const NamedTable& named) const {
    return kind_ == TargetKind::numbers ? real_targets(named)
                                        : gp::class_scores(labels(named), static_cast<int>(classes_.size()));
  }

  /// "'y'", or "'a', 'b'", for people.
  [[nodiscard]] std::string text() const { return fmt::format("'{}'", fmt::join(names_, "', '")); }

  /// The number of each row's class.
  [[nodiscard]] std::vector<int> labels(const NamedTable& named) const {
    std::vector<int> result;
    const auto values = fields_of(named, name_);
    for (std::size_t row = 0; row < values.size(); ++row) {
      const auto found = std::find(classes_.begin(), classes_.end(), values[row]);
      if (found == classes_.end())
        fail_at_field(
            named, row, name_,
            fmt::format("the class '{}' is not among those of the training rows; take more of them, another "
                        "--seed, or leave the row out",
                        cut_text(values[row])));
      result.push_back(static_cast<int>(found - classes_.begin()));
    }
    return result;
  }

 private:
  /// Numbers in another notation would be taken for the names of classes.
  void check_notation(const NamedTable& train, const std::vector<std::string>& values) const {
    for (std::size_t row = 0; row < values.size(); ++row)
      if (format_.beyond_double(values[row]))
        fail_at_field(train, row, name_, beyond_double_text(values[row]));
    if (const std::string remedy = remedy_of_numbers(values, format_); !remedy.empty())
      fail_at_field(
          train, 0, name_,
          fmt::format(
              "the targets look like numbers; to read them as numbers: {}; if these are classes, give "
              "--targets classes",
              remedy));
  }

  [[nodiscard]] bool are_whole(const std::vector<std::string>& values) const {
    return std::all_of(values.begin(), values.end(), [&](const std::string& value) {
      const auto number = format_.number_in(value);
      return number && *number == std::floor(*number);
    });
  }

  void find_classes(const NamedTable& train, const std::vector<std::string>& values, bool numbers) {
    const std::set<std::string> different(values.begin(), values.end());
    classes_.assign(different.begin(), different.end());
    if (numbers)
      std::stable_sort(classes_.begin(), classes_.end(), [&](const std::string& a, const std::string& b) {
        return *format_.number_in(a) < *format_.number_in(b);
      });
    constexpr std::size_t most_classes = 10'000;
    if (classes_.size() < 2) fail_at_field(train, 0, name_, "expected two or more classes, found one");
    if (classes_.size() > most_classes)
      fail_at_field(train, 0, name_,
                    fmt::format("expected at most {} classes, found {}", most_classes, classes_.size()));
  }

  /// [rows, targets]
  [[nodiscard]] Matrix<double> real_targets(const NamedTable& named) const {
    Matrix<double> result(static_cast<Index>(named.table.rows.size()), static_cast<Index>(names_.size()));
    for (std::size_t k = 0; k < names_.size(); ++k) {
      const auto values = fields_of(named, names_[k]);
      for (std::size_t row = 0; row < values.size(); ++row)
        result(static_cast<Index>(row), static_cast<Index>(k)) =
            real_target(named, row, names_[k], values[row]);
    }
    return result;
  }

  [[nodiscard]] double real_target(const NamedTable& named, std::size_t row, const std::string& name,
                                   const std::string& value) const {
    if (format_.beyond_double(value)) fail_at_field(named, row, name, beyond_double_text(value));
    const auto number = format_.number_in(value);
    if (!number || !std::isfinite(*number))
      fail_at_field(
          named, row, name,
          fmt::format("expected a finite number, found '{}'{}", cut_text(value),
                      truth_value(value) ? "; true and false are two classes (--targets classes), or "
                                           "write them as 1 and 0"
                                         : ""));
    return *number;
  }

  std::vector<std::string> names_;
  std::string name_;  ///< The first of them.
  data::NumberFormat format_;
  TargetKind kind_ = TargetKind::numbers;
  std::vector<std::string> classes_;
};

template <typename Scalar>
GpSet<Scalar> set_of(const NamedTable& named, const TableEncoding& encoding, const TargetColumn& target) {
  GpSet<Scalar> set;
  set.x = xt::cast<Scalar>(encoding.inputs(named));
  if (target.is_in(named)) set.targets = target.targets(named);
  set.names = encoding.names(named);
  return set;
}

/// Positive numbers of a column that is known for every training row.
Vector<double> row_numbers(const NamedTable& train, const std::optional<std::string>& column,
                           const data::NumberFormat& format) {
  if (!column) return {};
  const auto values = fields_of(train, *column);
  Vector<double> numbers(static_cast<Index>(values.size()));
  for (std::size_t row = 0; row < values.size(); ++row) {
    const auto number = format.number_in(values[row]);
    if (!number || !std::isfinite(*number) || !(*number > 0))
      fail_at_field(train, row, *column,
                    fmt::format("expected a positive, finite number, found '{}'", cut_text(values[row])));
    numbers(static_cast<Index>(row)) = *number;
  }
  return numbers;
}

/// {"training": {"a": 3}, "validation": {}, "test": {"a": 1}}; parts that are not there are left out.
nlohmann::ordered_json missing_cells_of(const Tables& tables, const TableEncoding& encoding) {
  nlohmann::ordered_json cells{{"training", encoding.missing_cells(tables.train)}};
  if (tables.validation) cells["validation"] = encoding.missing_cells(*tables.validation);
  if (tables.test) cells["test"] = encoding.missing_cells(*tables.test);
  return cells;
}

/// Of validation and test rows; training rows have no categories that are unknown.
nlohmann::ordered_json unknown_cells_of(const Tables& tables, const TableEncoding& encoding) {
  nlohmann::ordered_json cells = nlohmann::ordered_json::object();
  if (tables.validation) cells["validation"] = encoding.unknown_cells(*tables.validation);
  if (tables.test) cells["test"] = encoding.unknown_cells(*tables.test);
  return cells;
}

/// What was done about cells that hold nothing, or nothing known.
template <typename Scalar>
void note_cells(GpTask<Scalar>& task, const Tables& tables, const TableEncoding& encoding) {
  if (encoding.missing_choice() != MissingCells::error) {
    const char* choice = missing_cells_name(encoding.missing_choice());
    const auto cells = missing_cells_of(tables, encoding);
    task.missing = {{"choice", choice}, {"cells", cells}};
    task.notes.push_back(fmt::format("missing cells (--missing {}): {}", choice, cells_by_part_text(cells)));
  }
  if (encoding.unknown_choice() == UnknownInputs::ignore) {
    const auto cells = unknown_cells_of(tables, encoding);
    task.unknown = {{"choice", "ignore"}, {"cells", cells}};
    task.notes.push_back("unknown categories (--unknown ignore): " + cells_by_part_text(cells));
  }
}

/// How the columns were read, and what is suspicious about them.
template <typename Scalar>
void note_columns(GpTask<Scalar>& task, const Tables& tables, const TableEncoding& encoding,
                  const EncodingChoice& choice) {
  task.columns = encoding.readings(tables.train);
  task.notes.push_back(readings_text(task.columns));
  const xt::xarray<double> train = encoding.inputs(tables.train);
  const auto note = [&](std::string text) {
    if (!text.empty()) task.notes.push_back(std::move(text));
  };
  note(constant_columns_text(task.columns));
  note(ignored_targets_text(encoding.targets(), choice.ignored));
  note(alike_texts_text("classes", task.class_names));
  for (const auto& reading : task.columns)
    if (const std::string name = reading.at("name"); reading.at("read_as") == "category")
      note(alike_texts_text(fmt::format("categories of '{}'", name), texts_of(tables.train, name)));
  note(identifiers_text(tables.train, task.columns, encoding.numbers()));
  note(copies_of_target_text(tables.train, task.columns, encoding.targets(), task.kind == TargetKind::classes,
                             encoding.numbers()));
  if (tables.validation) note(new_values_text(encoding.new_values(*tables.validation), "validation"));
  if (tables.test) note(new_values_text(encoding.new_values(*tables.test), "test"));
  if (tables.validation) note(shared_rows_text(train, encoding.inputs(*tables.validation), "validation"));
  if (tables.test) note(shared_rows_text(train, encoding.inputs(*tables.test), "test"));
}

}  // namespace

template <typename Scalar>
GpTask<Scalar> csv_task(const Path& path, const EncodingChoice& choice, std::optional<TargetKind> kind,
                        const SplitChoice& split, bool test_needed) {
  const auto classes_of = [&](const NamedTable& all) {
    const TargetColumn target(all, choice, kind);
    return target.kind() == TargetKind::classes ? target.labels(all) : std::vector<int>();
  };
  const Tables tables = read_tables(path, split, test_needed, choice, classes_of);
  const TableEncoding encoding(tables.train, choice);
  const TargetColumn target(tables.train, choice, kind);
  if (tables.test) require_rows(*tables.test);
  if (tables.validation) require_rows(*tables.validation);
  if (tables.validation && !target.is_in(*tables.validation))
    throw DataError(fmt::format("{}: expected a column '{}' of targets", tables.validation->file.string(),
                                choice.target));
  GpTask<Scalar> task;
  task.default_preprocessing = gp::PreprocessingKind::channel;
  task.kind = target.kind();
  task.class_names = target.classes();
  if (task.kind == TargetKind::numbers) task.target_names = target.names();
  task.preparation = {{"table", encoding.to_json()}};
  task.indicators = encoding.indicators();
  task.train = set_of<Scalar>(tables.train, encoding, target);
  task.channel_names = encoding.number_names();
  task.channel_groups = encoding.number_columns();
  task.noise_variances = row_numbers(tables.train, choice.noise_variance, choice.numbers);
  task.weights = row_numbers(tables.train, choice.weight, choice.numbers);
  task.groups = row_groups(tables.train, choice.groups);
  if (tables.validation) task.validation = set_of<Scalar>(*tables.validation, encoding, target);
  if (tables.test) task.test = set_of<Scalar>(*tables.test, encoding, target);
  note_columns(task, tables, encoding, choice);
  note_cells(task, tables, encoding);
  task.description = fmt::format(
      "{}: {} training, {} validation, {} test rows of {} numbers, target {} ({})", path.string(),
      tables.train.table.rows.size(), tables.validation ? tables.validation->table.rows.size() : 0,
      task.test.size(), task.train.x.shape(1), target.text(),
      task.kind == TargetKind::classes ? fmt::format("{} classes", task.class_names.size()) : "numbers");
  return task;
}

template GpTask<float> csv_task(const Path&, const EncodingChoice&, std::optional<TargetKind>,
                                const SplitChoice&, bool);
template GpTask<double> csv_task(const Path&, const EncodingChoice&, std::optional<TargetKind>,
                                 const SplitChoice&, bool);

}  // namespace widelimit::cli
