#include "cli/model_inputs.hpp"

#include <xtensor/xadapt.hpp>

#include "cli/npy_inputs.hpp"
#include "cli/table_encoding.hpp"
#include "widelimit/data/preprocessing.hpp"
#include "widelimit/json/read_json.hpp"

namespace widelimit::cli {
namespace {

ModelInputs table_inputs(const gp::Model& model, const std::filesystem::path& file) {
  if (!model.preparation().contains("table"))
    fail_in(file, "a table, but the model was not fitted to one (fit --data csv); give its inputs with --x");
  const TableEncoding encoding(JsonValue(model.preparation().at("table"), "preparation.table"));
  const NamedTable named = read_table(file);
  require_rows(named);
  return {encoding.inputs(named), encoding.names(named)};
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
  const auto& preparation = model.preparation();
  if (!preparation.contains("resize")) return {std::move(x), {}};
  const Index size = JsonValue(preparation.at("resize"), "preparation.resize");
  return {image_inputs(std::move(x), files.x, static_cast<std::size_t>(size)), {}};
}

}  // namespace

ModelInputs read_model_inputs(const gp::Model& model, const InputFiles& files,
                              const std::filesystem::path& table) {
  if (table.empty() && files.x.empty()) return {};
  const std::filesystem::path& file = table.empty() ? files.x : table;
  ModelInputs inputs = table.empty() ? array_inputs(model, files) : table_inputs(model, table);
  const gp::Preprocessing& preprocessing = model.preprocessing();
  if (preprocessing.kind() == gp::PreprocessingKind::none) return inputs;
  check_mask_is_absent(files, preprocessing);
  inputs.x = naming_errors(file.string(), [&] { return preprocessing.apply(inputs.x); });
  return inputs;
}

}  // namespace widelimit::cli
