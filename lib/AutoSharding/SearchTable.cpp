//===- SearchTable.cpp - Tables of variable elimination -------------------===//

#include "SearchTable.h"

#include <numeric>

using namespace llvm;
using namespace shardc;

/// Whether every completion of `row` completes `other` at most as dearly.
static bool isDominated(const SearchTable &table, const SearchRow &row,
                        const SearchRow &other) {
  double limit = row.cost * (1 + costTolerance);
  double cost = other.cost;
  for (size_t index = 0; index < table.open.size() && cost <= limit; ++index)
    if (row.sets[index] != other.sets[index]) {
      const OpenTensor &tensor = table.open[index];
      cost += tensor.isMade
                  ? tensor.moves->getCost(other.sets[index], row.sets[index])
                  : tensor.moves->getCost(row.sets[index], other.sets[index]);
    }
  return cost <= limit;
}

double Completion::getRest(const OpenTensor &tensor, int set) {
  auto [it, isNew] = known.try_emplace({tensor.valueClass, tensor.inside, set});
  if (isNew)
    it->second = bound.getRest(tensor.valueClass, tensor.inside, pool.get(set));
  return it->second;
}

double Completion::getRest(const SearchTable &table, const SearchRow &row) {
  double sum = 0;
  for (auto [tensor, set] : llvm::zip_equal(table.open, row.sets))
    sum += getRest(tensor, set);
  return sum;
}

/// Keeps the `maxRows` rows of the least cost when completed, in their order.
static void cutOff(SearchTable &table, size_t maxRows, Completion &completion) {
  std::vector<std::pair<double, int>> order;
  for (auto [index, row] : llvm::enumerate(table.rows))
    order.emplace_back(row.cost + completion.getRest(table, row), index);
  std::nth_element(order.begin(), order.begin() + maxRows, order.end());
  order.resize(maxRows);
  llvm::sort(order, llvm::less_second());
  std::vector<SearchRow> kept;
  for (auto [cost, index] : order)
    kept.push_back(std::move(table.rows[index]));
  table.rows = std::move(kept);
}

double shardc::normalize(SearchTable &table, const SearchOptions &options,
                         size_t maxRows, Completion &completion, size_t maxWork,
                         size_t &work) {
  const size_t widerRows = options.elimination.comparedBeams;
  std::vector<SearchRow> &rows = table.rows;
  if (rows.empty())
    return 0;
  // The cheapest row of each combination of states.
  DenseMap<ArrayRef<int>, int> cheapest;
  for (auto [index, row] : llvm::enumerate(rows)) {
    int &best = cheapest.try_emplace(row.sets, index).first->second;
    if (row.cost < rows[best].cost)
      best = index;
  }
  std::vector<int> order;
  for (auto [sets, index] : cheapest)
    order.push_back(index);
  llvm::sort(order, [&](int lhs, int rhs) {
    return std::tie(rows[lhs].cost, lhs) < std::tie(rows[rhs].cost, rhs);
  });

  if (order.size() / widerRows > maxRows) {
    std::vector<SearchRow> some;
    for (int index : order)
      some.push_back(std::move(rows[index]));
    rows = std::move(some);
    cutOff(table, maxRows * widerRows, completion);
    order.resize(rows.size());
    std::iota(order.begin(), order.end(), 0);
  }

  std::vector<SearchRow> kept;
  // Rows that dominated others recently are tried first.
  std::vector<int> recent;
  for (int index : order) {
    SearchRow &row = rows[index];
    auto it = llvm::find_if(recent, [&](int other) {
      ++work;
      return isDominated(table, row, kept[other]);
    });
    if (it != recent.end()) {
      std::rotate(recent.begin(), it, it + 1);
      continue;
    }
    if (work > maxWork)
      break;
    if (options.elimination.dropsDominated)
      recent.push_back(kept.size());
    kept.push_back(std::move(row));
  }
  rows = std::move(kept);
  if (rows.empty())
    return 0;
  if (rows.size() > maxRows)
    cutOff(table, maxRows, completion);
  double least = rows.front().cost;
  for (SearchRow &row : rows)
    row.cost -= least;
  return least;
}

namespace {

class Joiner {
public:
  Joiner(const SearchTable &first, const SearchTable &second,
         const JoinPlan &plan, double limit, Completion &completion,
         SetPool &pool, bool isBeam, size_t maxWork, size_t &work)
      : first(first), second(second), plan(plan), limit(limit),
        completion(completion), pool(pool), isBeam(isBeam), maxWork(maxWork),
        work(work) {
    std::vector<bool> isShared(second.open.size(), false);
    std::vector<int> partner(first.open.size(), -1);
    for (auto [number, pair] : llvm::enumerate(plan.shared)) {
      isShared[pair.second] = true;
      partner[pair.first] = number;
    }
    sharedAt.resize(plan.shared.size(), -1);
    for (auto [position, tensor] : llvm::enumerate(first.open)) {
      if (partner[position] < 0) {
        fromFirst.emplace_back(position, table.open.size());
        table.open.push_back(tensor);
        continue;
      }
      // Each side counts the other's ops among those outside.
      int number = partner[position];
      const OpenTensor &other = second.open[plan.shared[number].second];
      OpenTensor both = tensor;
      both.isMade |= other.isMade;
      both.remaining = tensor.remaining + other.remaining - tensor.numOps;
      both.inside |= other.inside;
      remaining.push_back(both.remaining);
      order.push_back(number);
      if (both.remaining > 0) {
        sharedAt[number] = table.open.size();
        table.open.push_back(both);
      }
    }
    for (auto [position, tensor] : llvm::enumerate(second.open))
      if (!isShared[position]) {
        fromSecond.emplace_back(position, table.open.size());
        table.open.push_back(tensor);
      }
  }

  SearchTable run() {
    std::vector<double> firstRests = getRests(first, fromFirst);
    std::vector<double> secondRests = getRests(second, fromSecond);
    SearchRow row;
    row.sets.resize(table.open.size());
    for (auto [index, lhs] : llvm::enumerate(first.rows)) {
      row.first = index;
      for (auto [source, target] : fromFirst)
        row.sets[target] = lhs.sets[source];
      for (auto [number, rhs] : llvm::enumerate(second.rows)) {
        row.second = number;
        for (auto [source, target] : fromSecond)
          row.sets[target] = rhs.sets[source];
        expand(lhs, rhs, 0, lhs.cost + rhs.cost,
               firstRests[index] + secondRests[number], row);
      }
    }
    return std::move(table);
  }

private:
  using Positions = std::vector<std::pair<int, int>>;

  /// Per row: a lower bound of completing the tensors at `positions`.
  std::vector<double> getRests(const SearchTable &side,
                               const Positions &positions) {
    std::vector<double> rests;
    for (const SearchRow &row : side.rows) {
      double &sum = rests.emplace_back(0);
      for (auto [source, target] : positions)
        sum += completion.getRest(side.open[source], row.sets[source]);
    }
    return rests;
  }

  /// Adds a row for every combination of deliveries of the shared tensors from
  /// number `index` on. `rest` is a lower bound of completing the other tensors
  /// so far.
  void expand(const SearchRow &lhs, const SearchRow &rhs, size_t index,
              double cost, double rest, SearchRow &row) {
    if (++work > maxWork)
      return;
    if (index == order.size()) {
      if (cost + rest > limit)
        return;
      // If no tensor stays open, only the cheapest row matters.
      if (table.open.empty())
        limit = cost;
      row.cost = cost;
      table.rows.push_back(row);
      return;
    }
    int number = order[index];
    auto [left, right] = plan.shared[number];
    const OpenTensor &tensor = first.open[left];
    int one = lhs.sets[left], other = rhs.sets[right];
    int target = sharedAt[number];
    auto getMore = [&](int set) {
      return target < 0 ? 0 : completion.getRest(table.open[target], set);
    };
    auto use = [&](int set, double moveCost) {
      if (target >= 0)
        row.sets[target] = set;
      expand(lhs, rhs, index + 1, cost + moveCost, rest + getMore(set), row);
    };
    if (!tensor.isMade && !second.open[right].isMade)
      return use(pool.unite(one, other), 0);
    if (!tensor.isMade)
      std::swap(one, other);
    ArrayRef<ValueMoves::Move> moves =
        tensor.moves->deliver(one, other, remaining[index]);
    if (isBeam && moves.size() > 1) {
      auto getCost = [&](const ValueMoves::Move &move) {
        return move.cost + getMore(move.set);
      };
      moves = *std::min_element(
          moves.begin(), moves.end(),
          [&](auto &lhs, auto &rhs) { return getCost(lhs) < getCost(rhs); });
    }
    for (const ValueMoves::Move &move : moves)
      use(move.set, move.cost);
  }

  const SearchTable &first, &second;
  const JoinPlan &plan;
  double limit;
  Completion &completion;
  SetPool &pool;
  bool isBeam;
  size_t maxWork;
  size_t &work;
  SearchTable table;
  /// (position before, after) of the tensors of one side alone.
  Positions fromFirst, fromSecond;
  /// Per shared tensor: its position afterwards, -1 if it is closed.
  std::vector<int> sharedAt;
  /// Shared tensors in the order of the first table, and their remaining uses.
  std::vector<int> order, remaining;
};

} // namespace

SearchTable shardc::join(const SearchTable &first, const SearchTable &second,
                         const JoinPlan &plan, double limit,
                         Completion &completion, SetPool &pool, bool isBeam,
                         size_t maxWork, size_t &work) {
  return Joiner(first, second, plan, limit, completion, pool, isBeam, maxWork,
                work)
      .run();
}
