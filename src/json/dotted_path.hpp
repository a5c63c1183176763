#pragma once

#include <sstream>
#include <string>

namespace widelimit {

/// A JSON pointer, "/layers/0/weight_variance", as errors write paths: "layers[0].weight_variance".
inline std::string dotted_path(const std::string& pointer) {
  std::istringstream parts(pointer);
  std::string path, part;
  while (std::getline(parts, part, '/')) {
    if (part.empty()) continue;  // Before the first.
    const bool is_index = part.find_first_not_of("0123456789") == std::string::npos;
    path += is_index ? "[" + part + "]" : (path.empty() ? "" : ".") + part;
  }
  return path;
}

}  // namespace widelimit
