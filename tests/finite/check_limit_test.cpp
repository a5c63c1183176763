#include "widelimit/finite/check_limit.hpp"

#include <doctest/doctest.h>

#include "finite/layer_zoo.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/numerics/activations.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::finite;
using namespace widelimit::layers;

LimitOptions full_options(const ZooLayer& subject) {
  LimitOptions options;
  options.widths = {128, 256, 512};
  options.shapes = {subject.shape};
  return options;
}

void check_passes(const ZooLayer& subject, const LimitOptions& options) {
  CAPTURE(subject.name);
  const LimitReport report = check_limit(subject.layer, options);
  MESSAGE(subject.name << "\n" << to_string(report));
  CHECK(report.passed());
}

TEST_CASE("layers converge to their limits at widths 128, 256, 512 [slow]") {
  for (const ZooLayer& subject : zoo_layers()) check_passes(subject, full_options(subject));
}

TEST_CASE("attention converges to its limits at widths 128, 256, 512 [slow]") {
  for (const ZooLayer& subject : zoo_attention()) check_passes(subject, full_options(subject));
}

}  // namespace
}  // namespace widelimit::testing
