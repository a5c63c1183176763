#pragma once

#include <string>

namespace widelimit::testing {

/// The message of the exception that body() throws; "no error" if it throws none. Other exceptions pass.
template <typename Exception, typename Body>
std::string error_message(const Body& body) {
  try {
    static_cast<void>(body());
  } catch (const Exception& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace widelimit::testing
