"""Reads a line-based TextMate grammar as editors do, as far as the grammar of Cinch goes: match, begin and end, captures, includes.
Its expressions are written in what Oniguruma and Python's re have in common."""
import json
import re


class Grammar:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.json = json.load(file)
        self.rules = self.flattened(self.json["patterns"])

    def flattened(self, patterns):
        rules = []
        for pattern in patterns:
            if "include" in pattern:
                rules += self.flattened(self.json["repository"][pattern["include"].removeprefix("#")]["patterns"])
            else:
                rules.append({**pattern, "regex": re.compile(pattern.get("match") or pattern["begin"])})
        return rules

    def scopes(self, text):
        """(begin, end, scope) of all that has a scope; begin and end are indices into the text."""
        found, open_rule, opened, begin = [], None, 0, 0
        for line in text.split("\n"):
            at = 0
            while at <= len(line):
                if open_rule:
                    close = self.end_of(open_rule, line, at)
                    if close is None:
                        break
                    found.append((opened, begin + close, open_rule["name"]))
                    open_rule, at = None, close
                    continue
                matches = [(match.start(), index, match, rule) for index, rule in enumerate(self.rules)
                           if (match := rule["regex"].search(line, at))]
                if not matches:
                    break
                _, _, match, rule = min(matches, key=lambda each: each[:2])
                at = max(match.end(), at + 1) if match.end() == match.start() else match.end()
                if "begin" in rule:
                    open_rule, opened = rule, begin + match.start()
                elif "name" in rule:
                    found.append((begin + match.start(), begin + match.end(), rule["name"]))
                for number, capture in rule.get("captures", {}).items():
                    found.append((begin + match.start(int(number)), begin + match.end(int(number)), capture["name"]))
            begin += len(line) + 1
        return found

    @staticmethod
    def end_of(rule, line, at):
        # What a rule within this one takes, as an escape, does not end it.
        inner = [re.compile(each["match"]) for each in rule.get("patterns", [])]
        end = re.compile(rule["end"])
        while True:
            match = end.search(line, at)
            taken = [each for each in (regex.search(line, at) for regex in inner) if each]
            first = min(taken, key=lambda each: each.start(), default=None)
            if first is None or (match and match.start() <= first.start()):
                return match.end() if match else None
            at = first.end()
