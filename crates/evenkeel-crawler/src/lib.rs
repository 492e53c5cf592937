//! Crawls one site politely.
