"""The index of bounding boxes of points and geometries."""
