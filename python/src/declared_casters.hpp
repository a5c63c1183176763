#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <complex>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

// The compiler reads this before every file of the package. nanobind takes a type of the standard library whose
// caster was not included (nanobind/stl/...) for a class that somebody binds, compiles, and throws std::bad_cast when
// it is used. With the casters declared here, such a use is an error of the compiler.
namespace nanobind::detail {

template <>
struct type_caster<std::string>;
template <>
struct type_caster<std::string_view>;
template <>
struct type_caster<std::filesystem::path>;
template <typename Element, typename Allocator>
struct type_caster<std::vector<Element, Allocator>>;
template <typename Element, std::size_t size>
struct type_caster<std::array<Element, size>>;
template <typename Key, typename Value, typename Order, typename Allocator>
struct type_caster<std::map<Key, Value, Order, Allocator>>;
template <typename Key, typename Value, typename Hash, typename Equal, typename Allocator>
struct type_caster<std::unordered_map<Key, Value, Hash, Equal, Allocator>>;
template <typename Key, typename Order, typename Allocator>
struct type_caster<std::set<Key, Order, Allocator>>;
template <typename First, typename Second>
struct type_caster<std::pair<First, Second>>;
template <typename... Elements>
struct type_caster<std::tuple<Elements...>>;
template <typename... Choices>
struct type_caster<std::variant<Choices...>>;
template <typename Value>
struct type_caster<std::optional<Value>>;
template <typename Result, typename... Arguments>
struct type_caster<std::function<Result(Arguments...)>>;
template <typename Value>
struct type_caster<std::shared_ptr<Value>>;
template <typename Value, typename Deleter>
struct type_caster<std::unique_ptr<Value, Deleter>>;
template <typename Real>
struct type_caster<std::complex<Real>>;

}  // namespace nanobind::detail
