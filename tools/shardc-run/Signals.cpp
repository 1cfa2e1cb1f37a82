//===- Signals.cpp - Orderly ends on signals ------------------------------===//

#include "Signals.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <unistd.h>

using namespace shardc::run;

static constexpr int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
static std::atomic<int> firstSignal{0};
static struct sigaction before[std::size(handled)];

/// The signals that were ignored when the program began, by place in `handled`.
/// Read before main: the compiler, once it is opened, replaces the handlers of
/// some.
static const std::array<bool, std::size(handled)> ignoredAtStart = [] {
  std::array<bool, std::size(handled)> ignored = {};
  for (size_t i = 0; i < std::size(handled); ++i) {
    struct sigaction action;
    ignored[i] = sigaction(handled[i], nullptr, &action) == 0 &&
                 action.sa_handler == SIG_IGN;
  }
  return ignored;
}();

/// Calls only functions that are safe in a signal handler.
static void note(int signal) {
  int none = 0;
  if (firstSignal.compare_exchange_strong(none, signal)) {
    constexpr char text[] =
        "\nshardc-run: ending after this step; a second signal ends at once\n";
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
      return;
  } else if (signal != SIGPIPE) {
    // Delivered when this returns.
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

Signals::Signals() {
  firstSignal = 0;
  for (size_t i = 0; i < std::size(handled); ++i) {
    struct sigaction action = {};
    action.sa_handler = ignoredAtStart[i] ? SIG_IGN : note;
    // Reading and writing go on.
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(handled[i], &action, &before[i]);
  }
}

Signals::~Signals() {
  for (size_t i = 0; i < std::size(handled); ++i)
    sigaction(handled[i], &before[i], nullptr);
}

int Signals::noted() const { return firstSignal; }

absl::StatusOr<int> Agreement::ask() {
  if (agreed || !store)
    return agreed = agreed ? agreed : signals.noted();
  // No process may begin a step that another one does not.
  if (++timesAsked < nextExchange)
    return 0;
  // About once a second.
  absl::Time now = absl::Now();
  double seconds = absl::ToDoubleSeconds(now - lastExchange);
  int64_t perSecond = std::clamp<int64_t>(
      static_cast<int64_t>(interval / std::max(seconds, 1e-3)), 1, 1000);
  absl::StatusOr<std::vector<std::string>> all = store->gatherAll(
      "agreeing whether to stop",
      absl::StrCat(signals.noted(), ",", perSecond, ",", isDue() ? 1 : 0),
      deadline);
  if (!all.ok())
    return all.status();
  for (const std::string &told : *all)
    if (int signal = std::atoi(told.c_str()); signal && !agreed)
      agreed = signal;
  const std::string &first = all->front();
  interval = std::atoll(first.c_str() + first.find(',') + 1);
  isDueAgreed |= first.back() == '1';
  nextExchange = timesAsked + interval;
  lastExchange = now;
  return agreed;
}

bool Agreement::takeDue() {
  return store ? std::exchange(isDueAgreed, false) : isDue();
}

std::string shardc::run::signalName(int signal) {
  const char *name = sigabbrev_np(signal);
  return name ? std::string("SIG") + name : std::to_string(signal);
}
