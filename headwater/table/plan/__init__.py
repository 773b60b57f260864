"""From syntax trees to plans: names, types and meaning."""
