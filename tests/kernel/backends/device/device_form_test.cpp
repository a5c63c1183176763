// Forms in which work-groups evaluate planes: which there are, which is chosen from times, and that all give the same
// bits, those of the CPU within the error of devices.
#include "kernel/backends/device/device_form.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/temporary_folder.hpp"
#include "kernel/backends/device/device_comparison.hpp"
#include "kernel/backends/device/device_plan.hpp"
#include "kernel/run/make_gram_plan.hpp"
#include "support/environment_variable.hpp"
#include "support/error_message.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/device_error.hpp"
#include "widelimit/kernel/explain.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing::device_form_test {
namespace {

/// While it lives, the environment forces a form.
struct ForcedForm : EnvironmentVariable {
  explicit ForcedForm(const std::string& text) : EnvironmentVariable(form_variable, text) {}
  explicit ForcedForm(const DeviceForm& form) : ForcedForm(to_string(form)) {}
};

/// While it lives, forms are kept in an empty folder.
struct EmptyCache {
  TemporaryFolder folder;
  EnvironmentVariable variable{cache_variable, folder.path().string()};
};

/// Those of PoCL for planes that are small.
constexpr FormLimits on_pocl{
    .lanes = 64, .largest_group = 4096, .local_memory = 1 << 18, .plane_bytes = 1 << 12, .shares = 4};

struct NetworkCase {
  std::string name, layers;
  std::vector<Index> shape;  ///< With channels.
};

const std::string conv =
    R"({"layer": "conv", "filter": [3, 3], "weight_variance": 2, "bias_variance": 0.01}, {"layer": "relu"},)";
const std::string gap = R"({"layer": "global_average_pool"}, {"layer": "dense"})";

/// 63 planes are four shares, which do not have equally many.
const NetworkCase pooled{"convolutions", conv + conv + gap, {9, 7, 2}};

std::vector<NetworkCase> other_cases() {
  return {
      {"planes that are kept for a pooling",
       conv + R"({"layer": "average_pool", "window": [2, 2], "strides": [2, 2]},)" + conv + gap,
       {8, 8, 2}},
      {"strides, and windows within the border",
       R"({"layer": "conv", "filter": [3, 2], "strides": [2, 1]}, {"layer": "erf"},
          {"layer": "conv", "filter": [2, 3], "padding": "valid"}, {"layer": "relu"},)" +
           gap,
       {17, 9, 2}},
      {"a flattened image, a skip connection",
       R"({"layer": "conv", "filter": [3, 3]}, {"layer": "sum", "branches": [
            {"layers": [{"layer": "relu"}, {"layer": "conv", "filter": [3, 3]}]}, {"layers": []}]},
          {"layer": "relu"}, {"layer": "flatten"}, {"layer": "dense"})",
       {6, 5, 2}},
      {"a window of more positions than are written one by one",
       R"({"layer": "conv", "filter": [6, 6]}, {"layer": "relu"},)" + gap,
       {8, 8, 1}},
      {"one axis", R"({"layer": "conv", "filter": [4]}, {"layer": "abs"},)" + gap, {64, 2}},
  };
}

Network network_of(const NetworkCase& of) {
  return parse_network(R"({"widelimit": 1, "layers": [)" + of.layers + "]}");
}

Inputs<double> inputs_of(const NetworkCase& of, Index count) {
  std::vector<Index> shape = of.shape;
  shape.insert(shape.begin(), count);
  return Inputs<double>(xt::xarray<double>(xt::cast<double>(random_inputs<float>(3, shape))));
}

GramPlan plan_of(const NetworkCase& of) {
  const Shape shape(of.shape.begin(), of.shape.end() - 1);
  return make_plan(network_of(of), {{shape, "input 0 of x"}}, {of.shape.back(), 2, 2, 3}, sizeof(double),
                   on_device());
}

/// The sources of a pair of inputs.
std::vector<std::string> sources_of(const NetworkCase& of) {
  const GramPlan plan = plan_of(of);
  std::vector<std::string> sources;
  for (const DeviceStep& step : plan.device->pair(plan, plan.any_layout(), plan.any_layout()).steps)
    sources.push_back(step.source);
  return sources;
}

template <typename Scalar>
void check_forms(const NetworkCase& of, const std::vector<DeviceForm>& forms) {
  CAPTURE(of.name);
  const Network network = network_of(of);
  const Inputs<double> x = inputs_of(of, 3);
  const auto usual = gram(network, as<Scalar>(x), on_device());
  for (const DeviceForm& form : forms) {
    CAPTURE(to_string(form));
    const ForcedForm forced(form);
    const auto found = gram(network, as<Scalar>(x), on_device());
    CHECK(found.nngp == usual.nngp);
    CHECK(found.ntk == usual.ntk);
  }
}

TEST_CASE("DeviceForm: all that fit a device and a plane, the usual one first") {
  const std::vector<DeviceForm> forms = device_forms(on_pocl);
  CHECK(forms.front() == DeviceForm{.items = 64});
  CHECK(forms.size() == 24);  // 64, 32, 16 and 8 items; 1, 2 and 4 planes of four shares; loops or not.
  const auto has = [](const FormLimits& limits, const DeviceForm& form) {
    const auto all = device_forms(limits);
    return std::find(all.begin(), all.end(), form) != all.end();
  };
  const DeviceForm wide{.items = 64, .planes = 4, .unrolled = true};
  CHECK(has(on_pocl, wide));
  FormLimits small = on_pocl;
  small.largest_group = 128;
  CHECK_FALSE(has(small, wide));
  CHECK(has(small, {.items = 32, .planes = 4}));
  small = on_pocl;
  small.local_memory = 3 << 12;
  CHECK_FALSE(has(small, wide));
  CHECK(has(small, {.items = 64, .planes = 2}));
  CHECK(fitting_form(wide, small) == DeviceForm{.items = 64, .planes = 2, .unrolled = true});
  CHECK_FALSE(has(on_pocl, {.items = 64, .rows = 2}));
  CHECK(fitting_form({.items = 64, .rows = 8}, on_pocl) == DeviceForm{.items = 64});
  small = on_pocl;
  small.has_rows = true;
  CHECK(device_forms(small).size() == 4 * forms.size());  // 1, 2, 4 and 8 rows.
  CHECK(has(small, {.items = 64, .planes = 4, .unrolled = true, .rows = 8}));
  CHECK(fitting_form({.items = 64, .rows = 8}, small) == DeviceForm{.items = 64, .rows = 8});
  small = on_pocl;
  small.shares = 1;
  CHECK(fitting_form(wide, small) == DeviceForm{.items = 64, .planes = 1, .unrolled = true});
}

TEST_CASE("DeviceForm: texts of forms are read again, and others are errors that say what is expected") {
  const DeviceForm usual{.items = 64};
  FormLimits rows = on_pocl;
  rows.has_rows = true;
  for (const DeviceForm& form : device_forms(rows))
    CHECK(parse_device_form(to_string(form), usual, 64, 4096) == form);
  CHECK(parse_device_form("planes=2", usual, 64, 4096) == DeviceForm{.items = 64, .planes = 2});
  const auto fails = [&](const std::string& text, const std::string& with) {
    const std::string message =
        error_message<DeviceError>([&] { return parse_device_form(text, usual, 64, 128); });
    CAPTURE(message);
    CHECK(message.find("WIDELIMIT_DEVICE_FORM=\"" + text + "\"") != std::string::npos);
    CHECK(message.find(with) != std::string::npos);
  };
  fails("items=63", "items is one of 64, 32, 16, 8 on this device, not \"63\"");
  fails("planes=3", "planes is one of 1, 2, 4, 8");
  fails("planes=2x", "not \"2x\"");
  fails("rows=3", "rows is one of 1, 2, 4, 8");
  fails("windows=rolled", "windows=loops or windows=unrolled");
  fails("planes", "not \"\"");
  fails("items=64,", "expected items=N");
  fails("items=64,planes=4", "256 work-items a group, and this device has no more than 128");
}

TEST_CASE("DeviceForm: the fastest is chosen, and of those that are alike the first") {
  const DeviceForm one{.items = 32}, four{.items = 32, .planes = 4}, eight{.items = 32, .planes = 8};
  // Microseconds a pair on an H200 of a trial in which 32 items had a plane (conv-gap, 8 layers, 32 x 32), of work-
  // groups with 1, 4 and 8 of them side by side.
  const std::vector<FormTime> recorded{{one, 39e-6}, {four, 40e-6}, {eight, 25.5e-6}};
  CHECK(fastest_form(recorded) == eight);
  CHECK(fastest_form(std::vector<FormTime>{recorded[0], recorded[1]}) == one);
  // 40 is within three percent of 39.
  CHECK(fastest_form(std::vector<FormTime>{recorded[1], recorded[0]}) == four);
  CHECK_THROWS_AS(static_cast<void>(fastest_form({})), std::invalid_argument);
}

TEST_CASE("DeviceForm: a search finds the fastest property by property, and asks for a form once") {
  std::vector<DeviceForm> asked;
  const DeviceForm wanted{.items = 16, .planes = 4, .unrolled = true};
  const auto seconds_of = [&](const DeviceForm& form) {
    CHECK(std::find(asked.begin(), asked.end(), form) == asked.end());
    asked.push_back(form);
    return 1.0 + (form.items != wanted.items) + (form.planes != wanted.planes) +
           (form.unrolled != wanted.unrolled);
  };
  CHECK(search_form(on_pocl, seconds_of) == wanted);
  CHECK(asked.front() == DeviceForm{.items = 64});
  CHECK(asked.size() == 7);  // Windows 2, three more items, two more planes.
  FormLimits rows = on_pocl;
  rows.has_rows = true;
  asked.clear();
  CHECK(search_form(rows, seconds_of) == wanted);
  CHECK(asked.size() == 10);  // And three more rows.
  CHECK(search_form(on_pocl, [](const DeviceForm&) { return 1.0; }) == DeviceForm{.items = 64});
}

TEST_CASE("DeviceForm: a plan chooses once, by the steps of each form, and keeps the fastest") {
  const EmptyCache cache;
  const ForcedForm tuned(tuned_form);
  const GramPlan plan = plan_of(pooled);
  const DevicePlan& device = *plan.device;
  REQUIRE(device.chooses_form());
  const DevicePair& before = device.pair(plan, plan.any_layout(), plan.any_layout());
  const std::string source = before.steps.front().source;
  int timed = 0;
  const auto seconds_of = [&](const DevicePair& steps) {
    ++timed;
    const DeviceForm form = steps.steps.front().form.value();
    if (form.planes == 4) throw DeviceError("device: too much for it");
    return form.items == 32 && form.unrolled ? 1.0 : 2.0 - static_cast<double>(form.unrolled) / 2;
  };
  const StepTrials trials{seconds_of, seconds_of};
  device.choose_form(plan, plan.any_layout(), plan.any_layout(), trials);
  CHECK_FALSE(device.chooses_form());
  const DeviceForm best{.items = 32, .planes = 1, .unrolled = true};
  CHECK(device.form() == best);
  CHECK(device.pair(plan, plan.any_layout(), plan.any_layout()).steps.front().form == best);
  CHECK(before.steps.front().source == source);  // Others may still use it.
  const int once = timed;
  device.choose_form(plan, plan.any_layout(), plan.any_layout(), trials);
  CHECK(timed == once);
  // Another plan of this network remembers, whatever its weights are, and one of other sizes does not.
  timed = 0;
  NetworkCase again = pooled;
  again.layers.replace(again.layers.find("\"weight_variance\": 2"), 20, "\"weight_variance\": 1.7");
  const GramPlan next = plan_of(again);
  next.device->choose_form(next, next.any_layout(), next.any_layout(), trials);
  CHECK(timed == 1);
  CHECK(next.device->form() == best);
  NetworkCase other = pooled;
  other.shape = {9, 8, 2};
  const GramPlan measured = plan_of(other);
  measured.device->choose_form(measured, measured.any_layout(), measured.any_layout(), trials);
  CHECK(timed == 1 + once);
}

TEST_CASE("DeviceForm: a form that is measured, and then remembered, gives the same bits") {
  const EmptyCache cache;
  const Network network = network_of(pooled);
  const Inputs<double> x = inputs_of(pooled, 3);
  const auto usual = gram(network, as<float>(x), on_device());
  const auto explained = [&] { return explain(network, as<float>(x), on_device()).device; };
  CHECK(explained().find("planes by items=64,planes=1,windows=loops (fixed)") != std::string::npos);
  const ForcedForm tuned(tuned_form);
  CHECK(explained().find("measured on the first pairs") != std::string::npos);
  for (int run = 0; run < 2; ++run) {
    const auto found = gram(network, as<float>(x), on_device());
    CHECK(found.nngp == usual.nngp);
    CHECK(found.ntk == usual.ntk);
    CHECK(explained().find("(remembered)") != std::string::npos);
  }
}

TEST_CASE("DeviceForm: every form is a kernel of its own") {
  std::set<std::vector<std::string>> sources;
  FormLimits rows = on_pocl;
  rows.has_rows = true;
  const std::vector<DeviceForm> forms = device_forms(rows);
  for (const DeviceForm& form : forms) {
    const ForcedForm forced(form);
    sources.insert(sources_of(pooled));
  }
  CHECK(sources.size() == forms.size());
}

TEST_CASE("DeviceForm: all forms have the same bits, and agree with the CPU") {
  check_forms<double>(pooled, device_forms(on_pocl));
  const ForcedForm forced(DeviceForm{.items = 8, .planes = 4, .unrolled = true});
  check_against_cpu<double>(network_of(pooled), inputs_of(pooled, 3), inputs_of(pooled, 2), 1e-12);
  check_against_cpu<float>(network_of(pooled), inputs_of(pooled, 3), inputs_of(pooled, 2), 3e-6);
}

TEST_CASE("DeviceForm: forms of other chains, in float") {
  for (const NetworkCase& of : other_cases())
    check_forms<float>(of, {{.items = 64, .planes = 2},
                            {.items = 8, .planes = 4, .unrolled = true},
                            {.items = 64, .planes = 1, .unrolled = true},
                            {.items = 64, .rows = 4},
                            {.items = 16, .planes = 2, .unrolled = true, .rows = 2}});
}

TEST_CASE("DeviceForm: items with several rows have the bits of single entries") {
  // Nine rows are no multiple of any number of rows, and windows are even, odd, and longer than what an item has.
  check_forms<double>(pooled, {{.items = 64, .rows = 2},
                               {.items = 64, .unrolled = true, .rows = 2},
                               {.items = 32, .unrolled = true, .rows = 4},
                               {.items = 64, .rows = 8}});
  const std::vector<DeviceForm> forms{{.items = 8, .planes = 2, .rows = 4},
                                      {.items = 16, .planes = 4, .unrolled = true, .rows = 8}};
  const auto conv_of = [](int rows, int columns) {
    return R"({"layer": "conv", "filter": [)" + std::to_string(rows) + ", " + std::to_string(columns) +
           R"(], "weight_variance": 1.5, "bias_variance": 0.1}, {"layer": "erf"},)";
  };
  check_forms<float>({"even windows", conv_of(2, 4) + conv_of(4, 1) + gap, {9, 5, 1}}, forms);
  check_forms<float>({"windows of more rows than an item", conv_of(5, 2) + conv_of(9, 1) + gap, {9, 4, 1}},
                     forms);
  check_forms<float>({"three axes",
                      R"({"layer": "conv", "filter": [2, 3, 3]}, {"layer": "relu"},
                         {"layer": "conv", "filter": [3, 2, 1]}, {"layer": "abs"},)" +
                          gap,
                      {3, 5, 4, 1}},
                     forms);
  const ForcedForm forced(forms.back());
  check_against_cpu<double>(network_of(pooled), inputs_of(pooled, 3), inputs_of(pooled, 2), 1e-12);
}

TEST_CASE("DeviceForm: chains whose planes have other sizes, or one axis, have no rows") {
  const auto has_source_of_its_own = [](const NetworkCase& of) {
    const auto usual = sources_of(of);
    const ForcedForm forced(DeviceForm{.items = 64, .rows = 4});
    return sources_of(of) != usual;
  };
  CHECK(has_source_of_its_own(pooled));
  for (const NetworkCase& of : other_cases()) {
    CAPTURE(of.name);
    CHECK(has_source_of_its_own(of) ==
          (of.name != "strides, and windows within the border" && of.shape.size() > 2));
  }
}

TEST_CASE("DeviceForm: explain names the form, and a bad one is an error") {
  const Network network = network_of(pooled);
  const ForcedForm forced("planes=2");
  CHECK(explain(network, inputs_of(pooled, 2), on_device())
            .device.find("planes by items=64,planes=2,windows=loops (fixed by WIDELIMIT_DEVICE_FORM)") !=
        std::string::npos);
  const ForcedForm wrong("planes=5");
  CHECK(error_message<DeviceError>([&] {
          return gram(network, inputs_of(pooled, 2), on_device());
        }).find("WIDELIMIT_DEVICE_FORM") != std::string::npos);
}

}  // namespace
}  // namespace widelimit::testing::device_form_test
