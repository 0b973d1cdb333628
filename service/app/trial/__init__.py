"""`credence try`: a file through the whole loop on this machine, and a report of what it found."""
