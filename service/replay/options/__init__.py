"""What `credence replay` takes, by task: options, their defaults and names. Light: it imports no library."""
