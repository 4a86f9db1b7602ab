"""Query engines that ask the planner which objects to read."""
