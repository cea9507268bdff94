//! Boxes, regions, region maps and splits in 0 to 3 dimensions.
