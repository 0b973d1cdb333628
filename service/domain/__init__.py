"""Types that all rooms share: messages, groupings, tables of traffic, pools, errors. No I/O."""
