"""`credence demo --labeller me`: the demo of the digits, whose labels come from the person in front of it."""
