"""What the commands of `compile-matrix` do, one module a command."""
