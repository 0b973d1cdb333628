"""What the chart `helm/credence` is made from: its values, their schema, its page."""
