"""Collections: runs that grow, with clusters that keep their ids."""
