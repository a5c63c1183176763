// How a plan comes to its form: what devices do by themselves, what the environment asks for, and what is remembered.
#include "kernel/backends/device/form_choice.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/temporary_folder.hpp"
#include "kernel/backends/device/device_notes.hpp"
#include "support/environment_variable.hpp"
#include "support/error_message.hpp"
#include "widelimit/device_error.hpp"

namespace widelimit::testing::form_choice_test {
namespace {

const DeviceForm usual{.items = 64}, best{.items = 32, .planes = 4, .unrolled = true};
const FormKey key{"a card", "a platform", "1.2", "0123"};
constexpr Index many = 1'000'000;

opencl::Device device_of(bool is_processor) {
  opencl::Device device{};
  device.name = "a card";
  device.is_gpu = !is_processor;
  device.is_processor = is_processor;
  device.local_memory = 1 << 18;
  device.largest_group = 256;
  return device;
}

/// Trials of a device on which `best` is the fastest, by so many seconds a pair, and what they were asked.
struct Trials {
  double seconds = 1e-3;
  std::optional<DeviceForm> refused = {};
  std::vector<DeviceForm> tried = {}, measured = {};

  FormTrials functions() {
    const auto require = [this](const DeviceForm& form) {
      if (form == refused) throw DeviceError("device: too much for it");
    };
    return {[=, this](const DeviceForm& form) {
              tried.push_back(form);
              require(form);
              return seconds;
            },
            [=, this](const DeviceForm& form) {
              measured.push_back(form);
              require(form);
              return seconds * (1 + (form.items != best.items) + (form.planes != best.planes) +
                                (form.unrolled != best.unrolled));
            }};
  }
};

/// A machine of its own: no variable, and an empty cache.
struct Machine {
  TemporaryFolder folder;
  EnvironmentVariable cache{cache_variable, folder.path().string()};
  DeviceNotes notes;
};

/// A choice under a value of form_variable, settled by trials.
struct Settled {
  Trials trials;
  FormChoice choice;

  Settled(const std::optional<std::string>& value, Trials with, bool is_processor = false, Index pairs = many,
          bool keeps = true)
      : trials{std::move(with)}, choice(made(value, is_processor, pairs)) {
    choice.settle(key, keeps, trials.functions());
  }
  static FormChoice made(const std::optional<std::string>& value, bool is_processor, Index pairs) {
    const EnvironmentVariable form(form_variable, value);
    return FormChoice(device_of(is_processor), 64, pairs);
  }
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("cards are tuned by themselves, processors on request") {
  const Machine machine;
  for (const bool is_processor : {false, true}) {
    CHECK(Settled::made({}, is_processor, many).is_open() != is_processor);
    CHECK(Settled::made("", is_processor, many).is_open() != is_processor);
    CHECK(Settled::made("tuned", is_processor, many).is_open());
    CHECK(Settled::made("measured", is_processor, many).is_open());
    CHECK_FALSE(Settled::made("usual", is_processor, many).is_open());
    CHECK(Settled::made("usual", is_processor, many).form() == usual);
    CHECK(Settled::made("planes=2", is_processor, many).form() == DeviceForm{.items = 64, .planes = 2});
    CHECK(has(error_message<DeviceError>([&] { return Settled::made("fast", is_processor, many).form(); }),
              "WIDELIMIT_DEVICE_FORM=\"fast\""));
  }
}

TEST_CASE("the first run measures, and later ones remember") {
  const Machine machine;
  const Settled first({}, {});
  CHECK_FALSE(first.choice.is_open());
  CHECK(first.choice.form() == best);
  CHECK(has(first.choice.text(key), to_string(best) + " (measured)"));
  CHECK(first.trials.measured.front() == usual);
  CHECK(first.choice.times().size() == first.trials.measured.size());
  CHECK(first.choice.kept_in()->parent_path() == machine.folder.path());
  const Settled second({}, {});
  CHECK(second.choice.form() == best);
  CHECK(has(second.choice.text(key), to_string(best) + " (remembered)"));
  CHECK(second.trials.measured.empty());
  CHECK(second.trials.tried == std::vector<DeviceForm>{best});
  CHECK(has(Settled::made({}, false, many).text(key), to_string(best) + " (remembered)"));
  // "measured" asks again.
  const Settled third("measured", {});
  CHECK(third.trials.measured.size() == first.trials.measured.size());
  CHECK(has(Settled::made("measured", false, many).text(key), "measured on the first pairs"));
}

TEST_CASE("runs that are over sooner than the measurement keep the usual form, unless tuning is asked for") {
  const Machine machine;
  const Settled short_run({}, {}, false, 4999);
  CHECK(short_run.choice.form() == usual);
  CHECK(short_run.trials.tried == std::vector<DeviceForm>{usual});
  CHECK(has(short_run.choice.text(key), "(fixed)"));
  CHECK_FALSE(kept_form(key, std::vector<DeviceForm>{usual, best}));
  CHECK(Settled({}, {}, false, 5001).choice.form() == best);
  // A short one takes what is remembered.
  CHECK(Settled({}, {}, false, 1).choice.form() == best);
  const Machine other;
  CHECK(Settled("tuned", {}, true, 1).choice.form() == best);
}

TEST_CASE("forms that a device refuses are left out, and a remembered one is told and measured again") {
  Machine machine;
  const Settled without({}, {.refused = DeviceForm{.items = 32, .planes = 1, .unrolled = true}});
  CHECK(without.choice.form().items != 32);
  keep_form(key, best);
  const Settled refused({}, {.refused = best});
  CHECK(refused.choice.form() != best);
  CHECK_FALSE(refused.trials.measured.empty());
  const auto told = machine.notes.taken();
  REQUIRE(told.size() == 1);
  CHECK(has(told[0], "the remembered form " + to_string(best) + " is refused, so that it is measured again"));
  CHECK(kept_form(key, std::vector<DeviceForm>{refused.choice.form()}) == refused.choice.form());
}

TEST_CASE("an error of the usual form leaves the choice open") {
  const Machine machine;
  FormChoice choice = Settled::made("tuned", false, many);
  Trials failing{.refused = usual}, working;
  CHECK_THROWS_AS(choice.settle(key, true, failing.functions()), DeviceError);
  CHECK(choice.is_open());
  CHECK(choice.form() == usual);
  choice.settle(key, true, working.functions());
  CHECK(choice.form() == best);
}

TEST_CASE("what is measured on other inputs is not kept, and anew means whatever is forced") {
  const Machine machine;
  CHECK(Settled("tuned", {}, false, many, false).choice.form() == best);
  CHECK_FALSE(kept_form(key, std::vector<DeviceForm>{best}));
  FormChoice choice = Settled::made("planes=2", true, 1);
  choice.measure_anew();
  Trials trials;
  choice.settle(key, true, trials.functions());
  CHECK(choice.form() == best);
  CHECK(kept_form(key, std::vector<DeviceForm>{best}) == best);
}

}  // namespace
}  // namespace widelimit::testing::form_choice_test
