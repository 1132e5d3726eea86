"""Agent runs on LangGraph (extra `langgraph`), each with a checkpoint of its own."""
