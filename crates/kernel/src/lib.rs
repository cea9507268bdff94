//! What a Celerity kernel sees: items, rows and views.
