//! Collective pattern discovery: which flows are collective.
