"""What one turn gets from memory: window, summary, condensed question, recall."""
