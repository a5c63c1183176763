#pragma once

#include <string>

namespace widelimit {

/// Tells people what they should know although nothing fails, once a process: see report_device_notices().
void notice_of_device(const std::string& notice);

}  // namespace widelimit
