//! Runs each test on both stores.

/// Defines a test of each function on each store.
macro_rules! on_both_stores {
    ($($name:ident),* $(,)?) => {
        mod on_sqlite {
            $(#[test]
            fn $name() {
                super::$name(&crate::database::Database::sqlite());
            })*
        }
        mod on_postgres {
            $(#[test]
            fn $name() {
                super::$name(&crate::database::Database::postgres());
            })*
        }
    };
}
pub(crate) use on_both_stores;
