"""From transformations to stages: the logical graph, the planner's rules and the plan."""
