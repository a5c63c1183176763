#pragma once

#include <doctest/doctest.h>

#include <initializer_list>
#include <string>

namespace widelimit::testing {

/// The message of a graph's error holds each of these.
inline void check_graph_error(const std::string& message, std::initializer_list<const char*> parts) {
  CAPTURE(message);
  for (const char* part : parts) {
    CAPTURE(part);
    CHECK(message.find(part) != std::string::npos);
  }
}

}  // namespace widelimit::testing
