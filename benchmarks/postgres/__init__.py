"""The service stores at scale: recall in PostgreSQL, working memory in PostgreSQL and Valkey."""
