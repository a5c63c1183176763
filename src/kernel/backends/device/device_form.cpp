#include "kernel/backends/device/device_form.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <stdexcept>

#include "widelimit/device_error.hpp"

namespace widelimit {
namespace {

constexpr std::array<Index, 4> planes_side_by_side{1, 2, 4, most_side_by_side};

constexpr std::array<Index, 4> rows_of_item{1, 2, 4, 8};

/// What items are of all lanes: fewer than an eighth leave most of a plane to each.
constexpr std::array<Index, 4> parts_of_lanes{1, 2, 4, 8};

/// Times that differ by less are alike.
constexpr double alike = 1.03;

std::vector<Index> items_of(Index lanes) {
  std::vector<Index> items;
  for (const Index part : parts_of_lanes)
    if (lanes % part == 0) items.push_back(lanes / part);
  return items;
}

bool is_in_group(Index items, Index planes, std::size_t largest_group) {
  return static_cast<std::size_t>(items * planes) <= largest_group;
}

bool fits(const DeviceForm& form, const FormLimits& limits) {
  return (form.rows == 1 || limits.has_rows) && is_in_group(form.items, form.planes, limits.largest_group) &&
         limits.shares % form.planes == 0 &&
         static_cast<std::uint64_t>(form.planes) * limits.plane_bytes <= limits.local_memory;
}

/// The numbers of a range, as people read them.
template <typename Numbers>
std::string listed(const Numbers& numbers) {
  std::string text;
  for (const Index number : numbers) text += fmt::format("{}{}", text.empty() ? "" : ", ", number);
  return text;
}

[[noreturn]] void throw_bad_form(const std::string& text, const std::string& why) {
  throw DeviceError(fmt::format("device: {}=\"{}\": {}; an example is {}", form_variable, text, why,
                                to_string({.items = 64, .planes = 2, .unrolled = true})));
}

/// One of `choices`, by its text.
template <typename Choices>
Index number_of(const std::string& text, const std::string& name, const std::string& value,
                const Choices& choices) {
  Index number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() ||
      std::find(choices.begin(), choices.end(), number) == choices.end())
    throw_bad_form(text,
                   fmt::format("{} is one of {} on this device, not \"{}\"", name, listed(choices), value));
  return number;
}

void read_field(const std::string& text, const std::string& field, Index lanes, DeviceForm& form) {
  const std::size_t equals = std::min(field.find('='), field.size());
  const std::string name = field.substr(0, equals), value = field.substr(std::min(equals + 1, field.size()));
  if (name == "items") {
    form.items = number_of(text, name, value, items_of(lanes));
  } else if (name == "planes") {
    form.planes = number_of(text, name, value, planes_side_by_side);
  } else if (name == "rows") {
    form.rows = number_of(text, name, value, rows_of_item);
  } else if (name == "windows" && (value == "loops" || value == "unrolled")) {
    form.unrolled = value == "unrolled";
  } else {
    throw_bad_form(
        text,
        fmt::format("expected items=N, planes=N, rows=N, windows=loops or windows=unrolled, with commas "
                    "between them, not \"{}\"",
                    field));
  }
}

}  // namespace

std::string to_string(const DeviceForm& form) {
  return fmt::format("items={},planes={},windows={}{}", form.items, form.planes,
                     form.unrolled ? "unrolled" : "loops",
                     form.rows == 1 ? "" : fmt::format(",rows={}", form.rows));
}

std::string forced_form() {
  // No thread of the library sets variables of the environment.
  const char* text = std::getenv(form_variable);  // NOLINT(concurrency-mt-unsafe)
  return text == nullptr ? "" : text;
}

DeviceForm parse_device_form(const std::string& text, const DeviceForm& usual, Index lanes,
                             std::size_t largest_group) {
  DeviceForm form = usual;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    read_field(text, text.substr(begin, end - begin), lanes, form);
    begin = end + 1;
  }
  if (!is_in_group(form.items, form.planes, largest_group))
    throw_bad_form(text, fmt::format("{} work-items a group, and this device has no more than {}",
                                     form.items * form.planes, largest_group));
  return form;
}

DeviceForm fitting_form(const DeviceForm& wanted, const FormLimits& limits) {
  DeviceForm form = wanted;
  if (!limits.has_rows) form.rows = 1;
  while (form.planes > 1 && !fits(form, limits)) form.planes /= 2;
  return form;
}

std::vector<DeviceForm> device_forms(const FormLimits& limits) {
  std::vector<DeviceForm> forms;
  for (const Index rows : rows_of_item)
    for (const bool unrolled : {false, true})
      for (const Index planes : planes_side_by_side)
        for (const Index items : items_of(limits.lanes)) {
          const DeviceForm form{.items = items, .planes = planes, .unrolled = unrolled, .rows = rows};
          if (fits(form, limits)) forms.push_back(form);
        }
  return forms;
}

DeviceForm fastest_form(std::span<const FormTime> times) {
  if (times.empty()) throw std::invalid_argument("device: no form was timed");
  const auto least = std::min_element(
      times.begin(), times.end(), [](const FormTime& a, const FormTime& b) { return a.seconds < b.seconds; });
  return std::find_if(times.begin(), times.end(),
                      [&](const FormTime& time) { return time.seconds <= alike * least->seconds; })
      ->form;
}

DeviceForm search_form(const FormLimits& limits, const std::function<double(const DeviceForm&)>& seconds_of) {
  const std::vector<DeviceForm> all = device_forms(limits);
  std::vector<FormTime> timed;
  const auto time_of = [&](const DeviceForm& form) {
    const auto found =
        std::find_if(timed.begin(), timed.end(), [&](const FormTime& time) { return time.form == form; });
    return found != timed.end() ? *found : timed.emplace_back(FormTime{form, seconds_of(form)});
  };
  DeviceForm best = all.front();
  const auto choose = [&](const auto& differs_only_there) {
    std::vector<FormTime> times;
    for (const DeviceForm& form : all)
      if (differs_only_there(form)) times.push_back(time_of(form));
    best = fastest_form(times);
  };
  // Forms that differ in one property only from the best so far: each takes the others for given.
  const auto choose_by = [&](auto DeviceForm::*property) {
    const DeviceForm before = best;
    choose([&](DeviceForm form) {
      form.*property = before.*property;
      return form == before;
    });
  };
  choose_by(&DeviceForm::unrolled);
  choose_by(&DeviceForm::items);
  choose_by(&DeviceForm::planes);
  choose_by(&DeviceForm::rows);
  return best;
}

}  // namespace widelimit
