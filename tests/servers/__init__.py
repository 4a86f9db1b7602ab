"""Real servers for the tests: fetched once into a cache folder, on a free port of this machine, stopped by pid."""
