//===- EditSource.cpp - Annotations as edits of the text ------------------===//

#include "shardc/Models/EditSource.h"

#include "SourceTokens.h"

#include "shardc/Dialect/Shardc/IR/AttributeNames.h"
#include "shardc/Dialect/Shardc/IR/Roles.h"
#include "shardc/Dialect/Shardc/IR/Shardc.h"
#include "shardc/Models/Strategy.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace shardc;

namespace {

/// Replacements of parts of a text.
class Edits {
public:
  void replace(size_t begin, size_t end, std::string with) {
    parts.push_back({begin, end, std::move(with)});
  }
  void insert(size_t at, std::string with) { replace(at, at, std::move(with)); }
  /// Whether one of them takes away all from `begin` to `end`.
  bool takesAway(size_t begin, size_t end) const {
    return llvm::any_of(parts, [&](const Part &part) {
      return part.begin <= begin && end <= part.end;
    });
  }
  /// Nothing if two of them meet. Comments in what is replaced are moved to
  /// lines of their own, above it.
  std::optional<std::string> apply(StringRef text,
                                   const SourceTokens &tokens) const {
    const std::string ending = getLineEnding(text).str();
    std::vector<Part> sorted = parts;
    llvm::stable_sort(sorted, [](const Part &a, const Part &b) {
      return std::make_pair(a.begin, a.end) < std::make_pair(b.begin, b.end);
    });
    std::string result;
    size_t at = 0;
    for (const Part &part : sorted) {
      if (part.begin < at)
        return std::nullopt;
      result += text.slice(at, part.begin);
      StringRef line = text.take_front(part.begin).rsplit('\n').second;
      if (part.begin <= text.find('\n'))
        line = text.take_front(part.begin);
      const std::string indent = line.take_while(llvm::isSpace).str();
      for (StringRef comment : tokens.getComments(part.begin, part.end))
        result.insert(result.rfind('\n') + 1, indent + comment.str() + ending);
      for (char letter : part.with)
        result += letter == '\n' ? ending : std::string(1, letter);
      at = part.end;
    }
    return result + text.substr(at).str();
  }

private:
  struct Part {
    size_t begin, end;
    std::string with;
  };
  std::vector<Part> parts;
};

/// A dictionary of attributes as the text has it and as it should be.
struct Change {
  /// The bracket that opens it; 0 if there is none: then the token behind
  /// which it would be, and what stands before it there.
  size_t open = 0, behind = 0;
  StringRef prefix = "";
  /// In the order of their names; a null attribute is removed.
  SmallVector<NamedAttribute> set;
  SmallVector<StringRef> removed;
};

/// Edits the text of one module.
class SourceEditor {
public:
  SourceEditor(StringRef text, ModuleOp original, ModuleOp annotated,
               const AsmParserState &state)
      : text(text), original(original), annotated(annotated), state(state),
        tokens(text) {}

  /// Nothing if the text is in a form that it does not know.
  std::optional<std::string> edit() {
    if (!tokens.isWhole() || !pairOps())
      return std::nullopt;
    chooseAliases();
    for (const Change &change : changes)
      apply(change);
    removeConstraints();
    editAliases();
    return edits.apply(text, tokens);
  }

private:
  size_t getOffset(SMLoc location) const {
    return location.getPointer() - text.data();
  }
  size_t getLineStart(size_t offset) const {
    size_t newline = text.take_front(offset).rfind('\n');
    return newline == text.npos ? 0 : newline + 1;
  }
  /// Behind the line of `offset`.
  size_t getLineEnd(size_t offset) const {
    size_t newline = text.find('\n', offset);
    return newline == text.npos ? text.size() : newline + 1;
  }
  /// Where the rest of the line of `offset` begins, a comment; nothing if there
  /// is none.
  std::optional<size_t> findRestOfLine(size_t offset) const {
    size_t rest = text.find_first_not_of(" \t\r", offset);
    return rest == text.npos || text[rest] == '\n' ? std::nullopt
                                                   : std::optional(rest);
  }
  bool isBlankLine(size_t start) const {
    return start < text.size() &&
           text.slice(start, getLineEnd(start)).trim().empty();
  }

  /// Goes through both modules side by side, and notes what differs.
  bool pairOps() {
    SmallVector<Operation *> before, after;
    original.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (auto constraint = dyn_cast<ShardingConstraintOp>(op))
        constraints.push_back(constraint);
      else
        before.push_back(op);
    });
    bool hasMesh = !original.getOps<MeshOp>().empty();
    annotated.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<MeshOp>(op) && !hasMesh)
        insertMesh(cast<MeshOp>(op));
      else
        after.push_back(op);
    });
    if (before.size() != after.size())
      return false;
    for (auto [from, to] : llvm::zip_equal(before, after))
      if (from->getName() != to->getName() || !pair(from, to))
        return false;
    return true;
  }

  /// The first token of `op`'s name; none if the parser has not kept it.
  std::optional<size_t> findName(Operation *op) const {
    const AsmParserState::OperationDefinition *definition = state.getOpDef(op);
    if (!definition)
      return std::nullopt;
    return tokens.find(getOffset(definition->loc.Start));
  }

  bool pair(Operation *from, Operation *to) {
    bool isFunction = isa<func::FuncOp>(from);
    std::optional<size_t> name;
    if (from->getDiscardableAttrDictionary() !=
            to->getDiscardableAttrDictionary() ||
        isFunction || isa<MeshOp>(from))
      name = findName(from);
    else
      return true;
    if (!name)
      return false;
    if (auto mesh = dyn_cast<MeshOp>(from))
      replaceMesh(*name, mesh, cast<MeshOp>(to));
    if (isFunction)
      return pairFunctions(*name, cast<func::FuncOp>(from),
                           cast<func::FuncOp>(to));
    Change change;
    if (isa<ModuleOp>(from)) {
      change.behind = *name;
      if (tokens.getText(*name + 1).starts_with("@"))
        ++change.behind;
      change.prefix = " attributes";
      if (tokens.getText(change.behind + 1) == "attributes")
        change.open = change.behind + 2;
    } else {
      change.open = tokens.skipTo(*name, {"{"});
    }
    return note(change, from->getDiscardableAttrDictionary(),
                to->getDiscardableAttrDictionary());
  }

  /// The bracket of the dictionary behind the type that `number` begins, or
  /// none and what comes before it.
  Change findBehindType(size_t number) const {
    size_t end = tokens.skipTo(number, {"{", ",", "loc"});
    // Else the list of them ends.
    Change change;
    if (tokens.getText(end) == "{") {
      change.open = end;
      return change;
    }
    size_t last = number;
    while (last + 1 < tokens.getNum() && last + 1 != end) {
      if (tokens.isOpening(last))
        last = tokens.get(last).match;
      StringRef next = tokens.getText(last + 1);
      if (next == ")" || next == "," || next == "loc" || next == "{")
        break;
      ++last;
    }
    change.behind = last;
    return change;
  }

  bool pairFunctions(size_t name, func::FuncOp from, func::FuncOp to) {
    size_t open = tokens.skipTo(name, {"("});
    if (open == tokens.getNum() || from.isExternal())
      return !from.isExternal();
    const auto *block = state.getBlockDef(&from.getBody().front());
    if (from.getNumArguments() > 0 &&
        (!block || block->arguments.size() != from.getNumArguments()))
      return false;
    for (unsigned index = 0; index < from.getNumArguments(); ++index) {
      size_t argument =
          tokens.find(getOffset(block->arguments[index].loc.Start));
      if (tokens.getText(argument + 1) != ":" ||
          !note(findBehindType(argument + 2), from.getArgAttrDict(index),
                to.getArgAttrDict(index)))
        return false;
    }
    size_t behind = tokens.get(open).match;
    if (tokens.getText(behind + 1) == "->") {
      size_t result = behind + 2;
      bool isList = tokens.getText(result) == "(";
      behind = isList ? tokens.get(result).match : result;
      for (unsigned index = 0; isList && index < from.getNumResults();
           ++index) {
        size_t type = result + 1;
        if (!note(findBehindType(type), from.getResultAttrDict(index),
                  to.getResultAttrDict(index)))
          return false;
        result = tokens.skipTo(type, {","});
      }
    }
    Change change;
    change.behind = tokens.skipTo(behind + 1, {"attributes", "{"});
    if (tokens.getText(change.behind) == "attributes")
      change.open = change.behind + 1;
    return note(change, from->getDiscardableAttrDictionary(),
                to->getDiscardableAttrDictionary());
  }

  /// Notes how the dictionary becomes `to`; false if the text has none.
  bool note(Change change, DictionaryAttr from, DictionaryAttr to) {
    auto get = [](DictionaryAttr attributes, StringAttr name) {
      return attributes ? attributes.get(name) : Attribute();
    };
    if (from)
      for (NamedAttribute attribute : from)
        if (!get(to, attribute.getName()))
          change.removed.push_back(attribute.getName());
    if (to)
      for (NamedAttribute attribute : to)
        if (get(from, attribute.getName()) != attribute.getValue())
          change.set.push_back(attribute);
    if (change.removed.empty() && change.set.empty())
      return true;
    if (change.open >= tokens.getNum() ||
        (change.open && tokens.getText(change.open) != "{") ||
        (change.open == 0 && !change.removed.empty()))
      return false;
    changes.push_back(std::move(change));
    return true;
  }

  /// Gives aliases to shardings that are written more than once.
  void chooseAliases() {
    for (const auto &alias : state.getAttributeAliasDefs())
      aliases.try_emplace(alias.value, alias.name.str());
    llvm::MapVector<Attribute, int> uses;
    for (const Change &change : changes)
      for (NamedAttribute attribute : change.set)
        if (auto sharding = dyn_cast<ShardingAttr>(attribute.getValue()))
          ++uses[sharding];
    for (const auto &[value, number] : uses) {
      if (number < 2 || aliases.contains(value))
        continue;
      std::string name = nameOf(cast<ShardingAttr>(value));
      auto isTaken = [&](const std::string &name) {
        return llvm::any_of(
            aliases, [&](const auto &alias) { return alias.second == name; });
      };
      std::string free = name;
      for (int suffix = 2; isTaken(free); ++suffix)
        free = name + "_" + std::to_string(suffix);
      aliases[value] = free;
      newAliases.push_back({free, value});
    }
  }

  static std::string nameOf(ShardingAttr sharding) {
    DimAxes axes;
    for (int64_t dim = 0; dim < sharding.getRank(); ++dim) {
      axes.emplace_back();
      for (StringAttr axis : sharding.getAxes(dim))
        axes.back().push_back(axis.str());
    }
    std::string name = nameSharding(axes);
    for (char &letter : name)
      if (!llvm::isAlnum(letter))
        letter = '_';
    return name;
  }

  static std::string print(Attribute value) {
    std::string result;
    llvm::raw_string_ostream(result) << value;
    return result;
  }

  std::string spell(Attribute value) {
    auto alias = aliases.find(value);
    if (alias == aliases.end())
      return print(value);
    usedAliases.insert(alias->second);
    return "#" + alias->second;
  }

  void apply(const Change &change) {
    std::vector<std::string> added;
    if (change.open == 0) {
      for (NamedAttribute attribute : change.set)
        added.push_back(attribute.getName().str() + " = " +
                        spell(attribute.getValue()));
      edits.insert(tokens.get(change.behind).end,
                   change.prefix.str() + " {" + llvm::join(added, ", ") + "}");
      return;
    }
    auto entries = tokens.getEntries(change.open);
    for (NamedAttribute attribute : change.set) {
      auto entry = llvm::find_if(entries, [&](const auto &entry) {
        return entry.name == attribute.getName().getValue();
      });
      if (entry == entries.end())
        added.push_back(attribute.getName().str() + " = " +
                        spell(attribute.getValue()));
      else if (entry->value <= entry->last)
        replaceValue(*entry, attribute.getValue());
    }
    removeAndAdd(change.open, entries, change.removed, added);
  }

  /// Of the training only what differs, which is the microbatches.
  void replaceValue(const SourceTokens::Entry &entry, Attribute value) {
    size_t open = entry.value + 1;
    auto training = dyn_cast<TrainingAttr>(value);
    auto before = original->getAttrOfType<TrainingAttr>(trainingAttrName);
    if (training && before && tokens.getText(open) == "<" &&
        tokens.get(open).match == entry.last &&
        training == TrainingAttr::get(
                        training.getContext(), before.getLoss(),
                        before.getOptimizer(), before.getClipNorm(),
                        before.getSchedule(), training.getMicrobatches())) {
      auto parts = tokens.getEntries(open);
      std::string number = std::to_string(training.getMicrobatches());
      auto old = llvm::find_if(
          parts, [](const auto &part) { return part.name == "microbatches"; });
      if (old == parts.end())
        return removeAndAdd(open, parts, {}, {"microbatches = " + number});
      if (training.getMicrobatches() == 1)
        return removeAndAdd(open, parts, {"microbatches"}, {});
      return edits.replace(tokens.get(old->value).begin,
                           tokens.get(old->last).end, number);
    }
    edits.replace(tokens.get(entry.value).begin, tokens.get(entry.last).end,
                  spell(value));
  }

  void removeAndAdd(size_t open, ArrayRef<SourceTokens::Entry> entries,
                    ArrayRef<StringRef> removed,
                    const std::vector<std::string> &added) {
    auto isKept = [&](const SourceTokens::Entry &entry) {
      return !llvm::is_contained(removed, entry.name);
    };
    if (added.empty() && llvm::none_of(entries, isKept)) {
      size_t before = open - 1;
      if (tokens.getText(before) == "attributes")
        --before;
      edits.replace(tokens.get(before).end,
                    tokens.get(tokens.get(open).match).end, "");
      return;
    }
    const SourceTokens::Entry *last = nullptr;
    bool isLineEach = false;
    for (const SourceTokens::Entry &entry : entries) {
      size_t comma = last ? entry.first - 1 : entry.last + 1;
      if (isKept(entry)) {
        if (last)
          isLineEach |=
              text.slice(tokens.get(comma).end, tokens.get(entry.first).begin)
                  .contains('\n');
        last = &entry;
        continue;
      }
      size_t begin = tokens.get(entry.first).begin,
             end = tokens.get(entry.last).end;
      if (last) {
        // With the comma before it, and a comment between the two kept.
        if (!tokens.hasCommentBehind(comma) &&
            !tokens.hasCommentBehind(comma - 1)) {
          begin = tokens.get(comma - 1).end;
        } else {
          edits.replace(tokens.get(comma).begin, tokens.get(comma).end, "");
        }
      } else if (tokens.getText(comma) == ",") {
        end = tokens.hasCommentBehind(comma)
                  ? text.find_first_not_of(" \t", tokens.get(comma).end)
                  : tokens.get(comma + 1).begin;
      }
      edits.replace(begin, end, "");
    }
    if (added.empty())
      return;
    std::string separator = ", ";
    if (last && isLineEach) {
      size_t begin = tokens.get(last->first).begin;
      separator = ",\n" + std::string(begin - getLineStart(begin), ' ');
    }
    std::string all = llvm::join(added, separator);
    if (last)
      edits.insert(tokens.get(last->last).end, separator + all);
    else
      edits.insert(tokens.get(open).end, all);
  }

  static std::string printAxes(MeshOp mesh) {
    std::vector<std::string> axes;
    for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
      axes.push_back(print(axis.getName()) + " = " +
                     std::to_string(axis.getSize()));
    return "[" + llvm::join(axes, ", ") + "]";
  }

  void replaceMesh(size_t name, MeshOp from, MeshOp to) {
    size_t open = tokens.skipTo(name, {"<"});
    if (from.getAxes() == to.getAxes() || open == tokens.getNum())
      return;
    edits.replace(tokens.get(open).end,
                  tokens.get(tokens.get(open).match).begin, printAxes(to));
  }

  void insertMesh(MeshOp mesh) {
    std::optional<size_t> name = findName(original);
    if (!name)
      return;
    size_t open = *name + 1;
    if (tokens.getText(open).starts_with("@"))
      ++open;
    if (tokens.getText(open) == "attributes" && tokens.isOpening(open + 1))
      open = tokens.get(open + 1).match + 1;
    edits.insert(tokens.get(open).end, "\n  shardc.mesh @" +
                                           mesh.getSymName().str() + " <" +
                                           printAxes(mesh) + ">\n");
  }

  /// Takes constraints away, and gives their readers what they constrain.
  void removeConstraints() {
    llvm::DenseMap<Operation *, std::string> operands;
    for (ShardingConstraintOp constraint : constraints) {
      const auto *definition = state.getOpDef(constraint);
      if (!definition || definition->resultGroups.empty())
        continue;
      size_t begin =
          getOffset(definition->resultGroups.front().definition.loc.Start);
      size_t end =
          tokens.get(tokens.find(getOffset(definition->scopeLoc.End)) - 1).end;
      std::string &operand = operands[constraint];
      if (auto inner =
              constraint.getOperand().getDefiningOp<ShardingConstraintOp>())
        operand = operands.lookup(inner);
      else
        operand =
            tokens.getText(tokens.find(getOffset(definition->loc.End))).str();
      // A comment behind it stays, in its place.
      if (text.slice(getLineStart(begin), begin).trim().empty()) {
        if (std::optional<size_t> rest = findRestOfLine(end)) {
          end = *rest;
        } else {
          begin = getLineStart(begin);
          end = getLineEnd(end);
        }
      }
      edits.replace(begin, end, "");
    }
    for (ShardingConstraintOp constraint : constraints) {
      const auto *definition = state.getOpDef(constraint);
      if (!definition || definition->resultGroups.empty())
        continue;
      for (SMRange use : definition->resultGroups.front().definition.uses)
        if (size_t begin = getOffset(use.Start), end = getOffset(use.End);
            !edits.takesAway(begin, end))
          edits.replace(begin, end, operands.lookup(constraint));
    }
  }

  /// Writes the new aliases, and takes those away that nothing names any more.
  void editAliases() {
    std::string lines;
    for (const auto &[name, value] : newAliases)
      lines += "#" + name + " = " + print(value) + "\n";
    std::optional<size_t> place;
    const bool isReplaced = !lines.empty();
    size_t groupBegin = 0, groupEnd = text.npos;
    for (const auto &alias : state.getAttributeAliasDefs()) {
      size_t begin = getLineStart(getOffset(alias.definition.loc.Start));
      size_t value = tokens.find(begin) + 2;
      while (tokens.isOpening(value + 1))
        value = tokens.get(value + 1).match;
      size_t end = getLineEnd(tokens.get(value).end);
      std::optional<size_t> comment = findRestOfLine(tokens.get(value).end);
      bool isUnused =
          !alias.definition.uses.empty() && !usedAliases.contains(alias.name) &&
          llvm::all_of(alias.definition.uses, [&](SMRange use) {
            return edits.takesAway(getOffset(use.Start), getOffset(use.End));
          });
      if (isUnused && comment) {
        edits.replace(begin, *comment, lines);
        lines.clear();
      } else if (isUnused) {
        if (begin != groupEnd)
          groupBegin = begin;
        groupEnd = end;
        // One blank line is enough.
        if (!isReplaced && isBlankLine(end) &&
            (groupBegin == 0 || isBlankLine(getLineStart(groupBegin - 1))))
          end = getLineEnd(end);
        edits.replace(begin, end, lines);
        lines.clear();
      }
      place = end;
    }
    if (lines.empty())
      return;
    if (place)
      return edits.insert(*place, lines);
    std::optional<size_t> module = findName(original);
    if (!module)
      return;
    size_t begin = getLineStart(tokens.get(*module).begin);
    bool isBehindText = begin > 0 && !isBlankLine(getLineStart(begin - 1));
    edits.insert(begin, (isBehindText ? "\n" : "") + lines + "\n");
  }

  StringRef text;
  ModuleOp original, annotated;
  const AsmParserState &state;
  SourceTokens tokens;
  Edits edits;
  std::vector<Change> changes;
  SmallVector<ShardingConstraintOp> constraints;
  /// Names without `#`.
  llvm::DenseMap<Attribute, std::string> aliases;
  std::vector<std::pair<std::string, Attribute>> newAliases;
  llvm::StringSet<> usedAliases;
};

} // namespace

StringRef shardc::getLineEnding(StringRef text) {
  return text.split('\n').first.ends_with("\r") && text.contains('\n') ? "\r\n"
                                                                       : "\n";
}

/// The module of the only buffer of `sources`, or null.
static OwningOpRef<ModuleOp> parse(const llvm::SourceMgr &sources,
                                   MLIRContext *context,
                                   AsmParserState *state) {
  Block block;
  if (failed(
          parseAsmSourceFile(sources, &block, ParserConfig(context), state)) ||
      !llvm::hasSingleElement(block) || !isa<ModuleOp>(block.front()))
    return nullptr;
  Operation *module = &block.front();
  module->remove();
  return cast<ModuleOp>(module);
}

static std::string print(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream(text) << module;
  return text;
}

llvm::Expected<std::string> shardc::editSource(StringRef text,
                                               ModuleOp annotated) {
  MLIRContext *context = annotated.getContext();
  ScopedDiagnosticHandler silence(context,
                                  [](Diagnostic &) { return success(); });
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text),
                             llvm::SMLoc());
  AsmParserState state;
  OwningOpRef<ModuleOp> original = parse(sources, context, &state);
  if (!original)
    return llvm::createStringError("its text is not a module of shardc");
  StringRef own = sources.getMemoryBuffer(sources.getMainFileID())->getBuffer();
  std::optional<std::string> edited =
      SourceEditor(own, *original, annotated, state).edit();
  if (edited) {
    llvm::SourceMgr result;
    result.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(*edited),
                              llvm::SMLoc());
    OwningOpRef<ModuleOp> module = parse(result, context, nullptr);
    if (module && print(*module) == print(annotated))
      return std::move(*edited);
  }
  return llvm::createStringError(
      "its text is in a form that edits of annotations do not know");
}
