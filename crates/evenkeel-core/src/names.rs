//! Names of enum variants, as the API and the CLI show them.

/// Defines the constant `ALL` and the method `as_str` for an enum. `ALL` lists the variants in the
/// given order; if the variants are stored as numbers, this order must match the numbers.
macro_rules! names {
    ($type:ident { $($variant:ident => $name:literal),+ $(,)? }) => {
        impl $type {
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

pub(crate) use names;
