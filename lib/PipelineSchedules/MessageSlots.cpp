//===- MessageSlots.cpp - Where the messages of tasks start ---------------===//

#include "shardc/PipelineSchedules/MessageSlots.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

using namespace shardc;

/// The indices of the messages, by the time at which they are sent.
static std::vector<int> getOrder(const PipelineSimulation &simulation,
                                 llvm::ArrayRef<PipelineMessage> messages) {
  auto getKey = [&](int index) {
    const PipelineMessage &message = messages[index];
    return std::make_tuple(simulation.tasks[message.from][message.producer].end,
                           simulation.order[message.from][message.producer],
                           index);
  };
  std::vector<int> order(messages.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int lhs, int rhs) { return getKey(lhs) < getKey(rhs); });
  return order;
}

/// By message the time by which it must have crossed: that of its consumer, or
/// of a message behind it on one of its ranks, which cannot begin before.
static std::vector<double>
getDeadlines(const PipelineSimulation &simulation, llvm::ArrayRef<int> order,
             llvm::ArrayRef<PipelineMessage> messages) {
  std::vector<double> deadlines(messages.size());
  std::vector<double> ofRank(simulation.tasks.size(), simulation.makespan);
  for (int index : llvm::reverse(order)) {
    const PipelineMessage &message = messages[index];
    const auto &tasks = simulation.tasks[message.to];
    auto consumer = static_cast<size_t>(message.consumer);
    double deadline =
        consumer < tasks.size() ? tasks[consumer].start : simulation.makespan;
    deadline = std::min({deadline, ofRank[message.from], ofRank[message.to]});
    deadlines[index] = ofRank[message.from] = ofRank[message.to] = deadline;
  }
  return deadlines;
}

/// Finds the slots at which the messages of `rank` start; `order` has all
/// messages.
static void placeStarts(const PipelineSimulation &simulation,
                        llvm::ArrayRef<double> deadlines,
                        llvm::ArrayRef<int> order, int rank,
                        std::vector<PipelineMessage> &messages) {
  /// The last slot before `time`.
  auto getSlot = [&](double time) {
    const std::vector<SimulatedTask> &tasks = simulation.tasks[rank];
    auto found = llvm::partition_point(
        tasks, [&](const SimulatedTask &task) { return task.end <= time; });
    return static_cast<int>(found - tasks.begin());
  };
  // Backwards: none may start behind one with a higher number.
  std::vector<int> latest;
  int bound = std::numeric_limits<int>::max();
  for (int index : llvm::reverse(order)) {
    if (messages[index].to == rank)
      bound = std::min(
          {bound, messages[index].consumer, getSlot(deadlines[index])});
    latest.push_back(bound);
  }
  int last = 0;
  for (int index : order) {
    PipelineMessage &message = messages[index];
    if (message.from == rank)
      last = message.sendStart = std::max(last, message.producer + 1);
    if (message.to == rank)
      last = message.receiveStart = std::max(
          last, std::min(std::max(0, message.consumer - 1), latest.back()));
    latest.pop_back();
  }
}

void shardc::placeMessages(const PipelineSimulation &simulation,
                           std::vector<PipelineMessage> &messages) {
  std::vector<int> order = getOrder(simulation, messages);
  for (size_t number = 0; number < order.size(); ++number)
    messages[order[number]].number = static_cast<int>(number);
  std::vector<double> deadlines = getDeadlines(simulation, order, messages);
  std::vector<std::vector<int>> ofRank(simulation.tasks.size());
  for (int index : order) {
    ofRank[messages[index].from].push_back(index);
    ofRank[messages[index].to].push_back(index);
  }
  for (size_t rank = 0; rank < ofRank.size(); ++rank)
    placeStarts(simulation, deadlines, ofRank[rank], static_cast<int>(rank),
                messages);
  // By rank the time at which its last message has crossed.
  std::vector<double> crossed(simulation.tasks.size(), 0);
  for (int index : order) {
    PipelineMessage &message = messages[index];
    auto getTime = [&](int rank, int slot) {
      return slot > 0 ? simulation.tasks[rank][slot - 1].end : 0;
    };
    double time = std::max({getTime(message.from, message.sendStart),
                            getTime(message.to, message.receiveStart),
                            crossed[message.from], crossed[message.to]});
    crossed[message.from] = crossed[message.to] = time;
    message.receiveEnd = message.consumer;
    const auto &here = simulation.tasks[message.from];
    auto end = static_cast<size_t>(message.sendStart);
    while (end < here.size() && here[end].start < time)
      ++end;
    message.sendEnd = static_cast<int>(end);
  }
}

RankSlots shardc::getSlots(llvm::ArrayRef<PipelineMessage> messages, int rank,
                           int tasks) {
  std::vector<int> order(messages.size());
  for (size_t index = 0; index < messages.size(); ++index)
    order[messages[index].number] = static_cast<int>(index);
  RankSlots slots;
  slots.starts.resize(tasks + 1);
  slots.ends.resize(tasks + 1);
  for (int index : order) {
    const PipelineMessage &message = messages[index];
    if (message.from == rank) {
      slots.starts[message.sendStart].push_back(index);
      slots.ends[message.sendEnd].push_back(index);
    } else if (message.to == rank) {
      slots.starts[message.receiveStart].push_back(index);
      slots.ends[message.receiveEnd].push_back(index);
    }
  }
  return slots;
}
