#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "json/json_matrix.hpp"
#include "layers/common/checks.hpp"
#include "layers/finite/position_map.hpp"
#include "layers/kind_rows.hpp"
#include "layers/position_map_stage.hpp"
#include "network/layer_model.hpp"
#include "network/window.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/matrix_field.hpp"
#include "widelimit/layers/positions.hpp"

namespace widelimit::layers {

namespace {

/// A layer that is a position map with a kind and fields.
class PositionMapLayer : public LayerModel,
                         public PositionMap,
                         public std::enable_shared_from_this<PositionMapLayer> {
 public:
  LoweredState lower(Lowering& lowering, const LoweredState& input) const override {
    return lowering.position_map(input, position_map_stage(shared_from_this(), input.shape));
  }

  finite::CounterpartPointer finite_counterpart() const override {
    return finite::position_map_counterpart(shared_from_this());
  }
};

void check_axis_count(const char* layer, std::size_t axes) {
  if (axes < 1 || axes > 3)
    throw ArgumentError(fmt::format("{}: expected 1, 2 or 3 axes, got {}", layer, axes));
}

class Slice final : public PositionMapLayer {
 public:
  explicit Slice(std::vector<SliceAxis> axes) : axes_{std::move(axes)} {
    check_axis_count("slice", axes_.size());
    for (const SliceAxis& axis : axes_)
      if (axis.step == 0) throw ArgumentError("slice: steps must not be 0");
  }

  std::string kind() const override { return "slice"; }

  nlohmann::ordered_json fields() const override {
    auto begin = nlohmann::ordered_json::array(), end = begin, step = begin;
    for (const SliceAxis& axis : axes_) {
      begin.push_back(axis.begin ? nlohmann::ordered_json(*axis.begin) : nullptr);
      end.push_back(axis.end ? nlohmann::ordered_json(*axis.end) : nullptr);
      step.push_back(axis.step);
    }
    return {{"begin", begin}, {"end", end}, {"step", step}};
  }

  std::vector<AxisMap> axis_maps(const Shape& input) const override {
    return axis_by_axis(input, axes_.size(), [&](std::size_t i) { return slice_map(axes_[i], input[i]); });
  }

  LoweredState lower(Lowering& lowering, const LoweredState& input) const override {
    if (!goes_forward()) return PositionMapLayer::lower(lowering, input);
    try {
      // The window below knows less than the slice: the slice's own messages are better.
      static_cast<void>(axis_maps(input.shape));
    } catch (const ArgumentError& error) {
      lowering.reject(error.what());
    }
    Window window{.sizes = std::vector<Index>(axes_.size(), 1), .strides = {}, .padding = Padding::valid};
    for (const SliceAxis& axis : axes_) {
      window.strides.push_back(axis.step);
      window.begin.push_back(axis.begin.value_or(0));
      window.end.push_back(axis.end.value_or(-1));
    }
    return lowering.selection(input, window, position_map_stage(shared_from_this(), input.shape));
  }

 private:
  /// Whether the slice counts from the first position and steps forward, so that it is a strided window of one
  /// position, through which planes stay planes.
  [[nodiscard]] bool goes_forward() const {
    constexpr Index longest_step = Index{1} << 20;
    return std::all_of(axes_.begin(), axes_.end(), [](const SliceAxis& axis) {
      return axis.step > 0 && axis.step <= longest_step && axis.begin.value_or(0) >= 0 &&
             axis.end.value_or(0) >= 0;
    });
  }

  std::vector<SliceAxis> axes_;
};

class IndexLayer final : public PositionMapLayer {
 public:
  IndexLayer(Index axis, Index position) : axis_{axis}, position_{position} {
    if (axis < 0 || axis > 2) throw ArgumentError(fmt::format("index: axis must be 0, 1 or 2, got {}", axis));
  }

  std::string kind() const override { return "index"; }
  nlohmann::ordered_json fields() const override { return {{"axis", axis_}, {"position", position_}}; }

  std::vector<AxisMap> axis_maps(const Shape& input) const override {
    const auto axis = static_cast<std::size_t>(axis_);
    if (input.size() <= axis)
      throw ArgumentError(fmt::format("expected inputs with an axis {}, got {}", axis_, axes_text(input)));
    return axis_by_axis(input, input.size(), [&](std::size_t i) {
      return i == axis ? position_map(position_, input[i]) : identity_map(input[i]);
    });
  }

  Shape output_shape(const Shape& input) const override {
    Shape shape = PositionMap::output_shape(input);
    if (shape.size() > 1) shape.erase(shape.begin() + axis_);
    return shape;
  }

  // Flattening the only position that is left of a sequence makes a vector of it.
  LoweredState lower(Lowering& lowering, const LoweredState& input) const override {
    const LoweredState state = PositionMapLayer::lower(lowering, input);
    return input.shape.size() == 1 ? lowering.readout(state, ReadoutKind::flatten) : state;
  }

  finite::CounterpartPointer finite_counterpart() const override {
    return finite::position_map_counterpart(shared_from_this(), finite::OneAxisLeaves::vectors);
  }

 private:
  Index axis_;
  Index position_;
};

class Resize final : public PositionMapLayer {
 public:
  explicit Resize(ImageResizeOptions options) : options_{std::move(options)} {
    check_axis_count("image_resize", options_.size.size());
    for (const Index size : options_.size)
      if (size < 1 && size != -1)
        throw ArgumentError(fmt::format("image_resize: sizes must be positive, or -1, got {}", size));
    for (const Index size : options_.size)
      if (size > longest_axis)
        throw ArgumentError(
            fmt::format("image_resize: sizes must be at most {}, got {}", longest_axis, size));
  }

  std::string kind() const override { return "image_resize"; }
  nlohmann::ordered_json fields() const override {
    return {{"size", options_.size}, {"method", method_name()}, {"antialias", options_.antialias}};
  }

  std::vector<AxisMap> axis_maps(const Shape& input) const override {
    return axis_by_axis(input, options_.size.size(), [&](std::size_t i) {
      const Index size = options_.size[i] == -1 ? input[i] : options_.size[i];
      return resize_map(input[i], size, options_.method, options_.antialias);
    });
  }

 private:
  [[nodiscard]] const char* method_name() const {
    switch (options_.method) {
      case ResizeMethod::nearest:
        return "nearest";
      case ResizeMethod::linear:
        return "linear";
      case ResizeMethod::cubic:
        return "cubic";
    }
    return "";
  }

  ImageResizeOptions options_;
};

void check_matrix(const std::string& name, const Matrix<double>& matrix) {
  if (matrix.size() == 0)
    throw ArgumentError(
        fmt::format("positions_map: {} must have entries, got {} x {}", name, matrix.rows(), matrix.cols()));
  for (Index a = 0; a < matrix.rows(); ++a)
    for (Index i = 0; i < matrix.cols(); ++i)
      require_finite("positions_map", fmt::format("{}[{}][{}]", name, a, i), matrix(a, i));
}

class FlatMatrix final : public PositionMapLayer {
 public:
  FlatMatrix(const Matrix<double>& matrix, Shape shape)
      : matrix_{matrix}, map_{matrix_map(matrix)}, shape_{std::move(shape)} {
    check_matrix("matrix", matrix);
    if (shape_.empty()) return;
    check_axis_count("positions_map", shape_.size());
    const auto is_wrong = [](Index size) { return size < 1 || size > longest_axis; };
    if (std::any_of(shape_.begin(), shape_.end(), is_wrong) || position_count(shape_) != map_.rows())
      throw ArgumentError(
          fmt::format("positions_map: shape: expected sizes of {} positions (rows of the matrix), got {}",
                      map_.rows(), axes_text(shape_)));
  }

  std::string kind() const override { return "positions_map"; }
  nlohmann::ordered_json fields() const override {
    nlohmann::ordered_json fields = {{"matrix", json_rows(matrix_)}};
    if (!shape_.empty()) fields["shape"] = shape_;
    return fields;
  }

  std::vector<AxisMap> axis_maps(const Shape& input) const override {
    if (input.empty()) throw ArgumentError("expected inputs with positions, got vectors");
    if (position_count(input) != map_.columns)
      throw ArgumentError(fmt::format("expected inputs of {} positions (columns of the matrix), got {} ({})",
                                      map_.columns, position_count(input), axes_text(input)));
    return {map_};
  }

  Shape output_shape(const Shape& input) const override {
    const Shape flat = PositionMap::output_shape(input);
    return shape_.empty() ? flat : shape_;
  }

 private:
  Matrix<double> matrix_;
  AxisMap map_;
  Shape shape_;  ///< Empty if there is one axis after the map.
};

class AxisMatrices final : public PositionMapLayer {
 public:
  explicit AxisMatrices(std::vector<Matrix<double>> matrices) : matrices_{std::move(matrices)} {
    check_axis_count("positions_map", matrices_.size());
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      check_matrix(fmt::format("matrices[{}]", i), matrices_[i]);
      maps_.push_back(matrix_map(matrices_[i]));
    }
  }

  std::string kind() const override { return "positions_map"; }
  nlohmann::ordered_json fields() const override {
    auto matrices = nlohmann::ordered_json::array();
    for (const Matrix<double>& matrix : matrices_) matrices.push_back(json_rows(matrix));
    return {{"matrices", matrices}};
  }

  std::vector<AxisMap> axis_maps(const Shape& input) const override {
    return axis_by_axis(input, maps_.size(), [&](std::size_t i) {
      if (input[i] != maps_[i].columns)
        throw ArgumentError(
            fmt::format("expected {} positions (columns of the matrix), got {}", maps_[i].columns, input[i]));
      return maps_[i];
    });
  }

 private:
  std::vector<Matrix<double>> matrices_;
  std::vector<AxisMap> maps_;
};

/// Reads a list of integers or nulls.
std::vector<std::optional<Index>> read_optional_integers(KindFields& fields, const char* field) {
  std::vector<std::optional<Index>> list;
  if (!fields.has(field)) return list;
  const nlohmann::json& values = fields.reader(field).value(field);
  if (!values.is_array())
    fields.fail(field, "expected a list of integers or nulls, got " + shown_json(values));
  for (const nlohmann::json& value : values) {
    Index number = 0;
    if (!value.is_null() && !JsonKind<Index>::read(value, number))
      fields.fail(field, "expected a list of integers or nulls, got " + shown_json(values));
    list.push_back(value.is_null() ? std::nullopt : std::optional(number));
  }
  return list;
}

Layer read_slice(KindFields& fields) {
  const auto begin = read_optional_integers(fields, "begin"), end = read_optional_integers(fields, "end"),
             step = read_optional_integers(fields, "step");
  std::vector<SliceAxis> axes(std::max({begin.size(), end.size(), step.size()}));
  const auto check_count = [&](const char* field, std::size_t count) {
    if (count != 0 && count != axes.size())
      fields.fail(field, fmt::format("expected one entry an axis ({}), got {}", axes.size(), count));
  };
  check_count("begin", begin.size());
  check_count("end", end.size());
  check_count("step", step.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (!begin.empty()) axes[i].begin = begin[i];
    if (!end.empty()) axes[i].end = end[i];
    if (!step.empty()) axes[i].step = step[i].value_or(1);
  }
  return slice(std::move(axes));
}

Layer read_resize(KindFields& fields) {
  const std::string method = fields.word("method");
  return image_resize({.size = fields.integers("size"),
                       .method = method == "nearest"  ? ResizeMethod::nearest
                                 : method == "linear" ? ResizeMethod::linear
                                                      : ResizeMethod::cubic,
                       .antialias = fields.boolean("antialias")});
}

Layer read_positions_map(KindFields& fields) {
  FieldReader& reader = fields.reader("matrices");
  if (fields.has("matrix") == fields.has("matrices"))
    fields.fail(fields.has("matrix") ? "matrices" : "matrix", "expected either matrix or matrices");
  if (fields.has("matrix"))
    return positions_map(read_matrix_rows(reader, "matrix", reader.value("matrix")),
                         fields.integers("shape"));
  const nlohmann::json& list = reader.value("matrices");
  if (!list.is_array()) fields.fail("matrices", "expected a list of matrices, got " + shown_json(list));
  std::vector<Matrix<double>> matrices;
  for (const nlohmann::json& rows : list)
    matrices.push_back(read_matrix_rows(reader, fmt::format("matrices[{}]", matrices.size()), rows));
  return positions_map(std::move(matrices));
}

}  // namespace

Layer slice(std::vector<SliceAxis> axes) { return Layer(std::make_shared<Slice>(std::move(axes))); }

Layer index_position(Index axis, Index position) {
  return Layer(std::make_shared<IndexLayer>(axis, position));
}

Layer image_resize(const ImageResizeOptions& options) { return Layer(std::make_shared<Resize>(options)); }

Layer positions_map(const Matrix<double>& matrix, Shape shape) {
  return Layer(std::make_shared<FlatMatrix>(matrix, std::move(shape)));
}

Layer positions_map(std::vector<Matrix<double>> matrices) {
  return Layer(std::make_shared<AxisMatrices>(std::move(matrices)));
}

namespace {

KindField sliced(std::string name, std::string meaning) {
  return {.name = std::move(name),
          .type = FieldType::integers_null,
          .default_value = "null",
          .meaning = std::move(meaning)};
}

LayerKind map_kind(LayerKind kind) {
  kind.group = KindGroup::positions;
  kind.nngp = "M K M'^T, M the map of an input's positions";
  kind.ntk = "M T M'^T";
  kind.limits =
      "May follow anything; leaves channels as they were." + (kind.limits.empty() ? "" : " " + kind.limits);
  if (kind.source.empty()) kind.source = "docs/theory/kernel-recursion.md, section 2.3";
  return kind;
}

void add_parts(KindRows& rows) {
  rows.push_back(
      {map_kind({.name = "slice",
                 .fields = {sliced("begin",
                                   "one number or null per axis, as in Python's slices; an omitted list is "
                                   "all null, and one of the "
                                   "three is required"),
                            sliced("end", "as `begin`"), sliced("step", "as `begin`, not 0")},
                 .does = "The positions begin, begin + step, ... before end along every axis",
                 .cost = "that of a convolution with such strides where begins and ends count from the first "
                         "position, "
                         "else of positions_map",
                 .example = R"({"begin": [1], "end": [4]})"}),
       read_slice});
  rows.push_back(
      {map_kind(
           {.name = "index",
            .fields = {{.name = "axis",
                        .type = FieldType::integer,
                        .minimum = 0,
                        .maximum = 2,
                        .meaning = "0 is the first"},
                       {.name = "position",
                        .type = FieldType::integer,
                        .meaning = "negative: counted from the end"}},
            .does =
                "One position along an axis, which is gone after the layer; of sequences a readout of one "
                "token",
            .limits = "Every input must have the position.",
            .cost = "nothing is computed for other positions that only it would read",
            .example = R"({"axis": 0, "position": -1})"}),
       [](KindFields& fields) {
         return index_position(fields.integer("axis"), fields.integer("position"));
       }});
}

}  // namespace

void add_position_kinds(KindRows& rows) {
  add_parts(rows);
  rows.push_back(
      {map_kind({.name = "image_resize",
                 .fields = {{.name = "size",
                             .type = FieldType::integers,
                             .meaning = "positions >= 1 along each axis after the layer, -1 to leave it"},
                            {.name = "method",
                             .type = FieldType::text,
                             .default_value = R"("linear")",
                             .words = {"nearest", "linear", "cubic"},
                             .meaning = "'cubic' is Keys' kernel with a = -1/2"},
                            {.name = "antialias",
                             .type = FieldType::boolean,
                             .default_value = "true",
                             .meaning = "widens the interpolation where an axis shrinks"}},
                 .does = "Images, sequences or volumes resampled, as jax.image.resize does",
                 .cost = "d^2 times the width of the interpolation",
                 .source = "docs/theory/kernel-recursion.md, section 2.3; 'cubic': Keys 1981",
                 .example = R"({"size": [3]})"}),
       read_resize});
  rows.push_back(
      {map_kind(
           {.name = "positions_map",
            .fields = {{.name = "matrix",
                        .type = FieldType::matrix,
                        .default_value = "null",
                        .meaning = "[out, in] over the flattened positions; this or `matrices` is required"},
                       {.name = "shape",
                        .type = FieldType::integers,
                        .default_value = "null",
                        .minimum = 1,
                        .meaning =
                            "shape of the positions after the layer, with `matrix`; one axis if omitted"},
                       {.name = "matrices",
                        .type = FieldType::matrices,
                        .default_value = "null",
                        .meaning = "instead of `matrix`: one matrix [out, in] per axis",
                        .by_name = true}},
            .does = "Any linear map M of positions, every channel alike",
            .cost = "d^2 times the width of M's rows",
            .example = R"({"matrix": [[0.5, -1, 0.3, 0, 0.2], [0, 0.7, 1.1, -0.2, 0]]})"}),
       read_positions_map});
}

}  // namespace widelimit::layers
