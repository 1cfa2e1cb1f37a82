//===- CheckPipeline.cpp - Whether the ranks of a pipeline fit ------------===//

#include "plan/CheckPipeline.h"

#include "plan/Accesses.h"

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>

using namespace shardc::rt;

template <typename... Args>
static absl::Status badPipeline(const Args &...args) {
  return absl::DataLossError(absl::StrCat(args...));
}

namespace {

/// The joint graph of one program.
class JointGraph {
public:
  JointGraph(const PlanSpec &plan, size_t program)
      : plan(plan), number(program) {}

  absl::StatusOr<PipelineOrder> order(const PipelineTimes &times);

private:
  template <typename... Args>
  absl::Status bad(const Args &...args) const {
    return badPipeline("program \"", program(0).name, "\": ", args...);
  }

  const ProgramSpec &program(int rank) const {
    return plan.ranks()[rank].programs[number];
  }
  int numRanks() const { return plan.ranks().size(); }
  const Command &at(RankCommand place) const {
    return program(place.rank).commands[place.command];
  }
  uint32_t nodeOf(RankCommand place) const {
    return first[place.rank] + place.command;
  }
  bool isEnd(uint32_t node) const { return node >= first.back(); }
  /// Of a node that is no end.
  RankCommand placeOf(uint32_t node) const;
  /// Whether the command does more than to start communication or wait for it.
  bool isWork(RankCommand place) const {
    return !isCommunication(at(place)) &&
           !std::holds_alternative<CollectiveWaitCommand>(at(place).operation);
  }

  absl::Status findMessages();
  absl::Status checkMessage(uint32_t message) const;
  absl::Status findJointCollectives();
  void pairMessages();
  bool mayStartTogether(RankCommand first, RankCommand second) const;
  void addEdges();
  void addEdgesOfList(int rank);
  void addEdgesOfStreams(int rank);
  void addEdge(uint32_t from, uint32_t to) {
    successors[from].push_back(to);
    ++waitsFor[to];
  }
  std::vector<double> durations(const PipelineTimes &times) const;
  absl::Status follow(const PipelineTimes &times, PipelineOrder &order);
  absl::Status describeCycle() const;
  std::string describe(RankCommand place) const;

  const PlanSpec &plan;
  size_t number;
  /// By rank, the node of its command 0; then the first end.
  std::vector<uint32_t> first;
  /// The ends and their commands: messages, then joint collectives, then the
  /// others.
  std::vector<PipelineStep> ends;
  size_t numMessages = 0, numPairs = 0, numJoint = 0;
  /// By node that starts communication, its end; 0 for others.
  std::vector<uint32_t> endOf;
  std::vector<std::vector<uint32_t>> successors;
  /// By node, the number of those before it that have not run.
  std::vector<uint32_t> waitsFor;
};

} // namespace

RankCommand JointGraph::placeOf(uint32_t node) const {
  int rank =
      std::upper_bound(first.begin(), first.end(), node) - first.begin() - 1;
  return {rank, node - first[rank]};
}

std::string JointGraph::describe(RankCommand place) const {
  const Command &command = at(place);
  std::string text =
      absl::StrCat("command ", place.command, " of pipeline rank ", place.rank,
                   " (", nameOf(command));
  if (auto *wait = std::get_if<CollectiveWaitCommand>(&command.operation))
    absl::StrAppend(&text, " for command ", wait->start, ", ",
                    nameOf(program(place.rank).commands[wait->start]));
  if (auto *send = std::get_if<SendCommand>(&command.operation))
    absl::StrAppend(&text, " of message ", send->message);
  if (auto *receive = std::get_if<ReceiveCommand>(&command.operation))
    absl::StrAppend(&text, " of message ", receive->message);
  if (command.task >= 0) {
    const TaskSpec &task = program(place.rank).tasks[command.task];
    absl::StrAppend(&text, ", task ", task.stage, toString(task.kind),
                    task.microbatch);
  }
  if (!command.source.empty())
    absl::StrAppend(&text, ", ", command.source);
  return text + ")";
}

/// Pairs sends with receives; message m gets end m.
absl::Status JointGraph::findMessages() {
  std::map<uint32_t, PipelineStep> sends, receives;
  for (int rank = 0; rank < numRanks(); ++rank)
    for (uint32_t i = 0; i < program(rank).commands.size(); ++i) {
      const Command &command = program(rank).commands[i];
      if (auto *send = std::get_if<SendCommand>(&command.operation))
        sends[send->message].push_back({rank, i});
      if (auto *receive = std::get_if<ReceiveCommand>(&command.operation))
        receives[receive->message].push_back({rank, i});
    }
  for (const auto &[message, places] : receives)
    if (!sends.count(message))
      return bad(describe(places[0]), " has no send");
  for (const auto &[message, places] : sends) {
    if (message != ends.size())
      return bad("message ", ends.size(), " is missing before ",
                 describe(places[0]));
    if (places.size() > 1)
      return bad(describe(places[1]), " is the second one");
    auto received = receives.find(message);
    if (received == receives.end())
      return bad(describe(places[0]), " has no receive");
    if (received->second.size() > 1)
      return bad(describe(received->second[1]), " is the second one");
    ends.push_back({places[0], received->second[0]});
    if (absl::Status s = checkMessage(message); !s.ok())
      return s;
  }
  numMessages = ends.size();
  return absl::OkStatus();
}

absl::Status JointGraph::checkMessage(uint32_t message) const {
  RankCommand from = ends[message][0], to = ends[message][1];
  auto &send = std::get<SendCommand>(at(from).operation);
  auto &receive = std::get<ReceiveCommand>(at(to).operation);
  if (from.rank == to.rank)
    return bad(describe(from), " goes to its own rank");
  if (send.peer != to.rank)
    return bad(describe(from), " goes to rank ", send.peer, ", but ",
               describe(to), " is there");
  if (receive.peer != from.rank)
    return bad(describe(to), " comes from rank ", receive.peer, ", but ",
               describe(from), " is there");
  if (send.buffers.size() != receive.buffers.size())
    return bad(describe(from), " has ", send.buffers.size(), " buffers and ",
               describe(to), " ", receive.buffers.size());
  for (size_t i = 0; i < send.buffers.size(); ++i) {
    const BufferSpec &in = program(from.rank).buffers[send.buffers[i]];
    const BufferSpec &out = program(to.rank).buffers[receive.buffers[i]];
    if (in.bytes != out.bytes || in.dtype != out.dtype)
      return bad("buffer ", i, " of ", describe(from), " is ", in.bytes,
                 " bytes of ", toString(in.dtype), " and that of ",
                 describe(to), " ", out.bytes, " of ", toString(out.dtype));
  }
  return absl::OkStatus();
}

/// The k-th collectives over the pipeline's axis of all ranks are one.
absl::Status JointGraph::findJointCollectives() {
  std::vector<std::vector<uint32_t>> ofRank(numRanks());
  for (int rank = 0; rank < numRanks(); ++rank)
    for (uint32_t i = 0; i < program(rank).commands.size(); ++i)
      if (auto *start = std::get_if<CollectiveStartCommand>(
              &program(rank).commands[i].operation))
        if (absl::c_linear_search(start->axes, plan.pipeline->axis))
          ofRank[rank].push_back(i);
  for (int rank = 1; rank < numRanks(); ++rank)
    if (ofRank[rank].size() != ofRank[0].size())
      return bad("pipeline rank ", rank, " has ", ofRank[rank].size(),
                 " collectives over the axis of the pipeline and rank 0 ",
                 ofRank[0].size());
  for (size_t k = 0; k < ofRank[0].size(); ++k) {
    PipelineStep together;
    for (int rank = 0; rank < numRanks(); ++rank)
      together.push_back({rank, ofRank[rank][k]});
    auto describeShapes = [&](RankCommand place) {
      auto &start = std::get<CollectiveStartCommand>(at(place).operation);
      std::vector<std::tuple<DType, std::vector<int64_t>>> shapes;
      for (const CollectiveItem &item : start.items) {
        const BufferSpec &in = program(place.rank).buffers[item.in];
        shapes.push_back({in.dtype, in.shape});
      }
      return std::make_tuple(start.reduction, start.axes, shapes);
    };
    for (RankCommand place : together)
      if (describeShapes(place) != describeShapes(together[0]))
        return bad(describe(place), " differs from ", describe(together[0]),
                   " in its reduction, axes or shapes");
    ends.push_back(std::move(together));
  }
  numJoint = ends.size() - numMessages;
  return absl::OkStatus();
}

/// Whether `second`, which is the next communication of its rank, can start
/// where `first` does: it comes after nothing behind `first`, and neither
/// writes bytes of the other.
bool JointGraph::mayStartTogether(RankCommand first, RankCommand second) const {
  for (uint32_t other : at(second).after)
    if (other >= first.command)
      return false;
  const PlanSpec &own = plan.ranks()[first.rank];
  for (const Access &a :
       accessesOf(own, program(first.rank), at(first), /*runs=*/1))
    for (const Access &b :
         accessesOf(own, program(first.rank), at(second), /*runs=*/1))
      if (overlap(a.bytes, b.bytes) && (a.isWrite || b.isWrite))
        return false;
  return true;
}

/// Joins the ends of opposite messages that are neighbours on both ranks. This
/// makes no cycle: nothing on either rank comes after the first message and
/// before the second, and every way to another rank is behind both.
void JointGraph::pairMessages() {
  // By rank and command the next one on the stream of communication; 0: none.
  std::vector<std::vector<uint32_t>> next(numRanks());
  for (int rank = 0; rank < numRanks(); ++rank) {
    next[rank].resize(program(rank).commands.size());
    uint32_t following = 0;
    for (uint32_t i = next[rank].size(); i-- > 0;) {
      next[rank][i] = following;
      if (at({rank, i}).stream == Stream::Communication)
        following = i;
    }
  }
  for (size_t message = 0; message < numMessages; ++message) {
    if (ends[message].size() != 2)
      continue;
    RankCommand from = ends[message][0], to = ends[message][1];
    RankCommand back{to.rank, next[to.rank][to.command]};
    RankCommand here{from.rank, next[from.rank][from.command]};
    auto *send = std::get_if<SendCommand>(&at(back).operation);
    auto *receive = std::get_if<ReceiveCommand>(&at(here).operation);
    if (back.command == 0 || here.command == 0 || !send || !receive ||
        send->message != receive->message || ends[send->message].size() != 2 ||
        !mayStartTogether(from, here) || !mayStartTogether(to, back))
      continue;
    ends[message].insert(ends[message].end(), {back, here});
    ends[send->message].clear();
    ++numPairs;
  }
  ends.erase(
      std::remove_if(ends.begin(), ends.end(),
                     [](const PipelineStep &end) { return end.empty(); }),
      ends.end());
}

void JointGraph::addEdges() {
  endOf.resize(first.back());
  for (uint32_t end = 0; end < ends.size(); ++end)
    for (RankCommand place : ends[end])
      endOf[nodeOf(place)] = first.back() + end;
  for (uint32_t node = 0; node < first.back(); ++node)
    if (isCommunication(at(placeOf(node))) && endOf[node] == 0) {
      endOf[node] = first.back() + ends.size();
      ends.push_back({placeOf(node)});
    }
  successors.resize(first.back() + ends.size());
  waitsFor.resize(successors.size());
  for (int rank = 0; rank < numRanks(); ++rank)
    plan.gpuTarget.empty() ? addEdgesOfList(rank) : addEdgesOfStreams(rank);
}

/// On a CPU.
void JointGraph::addEdgesOfList(int rank) {
  uint32_t last = 0; // end on this rank
  for (uint32_t node = first[rank]; node < first[rank + 1]; ++node) {
    if (node > first[rank])
      addEdge(node - 1, node);
    const Command &command = at(placeOf(node));
    if (auto *wait = std::get_if<CollectiveWaitCommand>(&command.operation))
      addEdge(endOf[first[rank] + wait->start], node);
    if (endOf[node] == 0)
      continue;
    addEdge(node, endOf[node]);
    if (last > 0)
      addEdge(last, endOf[node]);
    last = endOf[node];
  }
}

/// On a GPU. An issue is complete when all that it comes after is.
void JointGraph::addEdgesOfStreams(int rank) {
  auto completionOf = [&](uint32_t node) {
    return endOf[node] > 0 ? endOf[node] : node;
  };
  // By stream the completion of its last command.
  std::map<Stream, uint32_t> lasts;
  for (uint32_t node = first[rank]; node < first[rank + 1]; ++node) {
    const Command &command = at(placeOf(node));
    for (uint32_t other : command.after)
      addEdge(completionOf(first[rank] + other), node);
    uint32_t completion = completionOf(node);
    if (completion != node)
      addEdge(node, completion);
    auto [last, isFirst] = lasts.try_emplace(command.stream, completion);
    // Of two messages that cross together there is one end.
    if (!isFirst && last->second != completion)
      addEdge(last->second, completion);
    last->second = completion;
  }
}

/// By node its seconds. The time of a task passes with its first command that
/// works, so that messages leave at its end; that of a message with its end.
std::vector<double> JointGraph::durations(const PipelineTimes &times) const {
  std::vector<double> seconds(successors.size());
  for (int rank = 0; rank < numRanks(); ++rank) {
    std::set<int32_t> begun;
    for (uint32_t i = 0; i < program(rank).commands.size(); ++i) {
      const Command &command = program(rank).commands[i];
      auto *send = std::get_if<SendCommand>(&command.operation);
      if (send && !begun.empty()) {
        double &end = seconds[endOf[nodeOf({rank, i})]];
        end = std::max(end, times.messages[send->message]);
      }
      if (command.task >= 0 && isWork({rank, i}) &&
          begun.insert(command.task).second)
        seconds[nodeOf({rank, i})] = times.tasks[rank][command.task];
    }
  }
  return seconds;
}

/// Kahn's algorithm (1962), by the simulated time at which nodes can run.
absl::Status JointGraph::follow(const PipelineTimes &times,
                                PipelineOrder &order) {
  std::vector<double> time(successors.size()), duration = durations(times);
  std::vector<int64_t> chain(successors.size(), 1);
  // By node the most steps before it of which each needs the one before; each
  // step with that of its node.
  std::vector<int64_t> depth(successors.size());
  std::vector<std::pair<int64_t, PipelineStep>> steps; // in their sequence
  using Entry = std::pair<double, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (uint32_t node = 0; node < successors.size(); ++node)
    if (waitsFor[node] == 0)
      ready.push({0, node});
  for (; !ready.empty(); ++order.nodes) {
    auto [key, node] = ready.top();
    ready.pop();
    order.longestChain = std::max(order.longestChain, chain[node]);
    if (!isEnd(node))
      if (RankCommand place = placeOf(node);
          at(place).task >= 0 && isWork(place))
        order.seconds = std::max(order.seconds, time[node] + duration[node]);
    bool isStep = isEnd(node) || isWork(placeOf(node));
    if (isStep)
      steps.emplace_back(depth[node], isEnd(node)
                                          ? ends[node - first.back()]
                                          : PipelineStep{placeOf(node)});
    for (uint32_t next : successors[node]) {
      time[next] = std::max(time[next], time[node] + duration[node]);
      chain[next] = std::max(chain[next], chain[node] + 1);
      depth[next] = std::max(depth[next], depth[node] + isStep);
      // The commands of a task stay together.
      bool isSameTask = !isEnd(node) && !isEnd(next) &&
                        at(placeOf(node)).task >= 0 &&
                        at(placeOf(node)).task == at(placeOf(next)).task;
      if (--waitsFor[next] == 0)
        ready.push({isSameTask ? key : time[next], next});
    }
  }
  std::vector<size_t> byRound(steps.size());
  absl::c_iota(byRound, 0);
  absl::c_stable_sort(byRound, [&](size_t a, size_t b) {
    return steps[a].first < steps[b].first;
  });
  order.sequence.resize(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    order.steps.push_back(std::move(steps[byRound[i]].second));
    order.rounds.push_back(steps[byRound[i]].first);
    order.sequence[byRound[i]] = i;
  }
  double busy = 0;
  for (const std::vector<double> &tasks : times.tasks)
    busy = absl::c_accumulate(tasks, busy);
  if (order.seconds > 0)
    order.bubble = 1 - busy / (order.seconds * numRanks());
  order.messages = numMessages;
  order.messagePairs = numPairs;
  order.jointCollectives = numJoint;
  return order.nodes == static_cast<int64_t>(successors.size())
             ? absl::OkStatus()
             : describeCycle();
}

PipelineOrder PipelineOrder::inSequence() const {
  PipelineOrder result = *this;
  for (size_t i = 0; i < steps.size(); ++i) {
    result.steps[i] = steps[sequence[i]];
    result.rounds[i] = result.sequence[i] = i;
  }
  return result;
}

/// Names two transfers or collectives of a cycle. It has as many: one alone
/// would have to be waited for on a rank before it starts there.
absl::Status JointGraph::describeCycle() const {
  // A node that has not run comes after another one.
  std::vector<uint32_t> before(successors.size());
  uint32_t node = 0;
  for (uint32_t from = 0; from < successors.size(); ++from)
    for (uint32_t to : successors[from])
      if (waitsFor[from] > 0 && waitsFor[to] > 0)
        before[to] = from, node = to;
  std::set<uint32_t> cycle;
  for (size_t i = 0; i < successors.size(); ++i)
    node = before[node];
  for (; cycle.insert(node).second; node = before[node]) {
  }
  std::vector<PipelineStep> waiting;
  for (uint32_t of : cycle)
    if (isEnd(of))
      waiting.push_back(ends[of - first.back()]);
  RankCommand one = waiting[0].front(), other = waiting[1].front();
  // Those of two ranks, if there are.
  if (one.rank == other.rank)
    other = waiting[1].back();
  return bad(describe(one), " and ", describe(other), " wait for each other");
}

absl::StatusOr<PipelineOrder> JointGraph::order(const PipelineTimes &times) {
  first = {0};
  for (int rank = 0; rank < numRanks(); ++rank)
    first.push_back(first.back() + program(rank).commands.size());
  if (absl::Status s = findMessages(); !s.ok())
    return s;
  if (absl::Status s = findJointCollectives(); !s.ok())
    return s;
  if (!plan.gpuTarget.empty())
    pairMessages();
  addEdges();
  PipelineOrder order;
  if (absl::Status s = follow(times, order); !s.ok())
    return s;
  return order;
}

PipelineTimes shardc::rt::estimatedTimes(const PlanSpec &plan, size_t number) {
  PipelineTimes times;
  std::vector<std::pair<uint32_t, double>> messages;
  for (const PlanSpec &rank : plan.ranks()) {
    const ProgramSpec &program = rank.programs[number];
    std::vector<double> &tasks = times.tasks.emplace_back();
    for (const TaskSpec &task : program.tasks)
      tasks.push_back(task.seconds);
    for (const Command &command : program.commands)
      if (auto *send = std::get_if<SendCommand>(&command.operation))
        messages.emplace_back(send->message,
                              send->report < program.collectives.size()
                                  ? program.collectives[send->report].seconds
                                  : 0);
  }
  // Their numbers may not have been checked yet.
  times.messages.resize(messages.size());
  for (auto [message, seconds] : messages)
    if (message < messages.size())
      times.messages[message] = seconds;
  return times;
}

absl::StatusOr<PipelineOrder>
shardc::rt::orderPipeline(const PlanSpec &plan, size_t program,
                          const PipelineTimes &times) {
  return JointGraph(plan, program).order(times);
}

absl::StatusOr<PipelineOrder> shardc::rt::orderPipeline(const PlanSpec &plan,
                                                        size_t program) {
  return orderPipeline(plan, program, estimatedTimes(plan, program));
}

/// Parameters, their states and copies have one home.
static absl::Status checkPlaces(const PlanSpec &plan) {
  absl::flat_hash_map<absl::string_view, std::vector<size_t>> ranksOf;
  for (size_t rank = 0; rank < plan.ranks().size(); ++rank)
    for (const TensorSpec &tensor : plan.ranks()[rank].tensors)
      ranksOf[tensor.name].push_back(rank);
  for (const TensorSpec &tensor : plan.tensors) {
    bool isOwned = !tensor.parameter.empty();
    if (tensor.role != Role::Parameter && !isOwned)
      continue;
    const std::vector<size_t> &ranks = ranksOf[tensor.name];
    if (ranks.size() != 1 || (isOwned && ranksOf[tensor.parameter] != ranks))
      return badPipeline(toString(tensor.role), " \"", tensor.name, "\" is on ",
                         ranks.size(), " pipeline ranks",
                         isOwned ? ", expected the one of its parameter"
                                 : ", expected one");
  }
  return absl::OkStatus();
}

/// Each stage has its tasks for each microbatch: with an update F and either B,
/// or I and W; in an evaluation or prediction, which may take all rows as one,
/// F alone.
static absl::Status checkTasks(const PlanSpec &plan, size_t number) {
  const PipelineSpec &pipeline = *plan.pipeline;
  const std::string &name = plan.ranks()[0].programs[number].name;
  std::set<std::tuple<int, int64_t, TaskKind>> found;
  int64_t runs = 1;
  for (size_t rank = 0; rank < pipeline.ranks.size(); ++rank)
    for (const TaskSpec &task : pipeline.ranks[rank].programs[number].tasks) {
      std::string what =
          absl::StrCat("program \"", name, "\", task ", task.stage,
                       toString(task.kind), task.microbatch);
      if (task.stage >= static_cast<int>(pipeline.stages.size()) ||
          pipeline.stages[task.stage] != static_cast<int>(rank) ||
          task.microbatch >= pipeline.microbatches)
        return badPipeline(what, " on pipeline rank ", rank,
                           ", which has no such stage or microbatch");
      if (!(task.seconds >= 0 && task.seconds < 1e9))
        return badPipeline(what, " takes ", task.seconds, " seconds");
      if (!found.insert({task.stage, task.microbatch, task.kind}).second)
        return badPipeline(what, " is there twice");
      runs = std::max<int64_t>(runs, task.microbatch + 1);
    }
  bool isStep = name == "train_step";
  if (!isStep && name != "evaluate" && name != "predict")
    return found.empty() ? absl::OkStatus()
                         : badPipeline("program \"", name, "\" has tasks");
  if (isStep)
    runs = pipeline.microbatches;
  for (int stage = 0; stage < static_cast<int>(pipeline.stages.size()); ++stage)
    for (int64_t run = 0; run < runs; ++run) {
      auto has = [&](TaskKind kind) -> bool {
        return found.count({stage, run, kind});
      };
      bool whole = has(TaskKind::Backward);
      bool input = has(TaskKind::InputGradient);
      bool weight = has(TaskKind::WeightGradient);
      if (!has(TaskKind::Forward) || input != weight ||
          (isStep ? whole == weight : whole || weight))
        return badPipeline("program \"", name, "\", stage ", stage,
                           ", microbatch ", run, " has not its tasks: F",
                           isStep ? ", and B or I and W" : " alone");
    }
  return absl::OkStatus();
}

absl::Status shardc::rt::checkPipeline(const PlanSpec &plan) {
  if (absl::Status s = checkPlaces(plan); !s.ok())
    return s;
  absl::Span<const PlanSpec> ranks = plan.ranks();
  for (size_t rank = 1; rank < ranks.size(); ++rank)
    if (!std::equal(ranks[rank].programs.begin(), ranks[rank].programs.end(),
                    ranks[0].programs.begin(), ranks[0].programs.end(),
                    [](const ProgramSpec &a, const ProgramSpec &b) {
                      return a.name == b.name;
                    }))
      return badPipeline("pipeline rank ", rank,
                         " has other programs than rank 0");
  for (size_t number = 0; number < ranks[0].programs.size(); ++number) {
    int withResults = 0;
    for (const PlanSpec &rank : ranks)
      withResults += !rank.programs[number].results.empty();
    if (withResults > 1)
      return badPipeline("program \"", ranks[0].programs[number].name,
                         "\" has results on ", withResults,
                         " pipeline ranks, expected one");
    if (absl::Status s = checkTasks(plan, number); !s.ok())
      return s;
    if (absl::Status s = orderPipeline(plan, number).status(); !s.ok())
      return s;
  }
  return absl::OkStatus();
}
