"""Pages and schemas that are made from the code, so that they say what is checked."""
