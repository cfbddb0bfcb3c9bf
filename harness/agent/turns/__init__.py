"""The turns of a trial on its node, and what others used of its cores meanwhile."""
