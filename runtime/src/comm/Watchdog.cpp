//===- Watchdog.cpp - A deadline for all that a process does --------------===//

#include "shardc-rt/Watchdog.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>

using namespace shardc::rt;

using Clock = std::chrono::steady_clock;

struct Watchdog::State {
  explicit State(WatchdogOptions given) : options(std::move(given)) {}

  void look();
  /// Notes the passing of `time`; what has expired by it.
  absl::Status pass(absl::Duration time);
  /// The activity, with what it is in.
  std::string describe() const;

  const WatchdogOptions options;
  std::mutex mutex; ///< Of all below.
  std::condition_variable changed;
  bool ends = false;
  Store *store = nullptr;
  std::string activity = "starting";
  std::function<std::string()> explain;
  /// Since the activity began, and since another process is known to have
  /// failed.
  absl::Duration spent, sinceFailure;
  /// In the wait for another process, of this number.
  absl::Duration waited;
  uint64_t wait = 0;
  std::thread thread;
};

Watchdog::Watchdog(WatchdogOptions options)
    : state(std::make_unique<State>(std::move(options))) {
  state->thread = std::thread([state = state.get()] { state->look(); });
}

Watchdog::~Watchdog() {
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    state->ends = true;
  }
  state->changed.notify_all();
  state->thread.join();
}

void Watchdog::watch(Store *store) {
  std::lock_guard<std::mutex> lock(state->mutex);
  state->store = store;
  if (store)
    store->setActivity(state->activity);
}

void Watchdog::explainBy(std::function<std::string()> explain) {
  std::lock_guard<std::mutex> lock(state->mutex);
  state->explain = std::move(explain);
}

void Watchdog::begin(absl::string_view activity) {
  std::lock_guard<std::mutex> lock(state->mutex);
  state->activity.assign(activity.data(), activity.size());
  state->spent = absl::ZeroDuration();
  if (state->store)
    state->store->setActivity(state->activity);
}

void Watchdog::noteProgress() {
  std::lock_guard<std::mutex> lock(state->mutex);
  state->spent = absl::ZeroDuration();
  if (state->store)
    state->store->noteProgress();
}

std::string Watchdog::State::describe() const {
  std::string in = explain ? explain() : "";
  return in.empty() ? activity : absl::StrCat(activity, ", in ", in, ",");
}

absl::Status Watchdog::State::pass(absl::Duration time) {
  auto current = store ? store->currentWait() : std::nullopt;
  if (current && current->first != wait) {
    wait = current->first;
    waited = absl::ZeroDuration();
  }
  (current ? waited : spent) += time;
  const absl::Duration most = options.deadline + options.heartbeat;
  // To find out whether the other one makes progress, and what it does, may
  // take two further heartbeats.
  if (spent > most || (current && waited > most + 2 * options.heartbeat))
    return absl::DeadlineExceededError(absl::StrCat(
        describe(),
        current ? absl::StrCat(", waiting for rank ", current->second, ",")
                : "",
        " has not ended after ", absl::FormatDuration(options.deadline)));
  absl::Status failure = store ? store->checkPeers() : absl::OkStatus();
  sinceFailure = failure.ok() ? absl::ZeroDuration() : sinceFailure + time;
  if (sinceFailure <= options.heartbeat)
    return absl::OkStatus();
  return absl::Status(
      failure.code(),
      absl::StrCat(failure.message(), "; here ", describe(), " has not ended"));
}

void Watchdog::State::look() {
  const absl::Duration pause =
      std::clamp(std::min(options.heartbeat, options.deadline) / 8,
                 absl::Milliseconds(1), absl::Seconds(1));
  std::unique_lock<std::mutex> lock(mutex);
  Clock::time_point last = Clock::now();
  while (!changed.wait_for(lock, absl::ToChronoNanoseconds(pause),
                           [&] { return ends; })) {
    Clock::time_point now = Clock::now();
    // Longer pauses are those of a process that was stopped.
    absl::Status expired =
        pass(std::min(absl::FromChrono(now - last), 2 * pause));
    last = now;
    if (expired.ok())
      continue;
    if (absl::IsDeadlineExceeded(expired) && store)
      store->fail(expired);
    lock.unlock();
    if (options.onExpired)
      options.onExpired(expired);
    return;
  }
}
