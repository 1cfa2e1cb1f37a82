//===- Elimination.cpp - Variable elimination -----------------------------===//

#include "Elimination.h"

#include "JoinOrder.h"
#include "SearchTable.h"

#include <set>

using namespace llvm;
using namespace shardc;

namespace {

/// A part of the step. Several parts may share a table.
struct SearchPart {
  /// The number of the table.
  int table;
  /// A constant cost, added to all rows of the table.
  double cost;
  /// The terms of the bound for its ops and the tensors that they touch.
  double base;
  /// The value of each open tensor of the table.
  std::vector<int> values;
  /// The op, or the two parts joined.
  int op = -1;
  int first = -1, second = -1;
};

class Elimination {
public:
  Elimination(const SearchProblem &problem, const OpEquivalenceClasses &classes,
              DualBound &bound, const SearchOptions &options,
              const EliminationLimits &limits, size_t &work)
      : problem(problem), classes(classes), bound(bound), options(options),
        limits(limits), work(work), completion(bound, pool),
        order(problem, options.elimination) {}

  SearchSolution run() {
    for (size_t op = 0; op < problem.ops.size(); ++op)
      addOp(op);
    // Join until no two parts share a tensor.
    while (auto pair = order.next())
      if (!joinParts(pair->first, pair->second) || work > limits.maxWork)
        return SearchSolution();
    SearchSolution solution;
    solution.cost = 0;
    solution.strategies.assign(problem.ops.size(), 0);
    for (int index : order.getParts()) {
      const SearchPart &part = parts[index];
      if (tables[part.table]->rows.empty())
        return SearchSolution();
      solution.cost += part.cost;
      choose(index, 0, solution.strategies);
    }
    return solution;
  }

private:
  bool isBeam() const {
    return limits.maxRows < std::numeric_limits<size_t>::max();
  }

  /// Stores a table and returns its number.
  int intern(SearchTable table) {
    tables.push_back(std::make_unique<SearchTable>(std::move(table)));
    return tables.size() - 1;
  }

  /// The moves of a value; values with the same graph share them.
  ValueMoves *getMoves(int value) {
    CostGraph &graph = bound.getGraph(classes.valueClassOf[value]);
    auto [it, isNew] = moves.try_emplace(&graph);
    if (isNew)
      it->second = std::make_unique<ValueMoves>(graph, pool, options, isBeam(),
                                                limits.maxWork, work);
    return it->second.get();
  }

  /// The ports of `value` that belong to op `index`, as bits of
  /// DualBound::getRest.
  unsigned getInside(int value, int index) const {
    unsigned inside =
        problem.values[value].producer == index ? TensorBound::producerBit : 0;
    for (auto [user, place] : llvm::enumerate(classes.usersOf[value]))
      if (place.first == index)
        inside |= bound.getUserBit(classes.valueClassOf[value], user);
    return inside;
  }

  void addOp(int index) {
    const SearchOp &op = problem.ops[index];
    SearchPart part;
    part.op = index;
    // The tensors shared with other ops, and the place of each port among them.
    std::vector<OpenTensor> open;
    std::vector<int> places;
    for (auto [number, value] : llvm::enumerate(op.ports)) {
      bool isResult = static_cast<int>(number) >= op.numOperands;
      int numOps = problem.values[value].numOps;
      auto it = llvm::find(part.values, value);
      if (numOps == 1) {
        places.push_back(-1);
        continue;
      }
      if (it == part.values.end()) {
        open.push_back({getMoves(value), false, numOps, numOps - 1,
                        classes.valueClassOf[value], getInside(value, index)});
        part.values.push_back(value);
        it = std::prev(part.values.end());
      }
      int place = it - part.values.begin();
      // A tensor that the op makes is described by its layout alone.
      open[place].isMade |= isResult;
      places.push_back(isResult ? ~place - 1 : place);
    }

    int opClass = classes.opClassOf[index];
    auto [it, isNew] = opTables.try_emplace({opClass, open});
    if (isNew) {
      SearchTable table;
      table.open = open;
      for (int number : bound.getStrategies(opClass)) {
        const SearchStrategy &strategy = (*op.strategies)[number];
        SearchRow row;
        row.sets.resize(open.size());
        row.cost = strategy.cost;
        row.first = number;
        bool isPossible = true;
        for (auto [port, layout] : llvm::enumerate(strategy.layouts)) {
          int place = places[port];
          if (place == -1)
            continue;
          int node = bound.getGraph(classes.valueClassOf[op.ports[port]])
                         .getNode(layout);
          isPossible &= node >= 0;
          if (place >= 0 && !open[place].isMade)
            row.sets[place] = pool.add(row.sets[place], node);
          else if (place < -1)
            row.sets[~(place + 1)] = pool.add(SetPool::empty, node);
        }
        if (isPossible)
          table.rows.push_back(std::move(row));
      }
      double cost = normalize(table, options, limits.maxRows, completion,
                              limits.maxWork, work);
      it->second = {intern(std::move(table)), cost};
    }
    std::tie(part.table, part.cost) = it->second;
    part.base = bound.getOpBase(opClass);
    for (int value : part.values)
      part.base += bound.getValueBase(classes.valueClassOf[value]);
    addPart(std::move(part));
  }

  void addPart(SearchPart part) {
    const SearchTable &table = *tables[part.table];
    SmallVector<int> remaining;
    for (const OpenTensor &tensor : table.open)
      remaining.push_back(tensor.remaining);
    order.add(parts.size(), part.values, remaining, table.rows.size());
    parts.push_back(std::move(part));
  }

  /// Returns false if no solution is left.
  bool joinParts(int first, int second) {
    SearchPart part;
    part.first = first;
    part.second = second;
    const SearchPart &lhs = parts[first], &rhs = parts[second];
    part.base = lhs.base + rhs.base;
    JoinPlan plan;
    for (auto [position, value] : llvm::enumerate(lhs.values)) {
      auto it = llvm::find(rhs.values, value);
      if (it == rhs.values.end())
        continue;
      plan.shared.emplace_back(position, it - rhs.values.begin());
      part.base -= bound.getValueBase(classes.valueClassOf[value]);
    }
    const SearchTable &left = *tables[lhs.table], &right = *tables[rhs.table];
    auto [it, isNew] =
        joined.try_emplace({lhs.table, rhs.table, std::move(plan)});
    if (isNew) {
      // Rows may exceed the bound of the part by the gap.
      double limit = limits.gap + part.base - lhs.cost - rhs.cost;
      SearchTable table =
          join(left, right, std::get<2>(it->first), limit, completion, pool,
               isBeam(), limits.maxWork, work);
      double cost = normalize(table, options, limits.maxRows, completion,
                              limits.maxWork, work);
      it->second = {intern(std::move(table)), cost};
    }
    part.table = it->second.first;
    part.cost = lhs.cost + rhs.cost + it->second.second;
    if (tables[part.table]->rows.empty())
      return false;
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
    return true;
  }

  /// Writes the strategies of row `row` of a part to `chosenStrategies`.
  void choose(int index, int row, std::vector<int> &chosenStrategies) const {
    const SearchPart &part = parts[index];
    const SearchRow &chosen = tables[part.table]->rows[row];
    if (part.op >= 0) {
      chosenStrategies[part.op] = chosen.first;
      return;
    }
    choose(part.first, chosen.first, chosenStrategies);
    choose(part.second, chosen.second, chosenStrategies);
  }

  const SearchProblem &problem;
  const OpEquivalenceClasses &classes;
  DualBound &bound;
  const SearchOptions &options;
  EliminationLimits limits;
  size_t &work;
  SetPool pool;
  Completion completion;
  std::map<CostGraph *, std::unique_ptr<ValueMoves>> moves;
  std::vector<std::unique_ptr<SearchTable>> tables;
  /// The table and constant cost of each kind of op, and of each kind of join.
  std::map<std::pair<int, std::vector<OpenTensor>>, std::pair<int, double>>
      opTables;
  std::map<std::tuple<int, int, JoinPlan>, std::pair<int, double>> joined;
  std::vector<SearchPart> parts;
  JoinOrder order;
};

} // namespace

SearchSolution shardc::eliminate(const SearchProblem &problem,
                                 const OpEquivalenceClasses &classes,
                                 DualBound &bound, const SearchOptions &options,
                                 const EliminationLimits &limits,
                                 size_t &work) {
  return Elimination(problem, classes, bound, options, limits, work).run();
}
