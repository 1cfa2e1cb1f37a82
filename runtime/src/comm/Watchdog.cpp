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
  /// The activity, with what it is in and `more`, as the subject of a sentence.
  std::string describe(absl::string_view more = "") const;

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

std::string Watchdog::State::describe(absl::string_view more) const {
  std::string text = activity;
  if (std::string in = explain ? explain() : ""; !in.empty())
    absl::StrAppend(&text, ", in ", in);
  absl::StrAppend(&text, more);
  return text == activity ? text : text + ",";
}

absl::Status Watchdog::State::pass(absl::Duration time) {
  auto current = store ? store->currentWait() : std::nullopt;
  if (current && current->first != wait) {
    wait = current->first;
    waited = absl::ZeroDuration();
  }
  (current ? waited : spent) += time;
  // To find out that it is another process that makes no progress, and what
  // that one does, may take two further heartbeats.
  const absl::Duration most =
      options.deadline + (store ? 3 : 1) * options.heartbeat;
  if ((current ? std::max(spent, waited) : spent) > most)
    return absl::DeadlineExceededError(absl::StrCat(
        describe(current ? absl::StrCat(", waiting for rank ", current->second)
                         : ""),
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
