"""The baselines of the paper and today's rivals, behind one signature."""
