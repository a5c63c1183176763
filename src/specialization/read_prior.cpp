#include "widelimit/specialization/read_prior.hpp"

#include "json/json_matrix.hpp"
#include "widelimit/network/field_reader.hpp"

namespace widelimit::specialization {

namespace {

Prior read_kind(FieldReader& fields) {
  const std::string kind = fields.choice("kind", {"flip2", "spikes", "gaussian", "discrete"});
  const auto value = [&](const char* field) {
    return JsonValue(fields.value(field), fields.path() + "." + field);
  };
  if (kind == "flip2") return Prior::flip2(fields.number("nu1"), fields.number("nu2"));
  if (kind == "spikes") return Prior::spikes(fields.integer("features"), fields.number("nu"));
  if (kind == "discrete") return Prior::discrete(value("points"), value("probs"));
  if (fields.has("variances")) return Prior::gaussian(value("variances"));
  if (!fields.has("features") && !fields.has("nu1") && !fields.has("nu2"))
    fields.fail("variances", "expected this field, or features, nu1 and nu2, got none");
  return Prior::gaussian(
      linear_variances(fields.integer("features"), fields.number("nu1"), fields.number("nu2")));
}

}  // namespace

Prior read_prior(const nlohmann::json& description, const std::string& path) {
  FieldReader fields(description, path);
  Prior prior = read_kind(fields);
  fields.finish();
  return prior;
}

}  // namespace widelimit::specialization
