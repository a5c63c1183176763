#include "opencl/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <utility>
#include <vector>

#include "opencl/build_error.hpp"
#include "opencl/joined_source.hpp"
#include "opencl/pocl_cache.hpp"

namespace widelimit::opencl {

namespace {

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

std::atomic<std::uint64_t>& most_bytes_of_buffer() {
  static std::atomic<std::uint64_t> most = no_limit;
  return most;
}

}  // namespace

BufferLimit::BufferLimit(std::uint64_t most) { most_bytes_of_buffer() = most; }
BufferLimit::~BufferLimit() { most_bytes_of_buffer() = no_limit; }

Buffer::Buffer(cl_context context, std::size_t bytes) : bytes_{bytes} {
  cl_int code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  // A buffer of no bytes is not possible.
  if (bytes <= most_bytes_of_buffer())
    memory_ = {functions()->create_buffer(context, CL_MEM_READ_WRITE, bytes == 0 ? 1 : bytes, nullptr, &code),
               {functions()->release_buffer}};
  check(code, fmt::format("taking {} bytes of its memory", bytes));
}

Kernel::Kernel(cl_program program, const std::string& name) {
  cl_int code = CL_SUCCESS;
  kernel_ = {functions()->create_kernel(program, name.c_str(), &code), {functions()->release_kernel}};
  check(code, "making the kernel " + name);
}

void Kernel::set(cl_uint number, const Buffer& buffer) {
  cl_mem memory = buffer.get();
  check(functions()->set_argument(kernel_.get(), number, sizeof memory, &memory), "setting an argument");
}

Queue::Queue(cl_context context, cl_device_id device) {
  cl_int code = CL_SUCCESS;
  queue_ = {functions()->create_queue(context, device, 0, &code), {functions()->release_queue}};
  check(code, "making a queue");
}

void Queue::write(const Buffer& to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  check(functions()->enqueue_write(queue_.get(), to.get(), CL_TRUE, 0, bytes, from, 0, nullptr, nullptr),
        "copying to it");
}

void Queue::read(const Buffer& from, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  check(functions()->enqueue_read(queue_.get(), from.get(), CL_TRUE, 0, bytes, to, 0, nullptr, nullptr),
        "copying from it");
}

void Queue::run(const Kernel& kernel, std::size_t groups, std::size_t size) {
  if (groups == 0) return;
  const std::size_t global = groups * size;
  check(functions()->enqueue_kernel(queue_.get(), kernel.get(), 1, nullptr, &global, &size, 0, nullptr,
                                    nullptr),
        "running a kernel");
}

void Queue::finish() { check(functions()->finish(queue_.get()), "waiting for it"); }

HostMemory::HostMemory(cl_context context, cl_device_id device, std::size_t bytes) : bytes_{bytes} {
  cl_int code = CL_SUCCESS;
  queue_ = {functions()->create_queue(context, device, 0, &code), {functions()->release_queue}};
  check(code, "making a queue");
  memory_ = {functions()->create_buffer(context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                        bytes == 0 ? 1 : bytes, nullptr, &code),
             {functions()->release_buffer}};
  check(code, fmt::format("taking {} bytes to copy to", bytes));
  data_ = functions()->enqueue_map(queue_.get(), memory_.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                   bytes == 0 ? 1 : bytes, 0, nullptr, nullptr, &code);
  check(code, fmt::format("opening {} bytes to copy to", bytes));
}

HostMemory::~HostMemory() {
  if (data_ == nullptr || !may_release()) return;
  functions()->enqueue_unmap(queue_.get(), memory_.get(), data_, 0, nullptr, nullptr);
  functions()->finish(queue_.get());
}

Session::Session(Device device) : device_{std::move(device)} {
  cl_int code = CL_SUCCESS;
  context_ = {functions()->create_context(nullptr, 1, &device_.id, nullptr, nullptr, &code),
              {functions()->release_context}};
  check(code, "opening " + device_.name);
}

void Session::rethrow(const std::string& path, const DeviceError& error) const {
  const std::string message = error.what(), prefix = "device: ", cache = pocl_cache_remark(device_.platform);
  throw DeviceError(fmt::format("device: {}, at {}: {}{}", device_.name, path,
                                message.starts_with(prefix) ? message.substr(prefix.size()) : message,
                                message.find(cache) == std::string::npos ? cache : ""));
}

std::optional<std::uint64_t> Session::free_memory() const {
  // CL_DEVICE_GLOBAL_FREE_MEMORY_AMD of cl_amd_device_attribute_query: kilobytes in all, and in the largest piece.
  constexpr cl_device_info question = 0x4039;
  std::array<std::size_t, 2> kilobytes{};
  std::size_t size = 0;
  if (functions()->get_device_info(device_.id, question, sizeof kilobytes, kilobytes.data(), &size) !=
          CL_SUCCESS ||
      size < sizeof(std::size_t))
    return std::nullopt;
  return std::uint64_t{kilobytes[0]} * 1024;
}

Buffer Session::taken(std::size_t bytes, Queue& queue) const {
  Buffer made = buffer(bytes);
  const char zero = 0;
  queue.write(made, &zero, bytes == 0 ? 0 : 1);
  return made;
}

std::size_t Session::room_for_two(std::size_t wanted, std::size_t least) const {
  Queue own = queue();
  for (std::size_t bytes = wanted; bytes >= std::min(wanted, least); bytes /= 2) {
    try {
      const Buffer one = taken(bytes, own), other = taken(bytes, own);
      return bytes;
    } catch (const DeviceError&) {
      if (bytes == 0) throw;
    }
  }
  throw DeviceError(fmt::format(
      "device: {} has no room for two pieces of {} bytes now, other programs use its memory; wait "
      "for them, or choose the device cpu",
      device_.name, least));
}

std::pair<Owned<cl_program>, cl_int> Session::built(const std::string& source) {
  cl_int code = CL_SUCCESS;
  const char* text = source.c_str();
  Owned<cl_program> program{functions()->create_program(context_.get(), 1, &text, nullptr, &code),
                            {functions()->release_program}};
  check(code, "reading a program");
  const char* options = "-cl-std=CL1.2";
  code = functions()->build_program(program.get(), 1, &device_.id, options, nullptr, nullptr);
  ++programs_built_;
  return {std::move(program), code};
}

void Session::keep_few() {
  // A search over networks writes new ones all the time.
  constexpr std::size_t most = 1024;
  if (programs_.size() >= most) programs_.clear();
}

void Session::build_together(std::span<const std::string> sources) {
  static_cast<void>(functions());  // Throws in a forked process, in which nobody may ever unlock.
  const std::scoped_lock lock(building_);
  std::vector<std::string> fresh;
  for (const std::string& source : sources)
    if (!programs_.contains(source) && std::find(fresh.begin(), fresh.end(), source) == fresh.end())
      fresh.push_back(source);
  if (fresh.size() < 2) return;
  auto [program, code] = built(joined_source(fresh));
  if (code != CL_SUCCESS) return;
  const auto shared = std::make_shared<Owned<cl_program>>(std::move(program));
  keep_few();
  for (std::size_t number = 0; number < fresh.size(); ++number)
    programs_[fresh[number]] = {.program = shared, .number = number};
}

Kernel Session::kernel(const std::string& source, const std::string& name) {
  static_cast<void>(functions());  // Throws in a forked process, in which nobody may ever unlock.
  const std::scoped_lock lock(building_);
  auto found = programs_.find(source);
  if (found == programs_.end()) {
    auto [program, code] = built(source);
    if (code != CL_SUCCESS) throw_build_error(device_, program.get(), source, code);
    keep_few();
    Part part{.program = std::make_shared<Owned<cl_program>>(std::move(program)), .number = {}};
    found = programs_.emplace(source, std::move(part)).first;
  }
  const Part& part = found->second;
  return {part.program->get(), part.number ? joined_name(name, *part.number) : name};
}

}  // namespace widelimit::opencl
