//===- SearchTable.cpp - What is known of a part of a step ----------------===//

#include "SearchTable.h"

using namespace mlir;
using namespace shardc;

/// Costs closer than this part of them are equal.
static constexpr double tolerance = 1e-12;

/// Whether whatever completes `row` completes `other` at most as dearly.
static bool isDominated(const SearchTable &table, const SearchRow &row,
                        const SearchRow &other) {
  double limit = row.cost * (1 + tolerance);
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

double shardc::normalize(SearchTable &table, size_t maxRows, size_t &work) {
  std::vector<SearchRow> &rows = table.rows;
  if (rows.empty())
    return 0;
  // The cheapest row of each combination.
  std::vector<int> order(rows.size());
  for (size_t index = 0; index < rows.size(); ++index)
    order[index] = index;
  llvm::sort(order, [&](int lhs, int rhs) {
    if (rows[lhs].sets != rows[rhs].sets)
      return std::lexicographical_compare(
          rows[lhs].sets.begin(), rows[lhs].sets.end(), rows[rhs].sets.begin(),
          rows[rhs].sets.end());
    return std::tie(rows[lhs].cost, lhs) < std::tie(rows[rhs].cost, rhs);
  });
  order.erase(std::unique(order.begin(), order.end(),
                          [&](int lhs, int rhs) {
                            return rows[lhs].sets == rows[rhs].sets;
                          }),
              order.end());
  llvm::sort(order, [&](int lhs, int rhs) {
    return std::tie(rows[lhs].cost, lhs) < std::tie(rows[rhs].cost, rhs);
  });

  double least = rows[order[0]].cost;
  std::vector<SearchRow> kept;
  // Rows that dominated others of late are tried first.
  std::vector<int> recent;
  for (int index : order) {
    SearchRow &row = rows[index];
    row.cost -= least;
    auto it = llvm::find_if(recent, [&](int other) {
      ++work;
      return isDominated(table, row, kept[other]);
    });
    if (it != recent.end()) {
      std::rotate(recent.begin(), it, it + 1);
      continue;
    }
    if (kept.size() == maxRows) {
      table.cutOff = std::min(table.cutOff, row.cost);
      break;
    }
    recent.push_back(kept.size());
    kept.push_back(std::move(row));
  }
  rows = std::move(kept);
  return least;
}

namespace {

class Joiner {
public:
  Joiner(const SearchTable &first, const SearchTable &second,
         const JoinPlan &plan, double limit, size_t maxRows, SetPool &pool)
      : first(first), second(second), plan(plan), limit(limit),
        maxRows(maxRows), pool(pool) {
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
    SearchRow row;
    row.sets.resize(table.open.size());
    for (auto [index, lhs] :
         llvm::enumerate(ArrayRef(first.rows).take_front(maxRows))) {
      row.first = index;
      for (auto [source, target] : fromFirst)
        row.sets[target] = lhs.sets[source];
      for (auto [number, rhs] :
           llvm::enumerate(ArrayRef(second.rows).take_front(maxRows))) {
        // Rows are in the order of their costs.
        if (lhs.cost + rhs.cost > limit)
          break;
        row.second = number;
        for (auto [source, target] : fromSecond)
          row.sets[target] = rhs.sets[source];
        expand(lhs, rhs, 0, lhs.cost + rhs.cost, row);
      }
    }
    return std::move(table);
  }

private:
  void expand(const SearchRow &lhs, const SearchRow &rhs, size_t index,
              double cost, SearchRow &row) {
    if (cost > limit)
      return;
    if (index == order.size()) {
      // Where nothing stays open only the cheapest row matters.
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
    auto use = [&](int set, double price) {
      if (sharedAt[number] >= 0)
        row.sets[sharedAt[number]] = set;
      expand(lhs, rhs, index + 1, cost + price, row);
    };
    if (!tensor.isMade && !second.open[right].isMade)
      return use(pool.unite(one, other), 0);
    if (!tensor.isMade)
      std::swap(one, other);
    for (const ValueMoves::Move &move :
         tensor.moves->deliver(one, other, remaining[index]))
      use(move.set, move.cost);
  }

  const SearchTable &first, &second;
  const JoinPlan &plan;
  double limit;
  size_t maxRows;
  SetPool &pool;
  SearchTable table;
  /// (position before, after) of tensors that one side alone has.
  std::vector<std::pair<int, int>> fromFirst, fromSecond;
  /// Per shared tensor its position after, -1 where it is closed.
  std::vector<int> sharedAt;
  /// Shared tensors in the order of the first table, and their remaining uses.
  std::vector<int> order, remaining;
};

} // namespace

SearchTable shardc::join(const SearchTable &first, const SearchTable &second,
                         const JoinPlan &plan, double limit, size_t maxRows,
                         SetPool &pool) {
  return Joiner(first, second, plan, limit, maxRows, pool).run();
}
