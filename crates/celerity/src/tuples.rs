//! How long tuples of accesses, captures and fences may be: the one list of all of them. What is
//! longer comes in arrays.

/// Calls a macro for the tuples of none to twenty, with what it needs for each: a type parameter, the name
/// of a value, and the index of each member.
macro_rules! for_tuples {
    ($implement:ident) => {
        $crate::tuples::for_tuples!(
            $implement []
            A0 v0 0, A1 v1 1, A2 v2 2, A3 v3 3, A4 v4 4, A5 v5 5, A6 v6 6, A7 v7 7, A8 v8 8, A9 v9 9,
            A10 v10 10, A11 v11 11, A12 v12 12, A13 v13 13, A14 v14 14, A15 v15 15, A16 v16 16,
            A17 v17 17, A18 v18 18, A19 v19 19
        );
    };
    ($implement:ident [$($name:ident $value:ident $index:tt),*]) => {
        $implement!($($name $value $index),*);
    };
    (
        $implement:ident [$($name:ident $value:ident $index:tt),*]
        $next:ident $next_value:ident $next_index:tt $(, $($rest:tt)*)?
    ) => {
        $implement!($($name $value $index),*);
        $crate::tuples::for_tuples!(
            $implement [$($name $value $index,)* $next $next_value $next_index] $($($rest)*)?
        );
    };
}

pub(crate) use for_tuples;
