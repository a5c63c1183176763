#pragma once

#include <Eigen/Core>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "widelimit/data/npy.hpp"

namespace widelimit::data {

/// An element type: NumPy's name, the code of .npy headers without byte order, and bytes.
struct NpyElement {
  NpyType type;
  std::string_view name;
  std::string_view code;
  std::size_t bytes;
};

// The order is that of NpyType, whose values are the indices here.
inline constexpr std::array<NpyElement, 13> npy_elements = {{{NpyType::boolean, "bool", "b1", 1},
                                                             {NpyType::int8, "int8", "i1", 1},
                                                             {NpyType::int16, "int16", "i2", 2},
                                                             {NpyType::int32, "int32", "i4", 4},
                                                             {NpyType::int64, "int64", "i8", 8},
                                                             {NpyType::uint8, "uint8", "u1", 1},
                                                             {NpyType::uint16, "uint16", "u2", 2},
                                                             {NpyType::uint32, "uint32", "u4", 4},
                                                             {NpyType::uint64, "uint64", "u8", 8},
                                                             {NpyType::float16, "float16", "f2", 2},
                                                             {NpyType::bfloat16, "bfloat16", "V2", 2},
                                                             {NpyType::float32, "float32", "f4", 4},
                                                             {NpyType::float64, "float64", "f8", 8}}};

inline const NpyElement& element_of(NpyType type) { return npy_elements.at(static_cast<std::size_t>(type)); }

/// Calls body(T{}) with the C++ type of an element; truth values are bytes, float16 is Eigen::half and
/// bfloat16 Eigen::bfloat16.
template <typename Body>
auto with_element_type(NpyType type, const Body& body) {
  switch (type) {
    case NpyType::int8:
      return body(std::int8_t{});
    case NpyType::int16:
      return body(std::int16_t{});
    case NpyType::int32:
      return body(std::int32_t{});
    case NpyType::int64:
      return body(std::int64_t{});
    case NpyType::boolean:
    case NpyType::uint8:
      return body(std::uint8_t{});
    case NpyType::uint16:
      return body(std::uint16_t{});
    case NpyType::uint32:
      return body(std::uint32_t{});
    case NpyType::uint64:
      return body(std::uint64_t{});
    case NpyType::float16:
      return body(Eigen::half{});
    case NpyType::bfloat16:
      return body(Eigen::bfloat16{});
    case NpyType::float32:
      return body(float{});
    case NpyType::float64:
      break;
  }
  return body(double{});
}

}  // namespace widelimit::data
