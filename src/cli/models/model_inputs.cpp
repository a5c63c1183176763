#include "cli/models/model_inputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <xtensor/xadapt.hpp>

#include "cli/tasks/npy_inputs.hpp"
#include "cli/tasks/table_encoding.hpp"
#include "cli/tasks/table_notes.hpp"
#include "cli/tasks/text_inputs.hpp"
#include "widelimit/data/preprocessing.hpp"
#include "widelimit/gp/targets.hpp"
#include "widelimit/json/read_json.hpp"

namespace widelimit::cli {
namespace {

/// The place of a label among the classes of the model: its name, or its number where classes have other names.
int class_of(const gp::Model& model, const std::string& label) {
  const auto& names = model.class_names();
  const auto found = std::ranges::find(names, label);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  const auto number = data::number_in_field(label);
  const auto count = static_cast<double>(names.size());
  if (number && *number >= 0 && *number < count && *number == std::floor(*number))
    return static_cast<int>(*number);
  throw DataError(
      fmt::format("the label '{}' is none of the model's classes: {}", label, fmt::join(names, ", ")));
}

/// The truth, as training targets are.
Matrix<double> targets_of_texts(const gp::Model& model, const std::vector<std::string>& values,
                                const data::NumberFormat& format = {}) {
  if (!model.class_names().empty()) {
    std::vector<int> classes;
    for (const std::string& value : values) classes.push_back(class_of(model, value));
    return gp::class_scores(classes, static_cast<int>(model.class_names().size()));
  }
  Matrix<double> targets(static_cast<Index>(values.size()), 1);
  for (std::size_t row = 0; row < values.size(); ++row) {
    const auto number = format.number_in(values[row]);
    if (!number || !std::isfinite(*number))
      throw DataError(
          fmt::format("target {} (from 0): expected a finite number, found '{}'", row, values[row]));
    targets(static_cast<Index>(row), 0) = *number;
  }
  return targets;
}

/// A column for each target; nothing unless all are there.
std::optional<Matrix<double>> targets_of_table(const gp::Model& model, const NamedTable& named,
                                               const TableEncoding& encoding) {
  const std::vector<std::string>& names = encoding.targets();
  if (!std::ranges::all_of(names, [&](const std::string& name) { return named.has(name); }))
    return std::nullopt;
  Matrix<double> targets;
  for (std::size_t k = 0; k < names.size(); ++k) {
    std::vector<std::string> values;
    for (const auto& row : named.table.rows) values.push_back(row[named.table.column(names[k])]);
    const Matrix<double> column = targets_of_texts(model, values, encoding.numbers());
    if (names.size() == 1) return column;
    if (k == 0) targets.resize(column.rows(), static_cast<Index>(names.size()));
    targets.col(static_cast<Index>(k)) = column;
  }
  return targets;
}

/// Labels [n] of classes, or numbers [n] or [n, outputs].
Matrix<double> read_truth(const gp::Model& model, const std::filesystem::path& file) {
  const auto array = read_numbers<double>(file);
  if (!model.class_names().empty()) {
    if (array.dimension() != 1) fail_in(file, "expected labels [n], got {} axes", array.dimension());
    std::vector<std::string> labels;
    for (const double label : array) labels.push_back(fmt::format("{:.0f}", label));
    return naming_errors(file.string(), [&] { return targets_of_texts(model, labels); });
  }
  const auto rows = static_cast<Index>(array.dimension() == 0 ? 0 : array.shape(0));
  if (rows == 0 || array.dimension() > 2 || static_cast<Index>(array.size()) != rows * model.outputs())
    fail_in(file, "expected targets [n, {}], got {} numbers in {} axes", model.outputs(), array.size(),
            array.dimension());
  return Eigen::Map<const Matrix<double>>(array.data(), rows, model.outputs());
}

/// Says which cells the model fills, a line for each column.
void note_filled_cells(ModelInputs& inputs, const TableEncoding& encoding, const NamedTable& named) {
  if (encoding.missing_choice() == MissingCells::error) return;
  const char* choice = missing_cells_name(encoding.missing_choice());
  const auto cells = encoding.missing_cells(named);
  inputs.missing = {{"choice", choice}, {"cells", {{"new", cells}}}};
  for (const auto& [name, count] : cells.items())
    inputs.notes.push_back(
        fmt::format("{}: column '{}': {} of {} cells missing, filled as in the training (--missing {})",
                    named.file.string(), name, count.get<std::size_t>(), named.table.rows.size(), choice));
}

/// Says which cells are none of the categories of the training rows, a line for each column.
void note_unknown_cells(ModelInputs& inputs, const TableEncoding& encoding, const NamedTable& named) {
  if (encoding.unknown_choice() == UnknownInputs::error) return;
  const auto cells = encoding.unknown_cells(named);
  inputs.unknown = {{"choice", "ignore"}, {"cells", {{"new", cells}}}};
  for (const auto& [name, count] : cells.items())
    inputs.notes.push_back(fmt::format(
        "{}: column '{}': {} of {} cells are none of the categories of the training (--unknown ignore)",
        named.file.string(), name, count.get<std::size_t>(), named.table.rows.size()));
}

ModelInputs table_inputs(const gp::Model& model, const std::filesystem::path& file,
                         std::optional<UnknownInputs> unknown) {
  const nlohmann::json prepared = preparation_of(model);
  if (!prepared.contains("table"))
    fail_in(file, "a table, but the model was not fitted to one (fit --data csv); give its inputs with --x");
  TableEncoding encoding(FieldReader(prepared.at("table"), "preparation.table"));
  if (unknown) encoding.set_unknown_choice(*unknown);
  const NamedTable named = read_table(file, encoding.separator());
  require_rows(named);
  ModelInputs inputs{.x = encoding.inputs(named), .names = encoding.names(named)};
  if (model.class_names().empty()) inputs.target_names = encoding.targets();
  note_filled_cells(inputs, encoding, named);
  note_unknown_cells(inputs, encoding, named);
  if (std::string text = new_values_text(encoding.new_values(named), named.file.string()); !text.empty())
    inputs.notes.push_back(std::move(text));
  inputs.targets = naming_errors(file.string(), [&] { return targets_of_table(model, named, encoding); });
  return inputs;
}

/// [n, height, width, channels], each image reduced to size x size unless it is of that size.
xt::xarray<double> reduced(const xt::xarray<double>& images, std::size_t size) {
  if (images.shape(1) == size && images.shape(2) == size) return images;
  const xt::xtensor<float, 4> values = xt::cast<float>(images);
  return xt::cast<double>(data::resize_anti_aliased(values, size, size));
}

/// What fit() did to images: pixels of 0 .. 255 become 0 .. 1, and the image its size.
xt::xarray<double> image_inputs(xt::xarray<double> x, const std::filesystem::path& file, std::size_t size) {
  if (x.dimension() != 4)
    fail_in(file, "expected images [n, height, width, channels], got {} axes", x.dimension());
  for (std::size_t axis = 0; axis < 4; ++axis)
    if (x.shape(axis) == 0)
      fail_in(file, "expected images [n, height, width, channels], got an axis of length 0");
  if (data::read_npy_header(file).type == data::NpyType::uint8) x /= 255.0;
  return reduced(x, size);
}

void check_mask_is_absent(const InputFiles& files, const gp::Preprocessing& preprocessing) {
  for (const auto& other : {files.mask, files.lengths})
    if (!other.empty())
      fail_in(
          other,
          "expected inputs of which every position counts, since the model's preprocessing ({}) reads all",
          gp::to_string(preprocessing.kind()));
}

ModelInputs array_inputs(const gp::Model& model, const InputFiles& files) {
  xt::xarray<double> x = read_numbers<double>(files.x);
  const nlohmann::json preparation = preparation_of(model);
  if (!preparation.contains("resize")) return {.x = std::move(x)};
  const Index size = FieldReader(preparation, "preparation").integer("resize");
  return {.x = image_inputs(std::move(x), files.x, static_cast<std::size_t>(size))};
}

}  // namespace

nlohmann::json preparation_of(const gp::Model& model) {
  return parse_json(model.preparation(), "preparation");
}

const std::filesystem::path& ModelFiles::inputs() const {
  if (!table.empty()) return table;
  if (!texts.empty()) return texts;
  return files.x.empty() ? files.graphs : files.x;
}

std::vector<NamedFile> ModelFiles::named() const {
  std::vector<NamedFile> all = files.named();
  all.insert(all.end(), {{"--csv", table}, {"--texts", texts}, {"--vectors", vectors}, {"--y", truth}});
  return all;
}

ModelInputs read_model_inputs(const gp::Model& model, const ModelFiles& files) {
  ModelInputs inputs;
  if (!files.table.empty())
    inputs = table_inputs(model, files.table, files.unknown);
  else if (!files.texts.empty())
    return text_inputs(model, files.texts, files.vectors, files.unknown.value_or(UnknownInputs::error));
  else if (!files.files.x.empty())
    inputs = array_inputs(model, files.files);
  const auto labels = files.files.graphs / "labels.npy";
  if (!files.truth.empty())
    inputs.targets = read_truth(model, files.truth);
  else if (!files.files.graphs.empty() && std::filesystem::exists(labels))
    inputs.targets = read_truth(model, labels);
  const gp::Preprocessing& preprocessing = model.preprocessing();
  if (preprocessing.kind() == gp::PreprocessingKind::none) return inputs;
  check_mask_is_absent(files.files, preprocessing);
  inputs.x = naming_errors(files.inputs().string(), [&] { return preprocessing.apply(inputs.x); });
  return inputs;
}

}  // namespace widelimit::cli
