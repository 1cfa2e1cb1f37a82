//===- CheckReference.cpp - Against the unpartitioned program -------------===//
//
// The tolerance: two orders of summing L terms in f32 differ relatively by
// about sqrt(L) times the unit roundoff u = 2^-24 (Higham, "Accuracy and
// Stability of Numerical Algorithms", section 4.2, random rounding), L the
// longest reduction of the model: the batch or the widest layer. A step adds
// such an error to the parameters, and the next starts from it; forward,
// backward and update are some 8 reductions deep. Hence 8·sqrt(L)·u·(1 +
// steps), relative to the largest parameter and to the loss.
//
// A program that stores values in bf16 rounds some of them on one mesh and not
// on another: with u = 2^-9, one step's losses differ by some 8·u, of the
// greatest loss so far, since gradients have errors of that part of what they
// were when training began. So do gradients, and each step adds them up: by
// 8·u·sqrt(1 + steps), in the root of the mean square over all parameters.
// Adam divides a gradient by its own size, so that single parameters with small
// gradients go their own ways.
//
//===----------------------------------------------------------------------===//

#include "CheckReference.h"

#include "base/Convert.h"
#include "plan/PlanSpec.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cmath>

using namespace shardc::run;
using namespace shardc::rt;

absl::StatusOr<std::unique_ptr<ReferenceCheck>>
ReferenceCheck::create(Executor &tested, std::unique_ptr<Executor> reference,
                       double tolerance) {
  std::map<std::string, HostArray> initial;
  for (const TensorInfo &tensor : tested.plan().tensors()) {
    if (tensor.role != Role::Parameter && tensor.role != Role::State)
      continue;
    absl::StatusOr<HostArray> array = tested.getTensor(tensor.name);
    if (!array.ok())
      return array.status();
    if (absl::Status status = reference->setTensor(tensor.name, array->view());
        !status.ok())
      return status;
    if (tensor.role != Role::Parameter)
      continue;
    array = convert(*array, DType::F64);
    if (!array.ok())
      return array.status();
    initial.emplace(tensor.name, *std::move(array));
  }
  return std::unique_ptr<ReferenceCheck>(new ReferenceCheck(
      tested, std::move(reference), std::move(initial), tolerance));
}

/// Of what training changes parameters by in bf16 they may differ by this part,
/// both in the root of the mean square.
static constexpr double mostOfChange = 0.5;

/// Whether a program has values of bf16.
static bool usesBF16(const Plan &plan) {
  for (const ProgramSpec &program : plan.spec().programs)
    for (const BufferSpec &buffer : program.buffers)
      if (buffer.dtype == DType::BF16)
        return true;
  return false;
}

ReferenceCheck::ReferenceCheck(Executor &tested,
                               std::unique_ptr<Executor> reference,
                               std::map<std::string, HostArray> initial,
                               double tolerance)
    : tested(tested), reference(std::move(reference)),
      initial(std::move(initial)), tolerance(tolerance),
      isHalf(usesBF16(tested.plan())) {}

absl::Status ReferenceCheck::step(const Batch &batch) {
  absl::StatusOr<RunResult> expected = reference->step(batch.views());
  if (expected.ok())
    losses.push_back(expected->loss);
  return expected.status();
}

void ReferenceCheck::compare(const RunResult &result) {
  double expected = losses.front();
  losses.pop_front();
  ++steps;
  greatestLoss = std::max(greatestLoss, std::fabs(expected));
  double scale = isHalf ? greatestLoss : std::fabs(expected);
  double difference =
      std::fabs(result.loss - expected) / std::max(scale, 1e-30);
  if (result.loss != expected)
    bitEqual = false;
  // Also true for NaN.
  if (!(difference <= largestLossDifference)) {
    largestLossDifference = difference;
    stepOfLargest = steps;
  }
}

absl::StatusOr<bool> ReferenceCheck::finish(std::ostream &out) {
  int64_t longest = std::max<int64_t>(1, tested.plan().batchSize());
  double scale = 0, largest = 0;
  double squares = 0, squaredDifferences = 0, squaredChanges = 0;
  std::string where = "none";
  for (const TensorInfo &tensor : tested.plan().tensors()) {
    if (tensor.role != Role::Parameter)
      continue;
    for (int64_t size : tensor.shape)
      longest = std::max(longest, size);
    absl::StatusOr<HostArray> actual = tested.getTensor(tensor.name);
    absl::StatusOr<HostArray> expected = reference->getTensor(tensor.name);
    if (!actual.ok() || !expected.ok())
      return actual.ok() ? expected.status() : actual.status();
    if (actual->data != expected->data)
      bitEqual = false;
    actual = convert(*actual, DType::F64);
    expected = convert(*expected, DType::F64);
    if (!actual.ok() || !expected.ok())
      return actual.ok() ? expected.status() : actual.status();
    const HostArray &before = initial.at(tensor.name);
    for (int64_t i = 0; i < numElements(tensor.shape); ++i) {
      double value = expected->values<double>()[i];
      double difference = std::fabs(actual->values<double>()[i] - value);
      scale = std::max(scale, std::fabs(value));
      squares += value * value;
      squaredDifferences += difference * difference;
      double change = value - before.values<double>()[i];
      squaredChanges += change * change;
      if (!(difference <= largest)) {
        largest = difference;
        where = absl::StrCat(tensor.name, " element ", i);
      }
    }
  }
  double relative = scale > 0 ? largest / scale : largest;
  double allowed =
      8 * std::sqrt(double(longest)) * 0x1p-24 * (1 + double(steps));
  double allowedLoss = allowed;
  if (isHalf) {
    relative = std::sqrt(squares > 0 ? squaredDifferences / squares
                                     : squaredDifferences);
    allowedLoss = 8 * 0x1p-9;
    allowed = allowedLoss * std::sqrt(1 + double(steps));
  }
  if (tolerance > 0)
    allowed = allowedLoss = tolerance;
  // What differs by as much as was learnt was not learnt.
  bool isLearnt =
      !isHalf || tolerance > 0 ||
      squaredDifferences <= squaredChanges * (mostOfChange * mostOfChange);
  bool ok =
      largestLossDifference <= allowedLoss && relative <= allowed && isLearnt;
  const char *verdict = bitEqual ? "bit-equal" : ok ? "agrees" : "MISMATCH";
  if (isHalf)
    out << absl::StrFormat(
        "reference      %s over %d steps in bf16: losses differ by at most "
        "%.3g of the greatest (step %d), allowed %.3g; parameters by %.3g of "
        "their root mean square, allowed %.3g; by %.3g of what they changed, "
        "allowed %.3g\n",
        verdict, steps, largestLossDifference, stepOfLargest, allowedLoss,
        relative, allowed,
        squaredChanges > 0 ? std::sqrt(squaredDifferences / squaredChanges) : 0,
        mostOfChange);
  else
    out << absl::StrFormat(
        "reference      %s over %d steps: losses differ by at most %.3g "
        "(relative, step %d), parameters by %.3g of the largest (%s); allowed "
        "%.3g\n",
        verdict, steps, largestLossDifference, stepOfLargest, relative, where,
        allowed);
  return ok;
}
