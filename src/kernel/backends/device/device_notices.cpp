#include "kernel/backends/device/device_notices.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <functional>
#include <mutex>
#include <set>
#include <utility>

#include "widelimit/kernel/devices.hpp"

namespace widelimit {
namespace {

using Report = std::function<void(const std::string&)>;

struct Notices {
  std::mutex telling;
  Report report;
  std::set<std::string> told;
};

Notices& notices() {
  static Notices all;
  return all;
}

}  // namespace

void report_device_notices(Report report) {
  const std::scoped_lock lock(notices().telling);
  notices().report = std::move(report);
}

void notice_of_device(const std::string& notice) {
  Report report;
  {
    const std::scoped_lock lock(notices().telling);
    if (!notices().told.insert(notice).second) return;
    report = notices().report;
  }
  // Without the lock: a report may wait for a thread that has a notice of its own.
  if (report)
    report(notice);
  else
    fmt::print(stderr, "widelimit: warning: {}\n", notice);
}

}  // namespace widelimit
