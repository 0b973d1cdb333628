"""What the command line takes. Light: it imports no library, and names commands as `module:function`."""
