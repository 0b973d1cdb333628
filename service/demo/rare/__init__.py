"""`credence demo --rare`: the recall of a rare class, by adaptive labels and by labels at random."""
