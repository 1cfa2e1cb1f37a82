//===- SimulateCommands.cpp - The time of ranks' commands -----------------===//

#include "shardc/PipelineSchedules/SimulateCommands.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>

using namespace shardc;

namespace {

using Kind = PipelineCommand::Kind;

/// A graph whose nodes are commands, of which those that communicate are their
/// issue alone, and the ends of communication.
class CommandGraph {
public:
  CommandGraph(llvm::ArrayRef<std::vector<PipelineCommand>> ranks,
               llvm::ArrayRef<std::vector<double>> seconds)
      : ranks(ranks) {
    for (const std::vector<PipelineCommand> &commands : ranks) {
      first.push_back(static_cast<int>(nodes.size()));
      nodes.resize(nodes.size() + commands.size());
    }
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      addEnds(rank);
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      addCommands(rank, seconds[rank]);
    for (auto [message, sides] : sidesOf)
      isComplete &= sides == 2;
  }

  std::optional<PipelineSimulation>
  run(llvm::ArrayRef<std::vector<double>> seconds) {
    PipelineSimulation result;
    for (const std::vector<double> &own : seconds) {
      result.tasks.emplace_back(own.size());
      result.order.emplace_back(own.size(), -1);
      result.busy.push_back(0);
    }
    // Kahn's algorithm (1962).
    std::vector<int> ready;
    for (size_t node = 0; node < nodes.size(); ++node)
      if (nodes[node].waitsFor == 0)
        ready.push_back(static_cast<int>(node));
    int numTasks = 0;
    for (size_t i = 0; i < ready.size(); ++i) {
      Node &node = nodes[ready[i]];
      double end = node.time + node.seconds;
      if (node.task >= 0) {
        result.tasks[node.rank][node.task] = {node.time, end};
        result.order[node.rank][node.task] = numTasks++;
        result.busy[node.rank] += node.seconds;
        result.makespan = std::max(result.makespan, end);
      }
      for (int next : node.successors) {
        nodes[next].time = std::max(nodes[next].time, end);
        if (--nodes[next].waitsFor == 0)
          ready.push_back(next);
      }
    }
    // A task without a command takes no time behind the one before it.
    for (auto [rank, order] : llvm::enumerate(result.order))
      for (size_t task = 0; task < order.size(); ++task)
        if (order[task] < 0) {
          double end = task > 0 ? result.tasks[rank][task - 1].end : 0;
          result.tasks[rank][task] = {end, end};
          order[task] = numTasks++;
          isComplete &= seconds[rank][task] == 0;
        }
    if (!isComplete || ready.size() < nodes.size())
      return std::nullopt;
    return result;
  }

private:
  struct Node {
    double time = 0, seconds = 0;
    /// The task that begins with it, on a rank; negative: none.
    int task = -1;
    size_t rank = 0;
    std::vector<int> successors;
    int waitsFor = 0;
  };

  static bool communicates(const PipelineCommand &command) {
    return command.kind != Kind::Work && command.kind != Kind::Wait;
  }

  void addEdge(int from, int to) {
    nodes[from].successors.push_back(to);
    ++nodes[to].waitsFor;
  }

  int addNode() {
    nodes.emplace_back();
    return static_cast<int>(nodes.size()) - 1;
  }

  void addEnds(size_t rank) {
    ends.emplace_back(ranks[rank].size(), -1);
    int numJoint = 0;
    for (auto [number, command] : llvm::enumerate(ranks[rank])) {
      int &end = ends[rank][number];
      if (command.kind == Kind::Send || command.kind == Kind::Receive) {
        auto [it, isNew] = messages.try_emplace(command.message, -1);
        if (isNew)
          it->second = addNode();
        end = it->second;
        ++sidesOf[command.message];
      } else if (command.kind == Kind::JointCollective) {
        auto [it, isNew] = joint.try_emplace(numJoint++, -1);
        if (isNew)
          it->second = addNode();
        end = it->second;
      } else if (communicates(command)) {
        end = addNode();
      }
    }
  }

  void addCommands(size_t rank, llvm::ArrayRef<double> seconds) {
    std::vector<bool> hasBegun(seconds.size());
    bool hasTask = false;
    int last = -1; // end on this rank
    for (auto [number, command] : llvm::enumerate(ranks[rank])) {
      int node = first[rank] + static_cast<int>(number);
      if (command.isInList && number > 0)
        addEdge(node - 1, node);
      for (int other : command.after)
        addEdge(ends[rank][other] >= 0 ? ends[rank][other]
                                       : first[rank] + other,
                node);
      if (int end = ends[rank][number]; end >= 0) {
        addEdge(node, end);
        if (last >= 0 && last != end)
          addEdge(last, end);
        last = end;
        if (hasTask)
          nodes[end].seconds = std::max(nodes[end].seconds, command.seconds);
      } else if (command.kind == Kind::Work && command.task >= 0 &&
                 !hasBegun[command.task]) {
        hasBegun[command.task] = hasTask = true;
        nodes[node].task = command.task;
        nodes[node].rank = rank;
        nodes[node].seconds = seconds[command.task];
      }
    }
  }

  llvm::ArrayRef<std::vector<PipelineCommand>> ranks;
  std::vector<Node> nodes;
  /// By rank the node of its command 0, and by command its end, or -1.
  std::vector<int> first;
  std::vector<std::vector<int>> ends;
  /// Ends by message and by the place among the joint collectives of a rank.
  std::map<int64_t, int> messages, sidesOf;
  std::map<int, int> joint;
  bool isComplete = true;
};

} // namespace

std::optional<PipelineSimulation>
shardc::simulateCommands(llvm::ArrayRef<std::vector<PipelineCommand>> ranks,
                         llvm::ArrayRef<std::vector<double>> seconds) {
  return CommandGraph(ranks, seconds).run(seconds);
}
