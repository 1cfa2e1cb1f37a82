//===- SourceTokens.cpp - Tokens of MLIR's text ---------------------------===//

#include "SourceTokens.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace shardc;
using llvm::StringRef;

static constexpr StringRef opening = "({[<", closing = ")}]>";

/// Where the token that begins at `begin` ends; npos for a string that does
/// not.
static size_t findEnd(StringRef text, size_t begin) {
  if (text[begin] == '"') {
    for (size_t end = begin + 1; end < text.size(); ++end) {
      if (text[end] == '\\')
        ++end;
      else if (text[end] == '"')
        return end + 1;
    }
    return text.npos;
  }
  if (text.substr(begin).starts_with("->"))
    return begin + 2;
  constexpr StringRef single = "(){}[]<>,=:";
  if (single.contains(text[begin]))
    return begin + 1;
  size_t end = begin;
  while (end < text.size() && !llvm::isSpace(text[end]) &&
         !single.contains(text[end]) && text[end] != '"' &&
         !text.substr(end).starts_with("->") &&
         !text.substr(end).starts_with("//"))
    ++end;
  return end;
}

SourceTokens::SourceTokens(StringRef text) : text(text) {
  std::vector<size_t> open;
  for (size_t at = 0; at < text.size();) {
    if (llvm::isSpace(text[at])) {
      ++at;
    } else if (text.substr(at).starts_with("//")) {
      size_t end = std::min(text.find('\n', at), text.size());
      comments.push_back(text.slice(at, end).rtrim());
      at = end;
    } else {
      size_t end = findEnd(text, at);
      if (end == text.npos) {
        whole = false;
        return;
      }
      StringRef token = text.slice(at, end);
      if (token.size() == 1 && opening.contains(token)) {
        open.push_back(tokens.size());
      } else if (token.size() == 1 && closing.contains(token)) {
        if (open.empty() ||
            opening.find(getText(open.back())) != closing.find(token)) {
          whole = false;
          return;
        }
        tokens[open.back()].match = tokens.size();
        tokens.push_back({at, end, open.back()});
        open.pop_back();
        at = end;
        continue;
      }
      tokens.push_back({at, end});
      at = end;
    }
  }
  whole = open.empty();
}

llvm::SmallVector<StringRef> SourceTokens::getComments(size_t begin,
                                                       size_t end) const {
  llvm::SmallVector<StringRef> found;
  for (StringRef comment : comments)
    if (size_t at = comment.begin() - text.begin(); begin <= at && at < end)
      found.push_back(comment);
  return found;
}

StringRef SourceTokens::getText(size_t number) const {
  return number < tokens.size()
             ? text.slice(tokens[number].begin, tokens[number].end)
             : "";
}

bool SourceTokens::isOpening(size_t number) const {
  StringRef token = getText(number);
  return token.size() == 1 && opening.contains(token);
}

size_t SourceTokens::find(size_t offset) const {
  return llvm::partition_point(
             tokens, [&](const Token &token) { return token.begin < offset; }) -
         tokens.begin();
}

size_t SourceTokens::skipTo(size_t number,
                            llvm::ArrayRef<StringRef> texts) const {
  for (; number < tokens.size(); ++number) {
    StringRef token = getText(number);
    if (llvm::is_contained(texts, token))
      return number;
    if (isOpening(number))
      number = tokens[number].match;
    else if (token.size() == 1 && closing.contains(token))
      break;
  }
  return tokens.size();
}

llvm::SmallVector<SourceTokens::Entry>
SourceTokens::getEntries(size_t open) const {
  llvm::SmallVector<Entry> entries;
  size_t close = tokens[open].match;
  for (size_t first = open + 1; first < close;) {
    size_t end = std::min(skipTo(first, {","}), close);
    size_t value = getText(first + 1) == "=" ? first + 2 : end;
    entries.push_back({getText(first).trim('"'), first, end - 1, value});
    first = end + 1;
  }
  return entries;
}

bool SourceTokens::hasCommentBehind(size_t number) const {
  size_t end =
      number + 1 < tokens.size() ? tokens[number + 1].begin : text.size();
  return text.slice(tokens[number].end, end).contains("//");
}
