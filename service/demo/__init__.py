"""`credence demo`: the whole loop on this machine, with digits, two cameras and a labeller."""
