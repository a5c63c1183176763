#pragma once

#include <string>

#include "widelimit/network/window.hpp"

namespace widelimit::layers {

/// "same", "valid" or "circular".
inline std::string padding_name(Padding padding) {
  switch (padding) {
    case Padding::same:
      return "same";
    case Padding::valid:
      return "valid";
    case Padding::circular:
      return "circular";
  }
  return {};
}

inline Padding padding_from_name(const std::string& name) {
  if (name == "valid") return Padding::valid;
  return name == "circular" ? Padding::circular : Padding::same;
}

}  // namespace widelimit::layers
