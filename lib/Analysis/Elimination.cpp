//===- Elimination.cpp - The cheapest of the options left -----------------===//

#include "Elimination.h"

#include "SearchTable.h"

#include <cmath>
#include <set>

using namespace mlir;
using namespace shardc;

namespace {

/// A part of the step: a table, which others may share, and what it is about.
struct SearchPart {
  /// Number of the table.
  int table;
  /// What all rows of the table cost besides.
  double cost;
  /// What the bound has for its ops, and for the tensors that they touch.
  double base;
  /// Per open tensor of the table the value of the problem.
  std::vector<int> values;
  /// The op, or the parts that it was joined from.
  int op = -1;
  int first = -1, second = -1;
};

class Elimination {
public:
  Elimination(const SearchProblem &problem, const SearchClasses &classes,
              DualBound &bound, PriceGraphs &graphs,
              const EliminationLimits &limits, size_t &work)
      : problem(problem), classes(classes), bound(bound), graphs(graphs),
        limits(limits), work(work), completion(bound, pool),
        partsOf(problem.values.size()) {}

  SearchSolution run() {
    for (size_t op = 0; op < problem.ops.size(); ++op)
      addOp(op);
    // Joins until nothing is shared: then every part is on its own.
    while (!candidates.empty()) {
      auto [weight, first, second] = *candidates.begin();
      if (!joinParts(first, second) || work > limits.maxWork)
        return SearchSolution();
    }
    SearchSolution solution;
    solution.cost = 0;
    solution.options.assign(problem.ops.size(), 0);
    for (int index : live) {
      const SearchPart &part = parts[index];
      if (tables[part.table]->rows.empty())
        return SearchSolution();
      solution.cost += part.cost;
      choose(index, 0, solution.options);
    }
    return solution;
  }

private:
  /// Numbers tables by their contents.
  int intern(SearchTable table) {
    tables.push_back(std::make_unique<SearchTable>(std::move(table)));
    return tables.size() - 1;
  }

  /// The moves of a value, shared by all of its shape.
  ValueMoves *getMoves(int value) {
    const SearchValue &info = problem.values[value];
    auto [it, isNew] = moves.try_emplace(info.table);
    if (isNew)
      it->second = std::make_unique<ValueMoves>(graphs.at(info.table), pool);
    return it->second.get();
  }

  /// The ports of value `value` that op `index` is, as DualBound::getRest
  /// numbers them.
  unsigned getInside(int value, int index) const {
    unsigned inside =
        problem.values[value].producer == index ? DualBound::producerBit : 0;
    for (auto [user, place] : llvm::enumerate(classes.usersOf[value]))
      if (place.first == index)
        inside |= bound.getUserBit(classes.valueClassOf[value], user);
    return inside;
  }

  void addOp(int index) {
    const SearchOp &op = problem.ops[index];
    SearchPart part;
    part.op = index;
    // What is shared with others; where each port is there.
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
      // What a result is made in is all that is known of it.
      open[place].isMade |= isResult;
      places.push_back(isResult ? ~place - 1 : place);
    }

    int opClass = classes.opClassOf[index];
    auto [it, isNew] = opTables.try_emplace({opClass, open});
    if (isNew) {
      SearchTable table;
      table.open = open;
      for (int number : bound.getOptions(opClass)) {
        const SearchOption &option = op.options[number];
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
      double cost =
          normalize(table, limits.maxRows, completion, limits.maxWork, work);
      it->second = {intern(std::move(table)), cost};
    }
    std::tie(part.table, part.cost) = it->second;
    part.base = bound.getOpBase(opClass);
    for (int value : part.values)
      part.base += bound.getValueBase(classes.valueClassOf[value]);
    addPart(std::move(part));
  }

  void addPart(SearchPart part) {
    int index = parts.size();
    parts.push_back(std::move(part));
    live.insert(index);
    for (int value : parts[index].values)
      partsOf[value].insert(index);
    for (int other : getNeighbours(index))
      candidates.insert({getWeight(other, index), other, index});
  }

  void removePart(int index) {
    live.erase(index);
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

  /// False if no solution is left.
  bool joinParts(int first, int second) {
    removePart(first);
    removePart(second);
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
      // What is above the bound of the part may be so by the gap.
      double limit = limits.gap + part.base - lhs.cost - rhs.cost;
      SearchTable table =
          join(left, right, std::get<2>(it->first), limit, completion, pool,
               limits.maxRows < std::numeric_limits<size_t>::max(),
               limits.maxWork, work);
      double cost =
          normalize(table, limits.maxRows, completion, limits.maxWork, work);
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

  const SearchProblem &problem;
  const SearchClasses &classes;
  DualBound &bound;
  PriceGraphs &graphs;
  EliminationLimits limits;
  size_t &work;
  SetPool pool;
  Completion completion;
  std::map<DistanceTable *, std::unique_ptr<ValueMoves>> moves;
  std::vector<std::unique_ptr<SearchTable>> tables;
  /// Table and least cost by op, and by what was joined.
  std::map<std::pair<int, std::vector<OpenTensor>>, std::pair<int, double>>
      opTables;
  std::map<std::tuple<int, int, JoinPlan>, std::pair<int, double>> joined;
  std::vector<SearchPart> parts;
  std::set<int> live;
  /// Parts in which a value is open.
  std::vector<std::set<int>> partsOf;
  /// (weight, first, second) of parts that share a tensor.
  std::set<std::tuple<double, int, int>> candidates;
};

} // namespace

SearchSolution shardc::eliminate(const SearchProblem &problem,
                                 const SearchClasses &classes, DualBound &bound,
                                 PriceGraphs &graphs,
                                 const EliminationLimits &limits,
                                 size_t &work) {
  return Elimination(problem, classes, bound, graphs, limits, work).run();
}
