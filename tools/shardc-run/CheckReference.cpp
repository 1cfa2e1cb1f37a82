//===- CheckReference.cpp - Comparison with the unpartitioned program -----===//
//
// Two runs that round differently drift apart, some exponentially. A run is
// therefore compared in segments, each of which both programs begin in the
// state of the tested one: the first five steps one by one, then segments that
// end at the powers of two.
//
// Limits for f32: two orders of a sum of L terms differ relatively by about
// sqrt(L) times the unit roundoff u = 2^-24 (Higham, "Accuracy and Stability of
// Numerical Algorithms", section 4.2, random rounding). L is the longest
// reduction of the model: the batch or the widest layer. A step adds such an
// error to the parameters, and the next step starts from it; forward, backward
// and update are some 8 reductions deep. Hence 8·sqrt(L)·u·(1 + steps),
// relative to the largest parameter and to the loss; and, in a segment of one
// step, relative to the change of each parameter and state.
//
// Limits for bf16: a program rounds some values on one mesh and not on another,
// with u = 2^-9. One step's losses differ by some 8·u of the greatest loss so
// far, since errors of gradients keep the scale of the gradients at the start
// of training. So do gradients, whose errors each step adds up: 8·u·sqrt(1 +
// steps), in the root mean square over all parameters, and half of the
// segment's change of them, since an error as large as the change means that
// nothing was learnt.
//
// Sensitive segments: where gradients are small beside their errors, Adam makes
// those as large as any update, and where training is unstable they grow. A
// segment beyond its limits is therefore run again by the reference, several
// times, with parameters and inputs perturbed by the size of rounding. The
// change of its results, times a factor, is the limit then.
//
// Replayed segments: over many steps rare events decide, such as a ReLU whose
// input is almost 0 and opens in one run alone. Perturbed runs need not meet
// the event that the tested run met. A segment beyond these limits, too, is
// therefore replayed: both programs take each of its steps from the state of
// the tested one, and each step is compared as a segment of its own. (Not in
// bf16, where a single step shows little of the learning.) Probabilities near 1
// round like all others, so errors of loss and gradients keep the scale of the
// start of training: the limits of a single step grow as the loss goes down.
//
//===----------------------------------------------------------------------===//

#include "CheckReference.h"

#include "plan/PlanSpec.h"
#include "train/Format.h"

#include "absl/strings/str_format.h"

#include <algorithm>
#include <cmath>

using namespace shardc::run;
using namespace shardc::rt;

/// Steps compared one by one.
static constexpr int64_t singleSteps = 5;
/// The most runs from a perturbed start, of a segment and of a single step,
/// which decides and is quick.
static constexpr int movedRuns = 3, movedRunsOfStep = 16;

/// The step at which the segment from `first` ends.
static int64_t endOfSegment(int64_t first) {
  if (first < singleSteps)
    return first + 1;
  int64_t end = 1;
  while (end <= first)
    end *= 2;
  return end;
}

/// Whether a program has values of bf16.
static bool usesBF16(const Plan &plan) {
  for (const PlanSpec &rank : plan.spec().ranks())
    for (const ProgramSpec &program : rank.programs)
      for (const BufferSpec &buffer : program.buffers)
        if (buffer.dtype == DType::BF16)
          return true;
  return false;
}

static bool isKept(const TensorInfo &tensor) {
  return tensor.role == Role::Parameter || tensor.role == Role::State;
}

/// Parameters and states.
static absl::StatusOr<ArrayMap> readState(const Executor &executor) {
  ArrayMap state;
  for (const TensorInfo &tensor : executor.plan().tensors()) {
    if (!isKept(tensor))
      continue;
    absl::StatusOr<HostArray> array = executor.getTensor(tensor.name);
    if (!array.ok())
      return array.status();
    state.emplace(tensor.name, *std::move(array));
  }
  return state;
}

uint64_t shardc::run::stateCopyBytes(const Plan &plan) {
  // The present state of both programs, a replayed step with its ends in both,
  // and its perturbed runs.
  constexpr uint64_t copies = 8;
  uint64_t bytes = 0;
  for (const TensorInfo &tensor : plan.tensors())
    if (isKept(tensor))
      bytes += numElements(tensor.shape) * byteSize(tensor.dtype);
  return copies * bytes;
}

static absl::Status writeState(Executor &executor, const ArrayMap &state) {
  for (const auto &[name, array] : state)
    if (absl::Status status = executor.setTensor(name, array.view());
        !status.ok())
      return status;
  return absl::OkStatus();
}

ReferenceCheck::ReferenceCheck(Executor &tested,
                               std::unique_ptr<Executor> reference,
                               double tolerance, BatchOfStep batchOfStep,
                               const TrainProgress &start)
    : tested(tested), reference(std::move(reference)), tolerance(tolerance),
      batchOfStep(std::move(batchOfStep)), stepsBefore(start.steps) {
  scales.greatestLoss = start.firstLoss;
  int64_t most = std::max<int64_t>(1, tested.plan().batchSize());
  for (const TensorInfo &tensor : tested.plan().tensors())
    if (tensor.role == Role::Parameter)
      for (int64_t size : tensor.shape)
        most = std::max(most, size);
  longest = static_cast<double>(most);
  result.isHalf = usesBF16(tested.plan());
  scales.byMeanSquare = result.isHalf;
}

absl::Status ReferenceCheck::step(const Batch &batch) {
  int64_t step = static_cast<int64_t>(expected.size());
  if (step > 0 && step == endOfSegment(firstStep))
    if (absl::Status status = endSegment(); !status.ok())
      return status;
  if (step == firstStep) {
    absl::StatusOr<ArrayMap> state = readState(tested);
    if (!state.ok())
      return state.status();
    start = *std::move(state);
    if (absl::Status status = writeState(*reference, start); !status.ok())
      return status;
  }
  absl::StatusOr<RunResult> ran = reference->step(batch.views());
  if (ran.ok())
    expected.push_back(ran->loss);
  return ran.status();
}

void ReferenceCheck::addLoss(double loss) { losses.push_back(loss); }

/// All steps of the segment have begun.
absl::Status ReferenceCheck::endSegment() {
  Segment segment;
  segment.firstStep = firstStep;
  segment.start = std::move(start);
  segment.expected.losses.assign(expected.begin() + firstStep, expected.end());
  firstStep = static_cast<int64_t>(expected.size());
  absl::StatusOr<ArrayMap> wanted = readState(*reference);
  absl::StatusOr<ArrayMap> found = readState(tested);
  if (!wanted.ok() || !found.ok())
    return wanted.ok() ? found.status() : wanted.status();
  segment.expected.state = *std::move(wanted);
  segment.actual.state = *std::move(found);
  ended.push_back(std::move(segment));
  return compareEnded();
}

absl::Status ReferenceCheck::compareEnded() {
  while (!ended.empty()) {
    Segment &segment = ended.front();
    size_t end = segment.firstStep + segment.expected.losses.size();
    if (losses.size() < end)
      return absl::OkStatus();
    segment.actual.losses.assign(losses.begin() + segment.firstStep,
                                 losses.begin() + end);
    if (absl::Status status = compare(segment); !status.ok())
      return status;
    ended.pop_front();
  }
  // While a run is in flight the tested program cannot step aside.
  while (!doubtful.empty() && tested.inFlight() == 0) {
    Segment segment = std::move(doubtful.front());
    doubtful.pop_front();
    if (absl::Status status = replay(std::move(segment)); !status.ok())
      return status;
  }
  return absl::OkStatus();
}

/// The limits of a segment, as far as they are known beforehand.
Distance ReferenceCheck::limitsOf(const Segment &segment) const {
  double steps = static_cast<double>(segment.expected.losses.size());
  Distance limits;
  limits.ofChange = INFINITY;
  if (tolerance > 0) {
    limits.loss = limits.parameters = tolerance;
    return limits;
  }
  if (result.isHalf) {
    limits.loss = 8 * 0x1p-9;
    limits.parameters = limits.loss * std::sqrt(1 + steps);
    limits.ofChange = 0.5;
    return limits;
  }
  constexpr double roundoff = 0x1p-24;
  limits.loss = limits.parameters =
      8 * std::sqrt(longest) * roundoff * (1 + steps);
  if (steps > 1)
    return limits;
  double loss = std::fabs(segment.expected.losses.front());
  double decline = std::max(1.0, scales.greatestLoss / scales.of(loss));
  limits.loss *= decline;
  limits.parameters *= decline;
  for (const auto &[name, after] : segment.expected.state)
    limits.tensors[name] =
        limits.parameters * rootMeanSquare(segment.start.at(name), after) +
        (isFloat(after.dtype) ? 2 * roundoff * rootMeanSquare(after) : 0);
  return limits;
}

/// Extends the limits of `comparison` by the distance of the reference from
/// itself when `segment.start` and its inputs are perturbed, until they hold.
absl::Status ReferenceCheck::measureSensitivity(const Segment &segment,
                                                Comparison &comparison) {
  // The reference's present state, restored below.
  absl::StatusOr<ArrayMap> now = readState(*reference);
  if (!now.ok())
    return now.status();
  double amount = result.isHalf ? 0x1p-9 : std::sqrt(longest) * 0x1p-24;
  // Rounding of bf16 is perturbed in full; that of sums in f32 is estimated.
  double factor = result.isHalf ? 2 : 8;
  uint64_t seed = 0;
  int runs = segment.expected.losses.size() == 1 ? movedRunsOfStep : movedRuns;
  for (int run = 0; run < runs && !comparison.excess.empty(); ++run) {
    ArrayMap moved = segment.start;
    for (auto &[name, array] : moved)
      if (tested.plan().findTensor(name)->role == Role::Parameter)
        array = moveByRounding(array, amount, ++seed);
    if (absl::Status status = writeState(*reference, moved); !status.ok())
      return status;
    RunSegment actual;
    for (size_t i = 0; i < segment.expected.losses.size(); ++i) {
      absl::StatusOr<Batch> batch = batchOfStep(
          stepsBefore + segment.firstStep + static_cast<int64_t>(i));
      if (!batch.ok())
        return batch.status();
      for (auto &[name, array] : batch->arrays)
        if (tested.plan().findTensor(name)->role == Role::Input)
          array = moveByRounding(array, amount, ++seed);
      absl::StatusOr<RunResult> ran = reference->step(batch->views());
      if (!ran.ok())
        return ran.status();
      actual.losses.push_back(ran->loss);
    }
    absl::StatusOr<ArrayMap> after = readState(*reference);
    if (!after.ok())
      return after.status();
    actual.state = *std::move(after);
    // The effect of the perturbation without the perturbation itself.
    for (auto &[name, array] : actual.state)
      if (isFloat(array.dtype))
        array = takeBack(array, segment.start.at(name), moved.at(name));
    comparison.limits.extend(compareSegments(tested.plan(), segment.start,
                                             segment.expected, actual, scales),
                             factor);
    comparison.excess = findExcess(comparison.distance, comparison.limits);
  }
  return writeState(*reference, *now);
}

/// The largest ratio of a number to its limit; 1: at a limit.
static double nearness(const Distance &distance, const Distance &limits) {
  double most = 0;
  for (auto [part, whole] : {std::pair(distance.loss, limits.loss),
                             std::pair(distance.parameters, limits.parameters),
                             std::pair(distance.ofChange, limits.ofChange)})
    if (part > 0 && std::isfinite(whole))
      most = std::max(most, part / whole);
  return most;
}

absl::Status ReferenceCheck::judge(const Segment &segment,
                                   Comparison &comparison) {
  comparison.distance = compareSegments(
      tested.plan(), segment.start, segment.expected, segment.actual, scales);
  comparison.limits = limitsOf(segment);
  comparison.excess = findExcess(comparison.distance, comparison.limits);
  using Verdict = ReferenceResult::Verdict;
  if (!comparison.distance.isBitEqual && result.verdict == Verdict::BitEqual)
    result.verdict = Verdict::Agrees;
  if (comparison.excess.empty() || tolerance > 0)
    return absl::OkStatus();
  comparison.isSensitive = true;
  return measureSensitivity(segment, comparison);
}

absl::Status ReferenceCheck::compare(Segment &segment) {
  for (double loss : segment.expected.losses)
    scales.greatestLoss = std::max(scales.greatestLoss, std::fabs(loss));
  Comparison comparison;
  if (absl::Status status = judge(segment, comparison); !status.ok())
    return status;
  ++result.segments;
  result.sensitiveSegments += comparison.isSensitive;
  bool canReplay = tolerance == 0 && !result.isHalf;
  if (comparison.excess.empty() || !canReplay ||
      segment.expected.losses.size() == 1) {
    record(segment, std::move(comparison));
    return absl::OkStatus();
  }
  segment.expected.state.clear();
  segment.actual.state.clear();
  doubtful.push_back(std::move(segment));
  ++result.replayedSegments;
  return absl::OkStatus();
}

/// Compares each step of a segment, which both programs take from the state of
/// the tested one.
absl::Status ReferenceCheck::replay(Segment segment) {
  absl::StatusOr<ArrayMap> testedNow = readState(tested);
  absl::StatusOr<ArrayMap> referenceNow = readState(*reference);
  if (!testedNow.ok() || !referenceNow.ok())
    return testedNow.ok() ? referenceNow.status() : testedNow.status();
  int64_t last =
      segment.firstStep + static_cast<int64_t>(segment.expected.losses.size());
  ArrayMap start = std::move(segment.start);
  if (absl::Status status = writeState(tested, start); !status.ok())
    return status;
  for (int64_t step = segment.firstStep; step < last; ++step) {
    Segment single;
    single.firstStep = step;
    single.start = std::move(start);
    if (absl::Status status = writeState(*reference, single.start);
        !status.ok())
      return status;
    absl::StatusOr<Batch> batch = batchOfStep(stepsBefore + step);
    if (!batch.ok())
      return batch.status();
    for (auto [executor, run] :
         {std::pair(&tested, &single.actual),
          std::pair(reference.get(), &single.expected)}) {
      absl::StatusOr<RunResult> ran = executor->step(batch->views());
      if (!ran.ok())
        return ran.status();
      run->losses.push_back(ran->loss);
      absl::StatusOr<ArrayMap> after = readState(*executor);
      if (!after.ok())
        return after.status();
      run->state = *std::move(after);
    }
    Comparison comparison;
    if (absl::Status status = judge(single, comparison); !status.ok())
      return status;
    bool differs = !comparison.excess.empty();
    record(single, std::move(comparison));
    if (differs)
      break;
    start = std::move(single.actual.state);
  }
  if (absl::Status status = writeState(*reference, *referenceNow); !status.ok())
    return status;
  return writeState(tested, *testedNow);
}

/// Keeps the comparison for the result if it is the first one that is beyond
/// its limits, or the nearest.
void ReferenceCheck::record(const Segment &segment, Comparison comparison) {
  using Verdict = ReferenceResult::Verdict;
  double near = nearness(comparison.distance, comparison.limits);
  bool isFirst =
      !comparison.excess.empty() && result.verdict != Verdict::Mismatch;
  if (!isFirst && (result.verdict == Verdict::Mismatch || near <= nearest))
    return;
  nearest = near;
  result.firstStep = stepsBefore + segment.firstStep + 1;
  result.lastStep = stepsBefore + segment.firstStep +
                    static_cast<int64_t>(segment.expected.losses.size());
  result.distance = std::move(comparison.distance);
  result.limits = std::move(comparison.limits);
  result.excess = std::move(comparison.excess);
  if (isFirst)
    result.verdict = Verdict::Mismatch;
}

absl::StatusOr<ReferenceResult> ReferenceCheck::finish() {
  result.steps = static_cast<int64_t>(losses.size());
  if (static_cast<int64_t>(expected.size()) > firstStep)
    if (absl::Status status = endSegment(); !status.ok())
      return status;
  if (absl::Status status = compareEnded(); !status.ok())
    return status;
  return result;
}

const char *shardc::run::toString(ReferenceResult::Verdict verdict) {
  switch (verdict) {
  case ReferenceResult::Verdict::BitEqual:
    return "bit-equal";
  case ReferenceResult::Verdict::Agrees:
    return "agrees";
  case ReferenceResult::Verdict::Mismatch:
    break;
  }
  return "MISMATCH";
}

void shardc::run::print(const ReferenceResult &result, std::ostream &out) {
  const Distance &distance = result.distance, &limits = result.limits;
  std::string text = absl::StrFormat(
      "%s over %d steps%s, in %d segments that begin in one state",
      toString(result.verdict), result.steps, result.isHalf ? " in bf16" : "",
      result.segments);
  if (result.verdict != ReferenceResult::Verdict::BitEqual) {
    absl::StrAppendFormat(
        &text,
        "; steps %d to %d %s: losses differ by %.3g (relative, step %d), "
        "allowed %.3g; parameters by %.3g of %s, allowed %.3g",
        result.firstStep, result.lastStep,
        result.excess.empty() ? "differ most" : "differ first", distance.loss,
        result.firstStep + distance.lossStep, limits.loss, distance.parameters,
        result.isHalf ? "their root mean square"
                      : "the largest (" + distance.where + ")",
        limits.parameters);
    if (std::isfinite(limits.ofChange))
      absl::StrAppendFormat(&text,
                            "; by %.3g of what they changed, allowed %.3g",
                            distance.ofChange, limits.ofChange);
    if (auto tensor = limits.tensors.find(result.excess);
        tensor != limits.tensors.end())
      absl::StrAppendFormat(
          &text, "; %s by %.3g in the root mean square, allowed %.3g",
          result.excess, distance.tensors.at(result.excess), tensor->second);
  }
  if (result.sensitiveSegments > 0)
    absl::StrAppendFormat(&text,
                          "; of %d segments, what may differ was measured by "
                          "runs whose starts are moved by rounding",
                          result.sensitiveSegments);
  if (result.replayedSegments > 0)
    absl::StrAppendFormat(&text, "; %d were compared again step by step",
                          result.replayedSegments);
  printField("reference", text, out);
}
