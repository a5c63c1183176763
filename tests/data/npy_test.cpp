#include "widelimit/data/npy.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <bit>
#include <csignal>
#include <cstring>
#include <limits>
#include <xtensor/xnpy.hpp>

#include "data/temporary_folder.hpp"
#include "widelimit/error.hpp"

using namespace widelimit::data;
using widelimit::DataError;

namespace {

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
  return text;
}

std::string npy(std::string_view dictionary, std::string_view values = "", int major = 1) {
  return std::string("\x93NUMPY") + static_cast<char>(major) + '\0' +
         little_endian(dictionary.size(), major == 1 ? 2 : 4) + std::string(dictionary) + std::string(values);
}

template <typename T>
bool same_bits(const xt::xarray<T>& a, const xt::xarray<T>& b) {
  return a.shape() == b.shape() &&
         (a.size() == 0 || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// The message of the DataError that reading `bytes` as doubles throws, without the file's name.
std::string read_error(std::string_view bytes) {
  const TemporaryFolder folder;
  const auto path = folder.write("x.npy", bytes);
  try {
    read_npy<double>(path);
  } catch (const DataError& error) {
    const std::string message = error.what(), prefix = path.string() + ": ";
    REQUIRE(message.starts_with(prefix));
    return message.substr(prefix.size());
  }
  return "no error";
}

}  // namespace

TEST_CASE_TEMPLATE("npy: every element type and shape comes back bit by bit", T, float, double, std::int8_t,
                   std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t,
                   std::uint64_t) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.npy";
  using Shape = typename xt::xarray<T>::shape_type;
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{5}, Shape{3, 0, 2}, Shape{2, 3, 4, 5}}) {
    auto array = xt::xarray<T>::from_shape(shape);
    for (std::size_t i = 0; i < array.size(); ++i) array.data()[i] = static_cast<T>(3 * i + 1);
    if (array.size() > 1) {
      array.data()[0] = std::numeric_limits<T>::lowest();
      array.data()[1] = std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::quiet_NaN()
                                                             : std::numeric_limits<T>::max();
    }
    write_npy(path, array);
    CHECK(same_bits(read_npy<T>(path), array));

    const NpyHeader header = read_npy_header(path);
    CHECK(header.type == npy_type_of<T>());
    CHECK(std::equal(header.shape.begin(), header.shape.end(), shape.begin(), shape.end()));
    CHECK(header.size() == array.size());
    CHECK(header.data_offset % 64 == 0);
    CHECK(std::filesystem::file_size(path) == header.data_offset + array.size() * size_of(header.type));
  }
}

TEST_CASE("npy: files agree with xtensor's own reader and writer") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.npy";
  const xt::xarray<double> array = {{1.5, -2.25, 1e-300}, {0.1, 1e300, 3}};
  write_npy(path, array);
  CHECK(same_bits(xt::xarray<double>(xt::load_npy<double>(path.string())), array));
  xt::dump_npy(path.string(), array);
  CHECK(same_bits(read_npy<double>(path), array));
}

TEST_CASE("npy: the bytes written are those NumPy writes") {
  const std::vector<std::size_t> shape = {3};
  const std::string header = npy_header_bytes(NpyType::float64, shape);
  const std::string text = "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }";
  const std::string magic("\x93NUMPY\x01\x00\x76\x00", 10);
  CHECK(header == magic + text + std::string(118 - text.size() - 1, ' ') + "\n");
}

TEST_CASE("npy: versions 2.0 and 3.0, other key orders, quotes and blanks are read") {
  const TemporaryFolder folder;
  const std::string values = little_endian(std::bit_cast<std::uint64_t>(2.5), 8);
  for (const int major : {1, 2, 3}) {
    const auto path = folder.write(
        "a.npy", npy("{\"shape\":( 1 ,1,) , \"fortran_order\":False,\"descr\":\"<f8\"}\n", values, major));
    const auto array = read_npy<double>(path);
    CHECK(array.dimension() == 2);
    CHECK(array.data()[0] == 2.5);
  }
}

TEST_CASE("npy: extents as Python 2 wrote its long integers") {
  const TemporaryFolder folder;
  const std::string values(3 * 8, '\0');
  const auto shape_of = [&](const char* shape) {
    const std::string dictionary =
        std::string("{'descr': '<f8', 'fortran_order': False, 'shape': ") + shape + "}";
    return read_npy_header(folder.write("x.npy", npy(dictionary, values))).shape;
  };
  CHECK(shape_of("(3L,)") == std::vector<std::size_t>{3});
  CHECK(shape_of("(1L, 3)") == std::vector<std::size_t>{1, 3});
  CHECK_THROWS_AS(static_cast<void>(shape_of("(3LL,)")), DataError);
  CHECK_THROWS_AS(static_cast<void>(shape_of("(L,)")), DataError);
}

TEST_CASE("npy: any element type converts to floating point") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.npy";
  write_npy(path, xt::xarray<std::uint8_t>{0, 7, 255});
  CHECK(read_npy_as<double>(path) == xt::xarray<double>{0, 7, 255});
  write_npy(path, xt::xarray<std::int32_t>{-5, 2147483647});
  CHECK(read_npy_as<double>(path) == xt::xarray<double>{-5, 2147483647});
  write_npy(path, xt::xarray<std::int64_t>{-9, std::int64_t{1} << 40});
  CHECK(read_npy_as<float>(path) == xt::xarray<float>{-9, 0x1p40F});
  write_npy(path, xt::xarray<float>{0.1F});
  CHECK(read_npy_as<double>(path) == xt::xarray<double>{static_cast<double>(0.1F)});
  write_npy(path, xt::xarray<double>{0.1, -std::numeric_limits<double>::infinity()});
  CHECK(read_npy_as<float>(path) == xt::xarray<float>{0.1F, -std::numeric_limits<float>::infinity()});

  write_npy(path, xt::xarray<double>{1, 1e39});
  CHECK_THROWS_WITH_AS(
      read_npy_as<float>(path),
      fmt::format("{}: offset 136: expected a value within the range of float32, found 1e+39", path.string())
          .c_str(),
      DataError);
  CHECK(read_npy_as<double>(path) == xt::xarray<double>{1, 1e39});
}

TEST_CASE("npy: another element type than asked for is an error") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.npy";
  write_npy(path, xt::xarray<float>{1, 2});
  CHECK_THROWS_WITH_AS(
      read_npy<double>(path),
      fmt::format("{}: expected elements of type float64, found float32", path.string()).c_str(), DataError);
}

TEST_CASE("npy: files that are no arrays or are cut short say where") {
  CHECK(read_error("") ==
        "offset 0: expected 8 bytes of magic and version of a .npy file, found 0 before the end of the file");
  CHECK(read_error("PK\x03\x04 zip archive") ==
        "offset 0: expected the magic bytes '\\x93NUMPY' of a .npy file, found 'PK\\x03\\x04 z': a zip "
        "archive; "
        "unpack it, and give the file that was in it");
  CHECK(read_error(npy("{}", "", 4)) == "offset 6: expected format version 1.0, 2.0 or 3.0, found 4.0");
  CHECK(read_error(std::string("\x93NUMPY\x01\x01  ", 10)) ==
        "offset 6: expected format version 1.0, 2.0 or 3.0, found 1.1");
  CHECK(read_error(std::string("\x93NUMPY\x02\x00  ", 10)) ==
        "offset 8: expected 4 bytes of header length, found 2 before the end of the file");
  CHECK(read_error(std::string("\x93NUMPY\x01\x00\xff\x00{'des", 15)) ==
        "offset 10: expected 255 bytes of header, found 5 before the end of the file");
}

TEST_CASE("npy: files shorter or longer than the header says") {
  const std::string dictionary = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
  const std::string expected = "expected 48 bytes of values for shape (2, 3) of '<f8' from offset 69, found ";
  CHECK(read_error(npy(dictionary, std::string(47, 'x'))) ==
        "offset 116: " + expected + "47 (the file is truncated)");
  CHECK(read_error(npy(dictionary, std::string(48, 'x'))) == "no error");
  CHECK(read_error(npy(dictionary, std::string(49, 'x'))) ==
        "offset 117: " + expected + "49 (the file is longer than its header says)");
  CHECK(
      read_error(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", "abc")) ==
      "offset 88: expected more than 2^63 bytes of values for shape (4294967296, 4294967296) of '<f8' from "
      "offset "
      "85, found 3 (the file is truncated)");
}

TEST_CASE("npy: unsupported content is named") {
  const auto with_type = [](std::string_view type) {
    return read_error(
        npy(fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': (1,)}}", type), "12345678"));
  };
  const std::string types = "bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32 or float64";
  for (const char* type : {"'<c16'", "'<f16'", "'|f8'", "'<U4'", "'<M8[s]'", "''", "'<'"}) {
    CAPTURE(type);
    CHECK(with_type(type).starts_with("offset 20: expected the element type " + types + ", found '"));
  }
  CHECK(with_type("'|O'").starts_with("offset 20: expected the element type " + types +
                                      " (pickled Python objects are not read), found '|O'"));
  // The code alone is shown, with what it stands for.
  CHECK(with_type("'<U4'").ends_with("found '<U4' (texts; give numbers, of classes integers)"));
  CHECK(with_type("'<M8[s]'").ends_with("found '<M8[s]' (dates or durations; give numbers)"));
  CHECK(with_type("'<c16'").ends_with("found '<c16' (complex numbers)"));
  CHECK(with_type("'|f8'").ends_with("found '|f8'"));
  CHECK(with_type("'\xff\x01'").ends_with("found '\\xff\\x01'"));
  CHECK(with_type("[('a', '<f8')]") ==
        "offset 20: expected the element type " + types +
            ", found a structured type; save its fields one by one, as columns of one array");
}

TEST_CASE("npy: every type and byte order that NumPy writes is read") {
  const TemporaryFolder folder;
  const auto read = [&](std::string_view type, std::string_view values) {
    const auto path = folder.write(
        "x.npy", npy(fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (2,)}}", type), values));
    return read_npy_as<double>(path);
  };
  using Bytes = std::string_view;
  const auto check = [&](std::string_view type, Bytes values, double first, double second) {
    CAPTURE(type);
    CHECK(read(type, values) == xt::xarray<double>{first, second});
  };
  using namespace std::string_view_literals;
  check("|b1", "\x01\x00"sv, 1, 0);
  for (const char* type : {"|i1", "<i1", ">i1", "=i1", "i1"}) check(type, "\x80\x7f"sv, -128, 127);
  check("|u1", "\xff\x01"sv, 255, 1);
  // bfloat16 as ml_dtypes writes it; NumPy's bytes of no type have no order.
  check("<V2", "\x80\x3f\x00\xc0"sv, 1, -2);
  check(">V2", "\x3f\x80\xc0\x00"sv, 1, -2);
  CHECK_THROWS_AS(read("|V2", "\x80\x3f\x00\xc0"sv), DataError);
  check("<i2", "\xfe\xff\x01\x02"sv, -2, 513);
  check(">i2", "\xff\xfe\x02\x01"sv, -2, 513);
  check("=u2", "\xfe\xff\x01\x02"sv, 65534, 513);
  check(">i4", "\xff\xff\xff\xfd\x00\x00\x01\x00"sv, -3, 256);
  check("<u4", "\xfd\xff\xff\xff\x00\x00\x01\x00"sv, 4294967293, 65536);
  check(">i8", "\xff\xff\xff\xff\xff\xff\xff\xfc\x00\x00\x00\x00\x00\x00\x02\x00"sv, -4, 512);
  check("<u8", "\x00\x00\x00\x00\x00\x00\x00\x80\x05\x00\x00\x00\x00\x00\x00\x00"sv, 0x1p63, 5);
  check("<f2", "\x00\x3c\x01\x80"sv, 1, -0x1p-24);  // 1 and the subnormal of smallest size
  check(">f2", "\x7b\xff\xfc\x00"sv, 65504, -std::numeric_limits<double>::infinity());
  check(">f4", "\x3f\xc0\x00\x00\xc0\x10\x00\x00"sv, 1.5, -2.25);
  check(">f8", "\x3f\xf8\x00\x00\x00\x00\x00\x00\xc0\x02\x00\x00\x00\x00\x00\x00"sv, 1.5, -2.25);
  CHECK_THROWS_WITH_AS(read("|b1", "\x01\x02"sv),
                       doctest::Contains("expected 0 or 1 as a truth value, found 2"), DataError);
}

TEST_CASE("npy: Fortran order is turned into row-major order, whatever the type") {
  const TemporaryFolder folder;
  const auto path =
      folder.write("x.npy", npy("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}",
                                std::string_view("\x00\x01\x00\x04\x00\x02\x00\x05\x00\x03\x00\x06", 12)));
  CHECK(read_npy_as<float>(path) == xt::xarray<float>{{1, 2, 3}, {4, 5, 6}});
  CHECK(read_npy<std::int16_t>(path) == xt::xarray<std::int16_t>{{1, 2, 3}, {4, 5, 6}});
  CHECK(read_npy_as<float>(path).data()[1] == 2);
  const auto cube =
      folder.write("y.npy", npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 1, 3)}", "abcdef"));
  CHECK(read_npy<std::uint8_t>(cube) == xt::xarray<std::uint8_t>{{{'a', 'c', 'e'}}, {{'b', 'd', 'f'}}});
}

TEST_CASE("npy: integers of any type are read as int64, floating-point numbers are not") {
  const TemporaryFolder folder;
  const auto path = folder.path() / "x.npy";
  write_npy(path, xt::xarray<std::uint16_t>{3, 65535});
  CHECK(read_npy_as<std::int64_t>(path) == xt::xarray<std::int64_t>{3, 65535});
  write_npy(path, xt::xarray<std::uint64_t>{3, std::uint64_t{1} << 63});
  CHECK_THROWS_WITH_AS(read_npy_as<std::int64_t>(path),
                       doctest::Contains("a value within the range of int64, found 9223372036854775808"),
                       DataError);
  write_npy(path, xt::xarray<float>{3});
  CHECK_THROWS_WITH_AS(read_npy_as<std::int64_t>(path),
                       (path.string() + ": expected integers, found elements of type float32").c_str(),
                       DataError);
}

TEST_CASE("npy: extents whose product overflows are refused beside an extent of 0") {
  CHECK(read_error(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 4611686018427387904, 8)}"))
            .find("expected more than 2^63 bytes of values") != std::string::npos);
  std::string many;
  for (int axis = 0; axis < 65; ++axis) many += "1,";
  CHECK(read_error(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (" + many + ")}", "12345678"))
            .find("expected at most 64 axes") != std::string::npos);
}

TEST_CASE("npy: malformed headers") {
  const auto error = [](std::string_view dictionary) { return read_error(npy(dictionary, "12345678")); };
  const auto with_shape = [&](std::string_view shape) {
    return error(fmt::format("{{'descr': '<f8', 'fortran_order': False, 'shape': {}}}", shape));
  };
  CHECK(with_shape("(1,)") == "no error");
  CHECK(with_shape("(1)") == "offset 63: expected ',' before the ')' of a shape with one extent, found '}'");
  CHECK(with_shape("(-1,)") == "offset 61: expected a whole number as an extent of the shape, found '-1,)}'");
  CHECK(with_shape("(,)") == "offset 61: expected a whole number as an extent of the shape, found ',)}'");
  CHECK(with_shape("(1 1)") == "offset 63: expected ',' or ')' after an extent, found '1)}'");
  CHECK(with_shape("[1]") == "offset 60: expected a shape beginning with '(', found '[1]}'");
  CHECK(with_shape("(18446744073709551616,)") ==
        "offset 61: expected an extent below 2^64, found '18446744073709551616,)}'");
  CHECK(with_shape("(1,") == "offset 63: expected a whole number as an extent of the shape, found '}'");
  CHECK(with_shape("(1,)} x") == "offset 66: expected blanks up to the end of the header, found 'x}'");
  CHECK(error("{'descr': '<f8', 'shape': (1,)}") ==
        "offset 10: expected a dictionary with the keys 'descr', 'fortran_order' and 'shape', found "
        "'{'descr': '<f8', 'shape': (1,)}'");
  CHECK(error("{'descr': '<f8', 'descr': '<f8'}") ==
        "offset 27: expected each of the keys 'descr', 'fortran_order' and 'shape' once and no other, found "
        "''descr': '<f8'}'");
  CHECK(error("{'descr' '<f8'}") == "offset 19: expected ':' after a key, found ''<f8'}'");
  CHECK(error("{'descr': '<f8' 'shape': (1,)}").starts_with("offset 26: expected ',' or '}' after an entry"));
  CHECK(error("{'descr") == "offset 11: expected a quoted key, found ''descr'");
  CHECK(error("descr") == "offset 10: expected a dictionary beginning with '{', found 'descr'");
  CHECK(error("{'fortran_order': 0}") == "offset 28: expected False or True, found '0}'");
}

TEST_CASE("npy: missing files and folders in place of files") {
  const TemporaryFolder folder;
  const auto missing = folder.path() / "missing.npy";
  CHECK_THROWS_WITH_AS(read_npy_header(missing), (missing.string() + ": expected a file, found none").c_str(),
                       DataError);
  CHECK_THROWS_WITH_AS(
      read_npy_header(folder.path()),
      (folder.path().string() + ": cannot be read: expected a regular file, found a folder, pipe or device")
          .c_str(),
      DataError);
}

TEST_CASE("npy: a file that cannot be written is an error and leaves what was there") {
  const TemporaryFolder folder;
  const xt::xarray<double> array = {1, 2};
  CHECK_THROWS_AS(write_npy(folder.path() / "no" / "a.npy", array), DataError);
  CHECK_THROWS_WITH_AS(write_npy(folder.path(), array),
                       (folder.path().string() +
                        ": cannot be written: expected a regular file or none, found a folder or device")
                           .c_str(),
                       DataError);

  // A file size limit stands for a full disk.
  const auto path = folder.path() / "a.npy";
  write_npy(path, array);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  getrlimit(RLIMIT_FSIZE, &old_limit);
  const rlimit small{4096, old_limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  std::string message;
  try {
    write_npy(path, xt::xarray<double>::from_shape({100'000}));
  } catch (const DataError& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  CHECK(message.starts_with(path.string() + ": cannot be written: failed to write a.npy."));
  CHECK(message.ends_with("File too large"));
  CHECK(same_bits(read_npy<double>(path), array));
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("npy: writing through a symbolic link keeps the link") {
  const TemporaryFolder folder;
  const auto target = folder.path() / "a.npy", link = folder.path() / "link.npy";
  write_npy(target, xt::xarray<double>{1});
  std::filesystem::create_symlink(target, link);
  write_npy(link, xt::xarray<double>{2});
  CHECK(std::filesystem::is_symlink(link));
  CHECK(read_npy<double>(target) == xt::xarray<double>{2});
}

TEST_CASE("npy: a shape too long for a version 1.0 header is an error") {
  const std::vector<std::size_t> shape(30'000, 1);
  CHECK_THROWS_AS(npy_header_bytes(NpyType::uint8, shape), widelimit::ArgumentError);
}

namespace {

/// A .safetensors file with this header.
std::string safetensors(std::string_view header, std::string_view values) {
  return little_endian(header.size(), 8) + std::string(header) + std::string(values);
}

/// What reading an array of a file with these bytes says behind the file's name.
std::string archive_error(std::string_view name, std::string_view bytes, std::string_view array) {
  const TemporaryFolder folder;
  const auto path = folder.write(name, bytes);
  try {
    read_npy_as<double>(array.empty() ? path : path / array);
  } catch (const DataError& error) {
    const std::string message = error.what(), prefix = path.string() + ": ";
    REQUIRE(message.starts_with(prefix));
    return message.substr(prefix.size());
  }
  return "no error";
}

}  // namespace

TEST_CASE("npy: arrays of .safetensors files are read by their names") {
  using namespace std::string_view_literals;
  const TemporaryFolder folder;
  const auto path = folder.write(
      "a.safetensors",
      safetensors(R"({"__metadata__":{"a":"b"},"x":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},)"
                  R"("y.z":{"dtype":"I16","shape":[2,1],"data_offsets":[4,8]}})",
                  "\x80\x3f\x00\xc0\x01\x00\xff\xff"sv));
  CHECK(read_npy_as<double>(path / "x") == xt::xarray<double>{1, -2});
  const auto column = read_npy_as<std::int64_t>(path / "y.z.npy");
  REQUIRE(column.size() == 2);
  CHECK(column(0, 0) == 1);
  CHECK(column(1, 0) == -1);
  CHECK(array_exists(path / "x.npy"));
  CHECK_FALSE(array_exists(path / "z"));
  CHECK(read_npy_header(path / "y.z").shape == std::vector<std::size_t>{2, 1});
}

TEST_CASE("npy: .safetensors files that lie are refused") {
  const auto described = [](std::string_view entry, std::string_view array = "x") {
    return archive_error("a.safetensors", safetensors(fmt::format("{{\"x\":{}}}", entry), "12345678"), array);
  };
  CHECK(described(R"({"dtype":"F64","shape":[1],"data_offsets":[0,8]})", "y") ==
        "expected an array 'y', found x");
  CHECK(described(R"({"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]})") ==
        "offset 8: expected the type BOOL, I8 to I64, U8 to U64, F16, BF16, F32 or F64 of the array 'x', "
        "found \"F8_E4M3\"");
  CHECK(described(R"({"dtype":"F64","shape":[1],"data_offsets":[8,16]})")
            .starts_with("offset 8: expected 'data_offsets' within 8 bytes of the array 'x', found [8,16]"));
  CHECK(described(R"({"dtype":"F64","shape":[-1],"data_offsets":[0,8]})") ==
        "offset 8: expected a shape of whole numbers of the array 'x', found [-1]");
  for (const char* shape : {"[2]", "[4294967296,4294967296]", "[18446744073709551615]", "[0]"}) {
    CAPTURE(shape);
    CHECK(described(fmt::format(R"({{"dtype":"F64","shape":{},"data_offsets":[0,8]}})", shape))
              .starts_with("offset 8: expected "));
  }
  CHECK(described("3").starts_with("offset 8: expected 'dtype', 'shape' and 'data_offsets' of the array"));
  for (const std::string& bytes :
       {std::string(), std::string("1234567"), little_endian(1, 8),
        little_endian(std::uint64_t{1} << 62, 8) + "{}", little_endian(2, 8) + "[]",
        little_endian(2, 8) + "{{", little_endian(2, 8) + "{}"}) {
    CAPTURE(bytes);
    CHECK(archive_error("a.safetensors", bytes, "x") != "no error");
    CHECK(archive_error("a.npz", bytes, "x") != "no error");
  }
}
