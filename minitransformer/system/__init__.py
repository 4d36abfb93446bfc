"""The operating system and its manners: files, terminals, processes, signals, devices, seeds."""
