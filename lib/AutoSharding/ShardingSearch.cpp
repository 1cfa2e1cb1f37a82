//===- ShardingSearch.cpp - The exact search of a problem -----------------===//

#include "shardc/AutoSharding/ShardingSearch.h"

#include "Elimination.h"

#include <cmath>

using namespace llvm;
using namespace shardc;

/// The state kept from search to search.
struct shardc::SearchMemory {
  explicit SearchMemory(const SearchOptions &options) : graphs(options) {}

  size_t work = 0;
  CostGraphs graphs;
  /// The bound of the first search, its classes, and its value.
  std::shared_ptr<OpEquivalenceClasses> classes;
  std::optional<DualBound> bound;
  double least = 0;
  /// Strategies that only plans above this cost use have been dropped.
  double dropped = unreachable;
};

namespace {

/// Stages of the search. In each, the bound is raised until a sweep adds less
/// than this part of it, and strategies far above it are dropped.
constexpr double progress[] = {5e-3, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8};
constexpr size_t lastStage = std::size(progress) - 1;

class Search {
public:
  Search(SearchProblem &problem, const SearchOptions &options,
         const SearchLimits &limits, SearchMemory &memory)
      : problem(problem), options(options), limits(limits), memory(memory),
        graphs(memory.graphs) {}

  SearchSolution run() {
    levels.push_back(std::make_shared<OpEquivalenceClasses>(
        problem, options.classes.radius));
    if (!options.classes.isUsed ||
        problem.ops.size() < options.classes.minGain * levels[0]->ops.size())
      levels[0] = std::make_shared<OpEquivalenceClasses>(problem);
    SearchSolution solution = solveFirst();
    if (!solution.strategies.empty())
      return solution;
    if (!isCutOff()) {
      solution.lowerBound =
          std::min(std::max(limits.upper, *firstBound), memory.dropped);
      return solution;
    }
    // A beam search among all strategies.
    if (options.usesBeam && limits.upper == unreachable) {
      DualBound all(problem, *levels[0], graphs, options);
      raise(all, progress[1], unreachable);
      // Unreachable strategies would crowd out the others.
      all.prune(unreachable);
      for (size_t rows = options.elimination.beam;
           solution.strategies.empty() && rows <= options.elimination.maxBeam;
           rows *= 2)
        solution = eliminateWithBeam(*levels[0], all, unreachable, rows);
    }
    solution.lowerBound = std::min(solution.cost, least);
    return solution;
  }

  /// The pairs of rows examined.
  size_t getWork() const { return work + workOfGuesses + beamWork; }

private:
  /// The cheapest solution. The first search leaves its bound to later ones.
  SearchSolution solveFirst() {
    if (memory.bound) {
      DualBound bound(problem, *levels[0], graphs, options, &*memory.bound);
      return solve(0, bound, limits.upper);
    }
    memory.classes = levels[0];
    memory.bound.emplace(problem, *levels[0], graphs, options);
    return solve(0, *memory.bound, limits.upper);
  }

  bool isCutOff() const { return work > limits.maxWork; }
  bool isFine(size_t level) const {
    return levels[level]->ops.size() == problem.ops.size();
  }

  /// Adds the classes after those of `level`; every op is one if they are
  /// nearly as many.
  void refine(size_t level) {
    if (level + 1 < levels.size())
      return;
    const OpEquivalenceClasses &last = *levels[level];
    levels.push_back(2 * last.ops.size() < problem.ops.size()
                         ? std::make_shared<OpEquivalenceClasses>(
                               problem, last, options.classes.radius)
                         : std::make_shared<OpEquivalenceClasses>(problem));
  }

  double widen(double width, double least) const {
    return width > 0 && width < options.guess.hopeless * least
               ? width * options.guess.widening
               : unreachable;
  }

  /// The cheapest solution of at most `upper`.
  SearchSolution solve(size_t level, DualBound &bound, double upper) {
    if (isFine(level))
      return solveFinely(level, bound, upper, 0);
    const ClassOptions &classes = options.classes;
    double progress = classes.progress, slack = classes.slack, part = 1;
    if (level == 0) {
      part = double(levels[0]->ops.size()) / problem.ops.size();
    } else {
      progress = classes.finerProgress, slack = classes.finerSlack;
      part = std::pow(classes.levelGain, level - 1.0);
    }
    double step = raise(bound, progress * part, upper);
    double first = least;
    if (first > upper * (1 + costTolerance) || first == unreachable)
      return SearchSolution();
    SearchSolution guessed = guess(*levels[level], bound, step, upper);
    if (!guessed.strategies.empty())
      return guessed;
    refine(level);
    double width =
        std::max(options.guess.firstWidth * step, slack * part * first);
    for (;; width = widen(width, first)) {
      double limit = std::min(upper, first + width);
      if (limit < upper &&
          limit - first <= options.guess.minGrowth * (excluded - first))
        continue;
      DualBound pruned = bound;
      pruned.prune(limit - first + costTolerance * limit);
      least = first;
      DualBound finer(problem, *levels[level + 1], graphs, options, &pruned);
      SearchSolution solution = solve(level + 1, finer, limit);
      if (!solution.strategies.empty() || isCutOff())
        return solution;
      excluded = std::max(excluded, limit);
      if (limit == upper)
        return solution;
    }
  }

  /// The cheapest solution of at most `upper`, from stage `stage` on.
  SearchSolution solveFinely(size_t level, DualBound &bound, double upper,
                             size_t stage) {
    double step = raise(bound, progress[stage], upper);
    double first = least;
    if (first > upper * (1 + costTolerance) || first == unreachable)
      return SearchSolution();
    SearchSolution guessed = guess(*levels[level], bound, step, upper);
    if (!guessed.strategies.empty())
      return guessed;
    while (stage < lastStage && step <= progress[stage + 1] * first)
      ++stage;
    for (double width = options.guess.firstFineWidth * step;;
         width = widen(width, first)) {
      double limit = std::min(upper, first + width);
      if (limit < upper &&
          limit - first <= options.guess.minGrowth * (excluded - first))
        continue;
      DualBound pruned = bound;
      pruned.prune(limit - first + costTolerance * limit);
      least = first;
      SearchSolution solution =
          stage == lastStage ? finish(*levels[level], pruned, limit)
                             : solveFinely(level, pruned, limit, stage + 1);
      if (!solution.strategies.empty() || isCutOff())
        return solution;
      excluded = std::max(excluded, limit);
      if (limit == upper)
        return solution;
    }
  }

  /// A solution of at most `upper` within the indifference of the bound, if the
  /// last sweep raised the bound by no more than `step` and a quick beam search
  /// finds one.
  SearchSolution guess(const OpEquivalenceClasses &classes,
                       const DualBound &bound, double step, double upper) {
    double gap = limits.indifference * least;
    size_t maxWork = options.elimination.quickWork * limits.maxWork;
    if (step * options.guess.firstWidth > gap || workOfGuesses > maxWork ||
        options.elimination.quickBeam == 0)
      return SearchSolution();
    DualBound pruned = bound;
    pruned.prune(gap);
    EliminationLimits beam;
    beam.gap = gap;
    beam.maxRows = options.elimination.quickBeam;
    beam.maxWork = maxWork;
    SearchSolution solution =
        eliminate(problem, classes, pruned, options, beam, workOfGuesses);
    if (solution.cost > std::min(upper, least + gap))
      return SearchSolution();
    solution.lowerBound = std::min(solution.cost, least);
    return solution;
  }

  SearchSolution finish(const OpEquivalenceClasses &classes, DualBound &bound,
                        double upper) {
    EliminationLimits all;
    all.gap = upper - least + costTolerance * upper;
    all.maxWork = limits.maxWork;
    SearchSolution solution =
        eliminate(problem, classes, bound, options, all, work);
    if (isCutOff() && options.usesBeam)
      solution =
          eliminateWithBeam(classes, bound, all.gap, options.elimination.beam);
    if (isCutOff()) {
      solution.lowerBound = least;
      return solution;
    }
    // Above `upper` the search was not exhaustive.
    if (solution.cost > upper * (1 + costTolerance))
      return SearchSolution();
    solution.lowerBound = solution.cost;
    return solution;
  }

  SearchSolution eliminateWithBeam(const OpEquivalenceClasses &classes,
                                   DualBound &bound, double gap,
                                   size_t maxRows) {
    EliminationLimits beam;
    beam.gap = gap;
    beam.maxRows = maxRows;
    return eliminate(problem, classes, bound, options, beam, beamWork);
  }

  /// Raises the bound to `least` until a sweep adds less than `progress` of it
  /// or it exceeds `upper`. Returns the gain of the last sweep.
  double raise(DualBound &bound, double progress, double upper) {
    double last = 0;
    double step = unreachable;
    for (int sweep = 0; sweep < options.bound.maxSweeps; ++sweep) {
      least = bound.sweep();
      step = least - last;
      last = least;
      if (least > upper || step <= progress * least)
        break;
    }
    if (!firstBound)
      firstBound = least;
    if (&bound == &*memory.bound)
      memory.least = least;
    return std::max(step, costTolerance * least);
  }

  SearchProblem &problem;
  const SearchOptions &options;
  SearchLimits limits;
  /// Pairs of rows examined by exact elimination, by quick beams, and by the
  /// beam after a cut-off.
  size_t work = 0, workOfGuesses = 0, beamWork = 0;
  SearchMemory &memory;
  CostGraphs &graphs;
  std::vector<std::shared_ptr<OpEquivalenceClasses>> levels;
  double least = 0;
  /// The first bound of all strategies.
  std::optional<double> firstBound;
  /// No plan costs this or less.
  double excluded = 0;
};

} // namespace

ShardingSearch::ShardingSearch(SearchProblem &problem,
                               const SearchOptions &options)
    : problem(problem), options(options),
      memory(std::make_unique<SearchMemory>(this->options)) {}

ShardingSearch::~ShardingSearch() = default;

void ShardingSearch::dropAbove(double upper) {
  if (!memory->bound || upper >= memory->dropped)
    return;
  memory->dropped = upper;
  DualBound &bound = *memory->bound;
  double &least = memory->least;
  for (int time = 0; time < options.guess.numDropSweeps; ++time) {
    bound.prune(upper - least + costTolerance * upper);
    least = std::max(least, bound.sweep());
  }
}

size_t ShardingSearch::getWork() const { return memory->work; }

SearchSolution ShardingSearch::find(const SearchLimits &limits) {
  Search search(problem, options, limits, *memory);
  SearchSolution solution = search.run();
  memory->work += search.getWork();
  return solution;
}

SearchSolution ShardingSearch::find() { return find({options.maxWork}); }
