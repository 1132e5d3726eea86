"""The three tiers: conversation turns, a run's scratch state, long-term memories."""
