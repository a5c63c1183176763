#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "widelimit/index.hpp"

namespace widelimit {

/// Planes side by side that forms have at most.
inline constexpr Index most_side_by_side = 8;

/// How work-groups evaluate the planes of a chain. All forms give the same bits: they add entries up in one order.
struct DeviceForm {
  Index items;            ///< Work-items that share a plane.
  Index planes = 1;       ///< Planes that a work-group evaluates side by side, each by items of its own.
  bool unrolled = false;  ///< Whether windows are written out position by position, or as loops.
  Index rows = 1;  ///< Of a column that an item has at once, with what their windows share in registers.

  friend bool operator==(const DeviceForm&, const DeviceForm&) = default;
};

/// What forms a device can have, and a plane of a chain.
struct FormLimits {
  Index lanes;                 ///< Sums of a plane that are added up in the end: items are a part of them.
  std::size_t largest_group;   ///< Work-items.
  std::uint64_t local_memory;  ///< Bytes of a work-group.
  std::size_t plane_bytes;     ///< Bytes that a plane takes of these.
  Index shares;                ///< Of a pair; planes that are evaluated side by side belong to one pair.
  bool has_rows =
      false;  ///< Whether all planes of the chain have the same rows, so that items can have several.
};

/// As forms are written: "items=64,planes=2,windows=unrolled" (or `loops`), and ",rows=4" unless it is 1.
[[nodiscard]] std::string to_string(const DeviceForm& form);

/// The variable of the environment that forces a form.
constexpr const char* form_variable = "WIDELIMIT_DEVICE_FORM";

/// What that variable holds; empty if nothing is forced.
[[nodiscard]] std::string forced_form();

/// Reads what to_string() writes; what is not named is `usual`'s. Throws DeviceError, naming form_variable, for other
/// texts, and for numbers that no candidate on this device has.
[[nodiscard]] DeviceForm parse_device_form(const std::string& text, const DeviceForm& usual, Index lanes,
                                           std::size_t largest_group);

/// The form with as many planes side by side as the limits leave room for, and no more than `wanted` has, and with one
/// row where the planes of the chain have others.
[[nodiscard]] DeviceForm fitting_form(const DeviceForm& wanted, const FormLimits& limits);

/// All forms that fit, the usual one (all lanes, one plane, loops) first.
[[nodiscard]] std::vector<DeviceForm> device_forms(const FormLimits& limits);

/// A form and the seconds that it took.
struct FormTime {
  DeviceForm form;
  double seconds;
};

/// The fastest form. Times within a few percent of the best are alike, and of these the first is taken: choices do not
/// change with what else a machine does. Throws std::invalid_argument if there is none.
[[nodiscard]] DeviceForm fastest_form(std::span<const FormTime> times);

/// The form that is the fastest by seconds_of(), found property by property: windows, then items, then planes,
/// then rows, each with the best of those before it. At most twelve forms are asked for, each once, the usual one
/// first: a compiler takes longer for each than its work does.
[[nodiscard]] DeviceForm search_form(const FormLimits& limits,
                                     const std::function<double(const DeviceForm&)>& seconds_of);

}  // namespace widelimit
