"""plan_as_rules.py PLAN.json: the rules of a policy that say what the plan file says."""
import json
import sys

plan = json.load(open(sys.argv[1]))
rules = []
for tensor in plan["tensors"]:
    route = plan["routes"][tensor["route"]]
    use = "exact" if tensor["program"] is None else plan["programs"][tensor["program"]]["program"]
    rules.append({"name": tensor["name"], "use": use, "plan": route["plan"], "piece_bytes": route["piece_bytes"]})
print(json.dumps({"rules": rules}))
