"""Speed and how it grows, side by side with other memory layers."""
