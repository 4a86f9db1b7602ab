"""The index of gaps: the widest ranges between minimum and maximum that an object has no value in."""
