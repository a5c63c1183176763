#include "cli/report/png.hpp"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cli/report/html.hpp"
#include "widelimit/error.hpp"

namespace widelimit::cli {
namespace {

std::vector<png_byte> bytes_of(std::span<const float> values) {
  std::vector<png_byte> bytes;
  bytes.reserve(values.size());
  for (const float value : values)
    bytes.push_back(static_cast<png_byte>(std::lround(std::clamp(value, 0.0F, 1.0F) * 255.0F)));
  return bytes;
}

[[noreturn]] void fail(const png_image& image) {
  throw Error(fmt::format("report: libpng cannot write a picture: {}", image.message));
}

}  // namespace

std::string png_data_uri(std::span<const float> values, std::size_t height, std::size_t width) {
  const std::vector<png_byte> bytes = bytes_of(values);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(height);
  image.width = static_cast<png_uint_32>(width);
  image.format = values.size() == height * width ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  if (png_image_write_get_memory_size(image, size, 0, bytes.data(), 0, nullptr) == 0) fail(image);
  std::string file(size, '\0');
  if (png_image_write_to_memory(&image, file.data(), &size, 0, bytes.data(), 0, nullptr) == 0) fail(image);
  file.resize(size);
  return "data:image/png;base64," + base64(file);
}

}  // namespace widelimit::cli
