// Alone: every room uses it. The results of a function for each element of a range.
#pragma once
#include <functional>
#include <iterator>
#include <vector>

namespace cinch {

/// mapped<std::string_view>(fields, &Field::name), mapped<Type>(values, [&](ValueId v) { … }).
template <class Result, class Range, class Function>
std::vector<Result> mapped(Range&& range, Function function) {
  std::vector<Result> results;
  results.reserve(std::size(range));
  for (auto&& each : range) results.push_back(std::invoke(function, each));
  return results;
}

}  // namespace cinch
