//! Other people's rules.
