"""The machine that a process runs on: Java, disks, directories, other processes."""
