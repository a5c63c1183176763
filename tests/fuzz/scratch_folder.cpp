#include "scratch_folder.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <system_error>

#include "bounded_json.hpp"
#include "memory_file.hpp"

namespace widelimit::fuzz {

namespace fs = std::filesystem;

namespace {

/// Empty for bytes that are no JSON.
std::string bounded_text(Bytes bytes) {
  std::string text;
  expect_our_errors([&] { text = bounded_json(bytes).dump(); });
  return text;
}

}  // namespace

ScratchFolder::ScratchFolder() {
  const fs::path memory = "/dev/shm";
  const fs::path place = access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
  std::string name = (place / "widelimit-fuzz-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), name);
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

DamagedFolder::DamagedFolder(const std::function<void(const fs::path&)>& make)
    : folder_{scratch_.path() / "whole"} {
  make(folder_);
  for (const auto& entry : fs::recursive_directory_iterator(folder_))
    if (entry.is_regular_file()) files_.push_back(entry.path());
  std::ranges::sort(files_);
  if (files_.empty()) throw std::logic_error("a folder that is whole has files");
  for (const fs::path& file : files_) contents_.push_back(read_bytes(file));
}

const fs::path& DamagedFolder::with(Bytes bytes) {
  put_back();
  const Bytes choice = take(bytes, 1);
  replaced_ = choice.empty() ? 0 : choice[0] % files_.size();
  const std::string small = files_[replaced_].extension() == ".json" ? bounded_text(bytes) : std::string();
  if (small.empty())
    write_bytes(files_[replaced_], bytes);
  else
    write_bytes(files_[replaced_], {reinterpret_cast<const std::uint8_t*>(small.data()), small.size()});
  return folder_;
}

void DamagedFolder::put_back() { write_bytes(files_[replaced_], contents_[replaced_]); }

std::vector<std::uint8_t> read_bytes(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_bytes(const fs::path& file, Bytes bytes) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (!stream) throw std::logic_error(file.string() + ": cannot be written");
}

}  // namespace widelimit::fuzz
