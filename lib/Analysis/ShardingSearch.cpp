//===- ShardingSearch.cpp - The cheapest plan of a step -------------------===//

#include "shardc/Analysis/ShardingSearch.h"

#include "SearchTable.h"

#include <cmath>
#include <set>

using namespace mlir;
using namespace shardc;

namespace {

/// Rows of the tables in the search for a bound.
constexpr size_t narrowRows = 32;

/// A part of the step: a table, which others may share, and what it is about.
struct SearchPart {
  /// Number of the table.
  int table;
  /// What all rows of the table cost besides.
  double cost;
  /// Per open tensor of the table the value of the problem.
  std::vector<int> values;
  /// The op, or the parts that it was joined from.
  int op = -1;
  int first = -1, second = -1;
};

class Elimination {
public:
  /// `bound`: what some solution costs.
  Elimination(SearchProblem &problem, size_t maxRows, double bound)
      : problem(problem), maxRows(maxRows), bound(bound),
        partsOf(problem.values.size()) {}

  SearchSolution run() {
    for (size_t op = 0; op < problem.ops.size(); ++op)
      addOp(op);
    SearchSolution solution;
    solution.cost = 0;
    solution.options.assign(problem.ops.size(), 0);
    // Joins until nothing is shared: then every part is on its own.
    while (!candidates.empty()) {
      auto [weight, first, second] = *candidates.begin();
      joinParts(first, second);
    }
    for (int index : live) {
      const SearchPart &part = parts[index];
      const SearchTable &table = *tables[part.table];
      if (table.rows.empty())
        return SearchSolution();
      solution.cost += part.cost;
      choose(index, 0, solution.options);
    }
    solution.numRows = numRows;
    solution.lowerBound = std::min(solution.cost, cutOff);
    return solution;
  }

private:
  /// Numbers tables by their contents.
  int intern(SearchTable table) {
    numRows = std::max(numRows, table.rows.size());
    tables.push_back(std::make_unique<SearchTable>(std::move(table)));
    return tables.size() - 1;
  }

  /// The moves of a value, shared by all of its shape.
  ValueMoves *getMoves(int value) {
    const SearchValue &info = problem.values[value];
    auto [it, isNew] = moves.try_emplace(info.table);
    if (isNew)
      it->second = std::make_unique<ValueMoves>(*info.table, *info.trees, pool);
    return it->second.get();
  }

  /// What ops of equal tables are alike in.
  using OpKey = std::tuple<std::vector<OpenTensor>, std::vector<int>,
                           std::vector<std::pair<SmallVector<int, 4>, double>>>;

  void addOp(int index) {
    const SearchOp &op = problem.ops[index];
    SearchPart part;
    part.op = index;
    part.cost = 0;
    OpKey key;
    auto &[open, places, options] = key;
    for (auto [number, value] : llvm::enumerate(op.ports)) {
      bool isResult = static_cast<int>(number) >= op.numOperands;
      int numOps = problem.values[value].numOps;
      auto it = llvm::find(part.values, value);
      if (numOps == 1) {
        places.push_back(-1);
        continue;
      }
      if (it == part.values.end()) {
        open.push_back({getMoves(value), false, numOps, numOps - 1});
        part.values.push_back(value);
        it = std::prev(part.values.end());
      }
      int place = it - part.values.begin();
      // What a result is made in is all that is known of it.
      open[place].isMade |= isResult;
      places.push_back(isResult ? ~place - 1 : place);
    }
    for (const SearchOption &option : op.options)
      options.emplace_back(option.layouts, option.cost);

    auto [it, isNew] = opTables.try_emplace(key);
    if (isNew) {
      SearchTable table;
      table.open = open;
      for (auto [number, option] : llvm::enumerate(op.options)) {
        SearchRow row;
        row.sets.resize(open.size());
        row.cost = option.cost;
        row.first = number;
        for (auto [place, layout] : llvm::zip_equal(places, option.layouts)) {
          if (place >= 0 && !open[place].isMade)
            row.sets[place] = pool.add(row.sets[place], layout);
          else if (place < -1)
            row.sets[~(place + 1)] = pool.add(SetPool::empty, layout);
        }
        table.rows.push_back(std::move(row));
      }
      double cost = normalize(table, std::numeric_limits<size_t>::max());
      it->second = {intern(std::move(table)), cost};
    }
    std::tie(part.table, part.cost) = it->second;
    addPart(std::move(part));
  }

  void addPart(SearchPart part) {
    int index = parts.size();
    leastCost += part.cost;
    parts.push_back(std::move(part));
    live.insert(index);
    for (int value : parts[index].values)
      partsOf[value].insert(index);
    for (int other : getNeighbours(index))
      candidates.insert({getWeight(other, index), other, index});
  }

  void removePart(int index) {
    live.erase(index);
    leastCost -= parts[index].cost;
    for (int value : parts[index].values)
      partsOf[value].erase(index);
    for (int other : getNeighbours(index)) {
      auto [first, second] = std::minmax(index, other);
      candidates.erase({getWeight(first, second), first, second});
    }
  }

  std::set<int> getNeighbours(int index) const {
    std::set<int> neighbours;
    for (int value : parts[index].values)
      neighbours.insert(partsOf[value].begin(), partsOf[value].end());
    neighbours.erase(index);
    return neighbours;
  }

  /// How a tensor weighs: those of rank 0 have hardly any layouts.
  double getValueWeight(int value) const {
    return std::log2(
        double(problem.values[value].table->getGraph().getNumLayouts() + 1));
  }

  /// The weight of the tensors open after a join; ties go to smaller tables.
  double getWeight(int first, int second) const {
    const SearchPart &lhs = parts[first], &rhs = parts[second];
    double after = 0;
    for (auto [position, value] : llvm::enumerate(lhs.values)) {
      auto it = llvm::find(rhs.values, value);
      bool isClosed = false;
      if (it != rhs.values.end())
        isClosed =
            tables[lhs.table]->open[position].remaining +
                tables[rhs.table]->open[it - rhs.values.begin()].remaining ==
            problem.values[value].numOps;
      after += isClosed ? 0 : getValueWeight(value);
    }
    for (int value : rhs.values)
      if (!llvm::is_contained(lhs.values, value))
        after += getValueWeight(value);
    double product = std::log2(double(tables[lhs.table]->rows.size() + 1) *
                               (tables[rhs.table]->rows.size() + 1));
    return after + 0.01 * product;
  }

  void joinParts(int first, int second) {
    // Each part costs its least; what a row costs more must leave the whole
    // within the bound. It grows less as parts are joined, so that a table made
    // for a larger limit serves as well.
    double limit = (bound - leastCost) + 1e-9 * std::max(bound, 0.0);
    removePart(first);
    removePart(second);
    SearchPart part;
    part.first = first;
    part.second = second;
    const SearchPart &lhs = parts[first], &rhs = parts[second];
    JoinPlan plan;
    for (auto [position, value] : llvm::enumerate(lhs.values)) {
      auto it = llvm::find(rhs.values, value);
      if (it != rhs.values.end())
        plan.shared.emplace_back(position, it - rhs.values.begin());
    }
    auto [it, isNew] =
        joined.try_emplace({lhs.table, rhs.table, std::move(plan)});
    if (isNew) {
      SearchTable table = join(*tables[lhs.table], *tables[rhs.table],
                               std::get<2>(it->first), limit, pool);
      double cost = normalize(table, maxRows);
      it->second = {intern(std::move(table)), cost};
    }
    part.table = it->second.first;
    part.cost = lhs.cost + rhs.cost + it->second.second;
    // The rows that were cut off are those of solutions that cost this much.
    cutOff =
        std::min(cutOff, leastCost + part.cost + tables[part.table]->cutOff);
    // The tensors that stay open, in the order of the table.
    std::set<int> closed;
    for (auto [left, right] : std::get<2>(it->first).shared)
      if (tables[lhs.table]->open[left].remaining +
              tables[rhs.table]->open[right].remaining ==
          problem.values[lhs.values[left]].numOps)
        closed.insert(lhs.values[left]);
    for (int value : lhs.values)
      if (!closed.count(value))
        part.values.push_back(value);
    for (int value : rhs.values)
      if (!llvm::is_contained(lhs.values, value))
        part.values.push_back(value);
    addPart(std::move(part));
  }

  /// Writes down what row `row` of a part chose.
  void choose(int index, int row, std::vector<int> &options) const {
    const SearchPart &part = parts[index];
    const SearchRow &chosen = tables[part.table]->rows[row];
    if (part.op >= 0) {
      options[part.op] = chosen.first;
      return;
    }
    choose(part.first, chosen.first, options);
    choose(part.second, chosen.second, options);
  }

  SearchProblem &problem;
  size_t maxRows;
  double bound;
  /// What all live parts cost at least.
  double leastCost = 0;
  /// What was cut off costs at least this much.
  double cutOff = unreachable;
  SetPool pool;
  std::map<DistanceTable *, std::unique_ptr<ValueMoves>> moves;
  std::vector<std::unique_ptr<SearchTable>> tables;
  /// Table and least cost by op, and by what was joined.
  std::map<OpKey, std::pair<int, double>> opTables;
  std::map<std::tuple<int, int, JoinPlan>, std::pair<int, double>> joined;
  std::vector<SearchPart> parts;
  std::set<int> live;
  /// Parts in which a value is open.
  std::vector<std::set<int>> partsOf;
  /// (weight, first, second) of parts that share a tensor.
  std::set<std::tuple<double, int, int>> candidates;
  size_t numRows = 0;
};

} // namespace

SearchSolution shardc::findCheapest(SearchProblem &problem, size_t maxRows) {
  // What a narrow search finds bounds the exact one.
  SearchSolution narrow = Elimination(problem, narrowRows, unreachable).run();
  return Elimination(problem, maxRows, narrow.cost).run();
}
