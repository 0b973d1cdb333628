"""`credence demo`: the whole loop on this machine, with digits and two cameras, or with rare frauds."""
