"""Policy text becomes a Policy, and a Policy with facts becomes decisions."""
