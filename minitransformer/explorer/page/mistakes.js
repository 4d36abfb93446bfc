const Mistakes = { list: [], detectors: [] };
