"""One application in several roles. What a process does is decided by how it is started, nowhere else."""
