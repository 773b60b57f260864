"""What is in files and messages, at the module paths where PyFlink has it."""
