"""What everything speaks of: messages, groupings, tables of traffic, pools, errors. No I/O."""
