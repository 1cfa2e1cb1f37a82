//===- DualBoundSweep.cpp - Messages between ops and tensors --------------===//

#include "DualBound.h"

using namespace llvm;
using namespace shardc;

/// Tensors of a class with less than this part of the members of another one
/// follow that one's messages, where ports are shared.
constexpr int minorPart = 4;
/// Sweeps before messages move on by themselves.
constexpr int numPlainSweeps = 3;

void DualBound::send(Port &port) {
  for (const Place &place : port.places)
    for (int user : place.users)
      values[place.value].bound.setCosts(user, port.message);
}

void DualBound::take(const Port &port, bool isExcess, LayoutCosts &taken) {
  int most = 0;
  for (const Place &place : port.places)
    most = std::max(most, classes->values[place.value].numMembers);
  taken.assign(port.layouts.size(), unreachable);
  LayoutCosts minor, marginal;
  for (const Place &place : port.places) {
    // The few tensors at the ends of many equal layers do not decide.
    bool isMinor = followsMajor && !isExcess &&
                   classes->values[place.value].numMembers * minorPart < most;
    if (isMinor && minor.empty())
      minor.assign(taken.size(), unreachable);
    LayoutCosts &least = isMinor ? minor : taken;
    TensorBound &bound = values[place.value].bound;
    bound.getMarginal(place.users.front(), marginal);
    double base = unreachable;
    for (size_t id = 0, end = marginal.size(); id < end; ++id) {
      marginal[id] += port.message[id];
      base = std::min(base, marginal[id]);
    }
    if (base == unreachable)
      continue;
    for (size_t id = 0, end = marginal.size(); id < end; ++id)
      least[id] = std::min(least[id], marginal[id] - base);
  }
  // Unless no other tensor can be there at all.
  for (size_t id = 0, end = minor.size(); id < end; ++id)
    if (taken[id] == unreachable)
      taken[id] = minor[id];
}

void DualBound::updateOp(int index, bool backward) {
  Op &op = ops[index];
  int numOn = 0, numBack = 0;
  LayoutCosts taken;
  // Take all that the tensors' prices differ by.
  for (Port &port : ports[index]) {
    if (!port.places.empty())
      port.leadsOn[backward] ? ++numOn : ++numBack;
    if (!port.isOpen())
      continue;
    take(port, /*isExcess=*/false, taken);
    for (auto [position, price] : llvm::zip_equal(port.positions, op.prices))
      price += taken[position];
    size_t count = 1;
    for (const Place &place : port.places)
      count = std::max(count, place.users.size());
    for (auto [cost, kept] : llvm::zip_equal(taken, port.message))
      kept = cost < unreachable ? kept - cost / count : unreachable;
    send(port);
  }
  if (numOn == 0)
    return;
  // Pass it on.
  double share = 1.0 / std::max(numOn, numBack);
  std::vector<double> given(op.prices.size(), 0);
  LayoutCosts best;
  for (Port &port : ports[index]) {
    if (!port.isOpen() || !port.leadsOn[backward])
      continue;
    best.assign(port.layouts.size(), unreachable);
    for (auto [position, price] : llvm::zip_equal(port.positions, op.prices))
      best[position] = std::min(best[position], price);
    for (auto [cost, kept] : llvm::zip_equal(best, port.message)) {
      kept = cost < unreachable ? kept + share * cost : unreachable;
      cost = cost < unreachable ? share * cost : 0;
    }
    for (auto [position, part] : llvm::zip_equal(port.positions, given))
      part += best[position];
    send(port);
  }
  for (auto [price, part] : llvm::zip_equal(op.prices, given))
    price -= part;
}

void DualBound::move(double factor) {
  for (auto [op, list] : llvm::zip_equal(ops, ports))
    for (Port &port : list) {
      if (!port.isOpen())
        continue;
      LayoutCosts moved = port.message;
      for (size_t id = 0, end = moved.size(); id < end; ++id)
        if (moved[id] < unreachable)
          moved[id] += factor * (port.message[id] - port.previous[id]);
      for (auto [position, price] : llvm::zip_equal(port.positions, op.prices))
        if (price < unreachable)
          price -= moved[position] - port.message[position];
      port.previous = std::move(port.message);
      port.message = std::move(moved);
      if (factor != 0)
        send(port);
    }
}

double DualBound::sweep() {
  if (++momentum > numPlainSweeps) {
    int step = momentum - numPlainSweeps;
    move(step / (step + 3.0));
    if (passMessages())
      return least;
    // That was too far.
    momentum = 0;
    move(-1);
  }
  move(0);
  if (!passMessages() && followsMajor) {
    // What few tensors lose is more by now than what many gain.
    followsMajor = false;
    move(-1);
    move(0);
    passMessages();
  }
  if (!isFirst)
    followsMajor = false;
  return least = getBound();
}

bool DualBound::passMessages() {
  int size = ops.size();
  for (int index = 0; index < size; ++index)
    updateOp(index, /*backward=*/false);
  for (int index = size - 1; index >= 0; --index)
    updateOp(index, /*backward=*/true);
  double bound = getBound();
  bool isRaised = bound > least;
  least = std::max(least, bound);
  return isRaised;
}

double DualBound::getOpBase(int index) const {
  const std::vector<double> &prices = ops[index].prices;
  if (prices.empty())
    return unreachable;
  return *std::min_element(prices.begin(), prices.end());
}

double DualBound::getBound() {
  double sum = 0;
  for (auto [index, op] : llvm::enumerate(classes->ops))
    sum += op.numMembers * getOpBase(index);
  for (auto [index, value] : llvm::enumerate(classes->values))
    sum += value.numMembers * getValueBase(index);
  return sum;
}
