"""Where bytes are kept: local directories and object stores, written so that a file is whole or not there."""
